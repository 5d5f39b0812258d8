//! Maps the kind of a request to the rules and defaults of its type.

mod declared_jobs;
mod decode;
mod mutate;
mod typed_object;
mod user_rules;
mod validate;

pub(crate) use declared_jobs::{declaration, suspend_new_job};
pub(crate) use user_rules::{has_user_rules, validate_user_rules};

use crate::admission_review::AdmissionRequest;
use crate::review_context::{ReviewContext, ReviewOutcome};
use lockkeeper_policies::kinds::{self, KindVisitor};
use lockkeeper_policies::rule::Operation;
use lockkeeper_policies::validated_kind::{ValidatedKind, WebhookScope};
use mutate::mutate;
use std::borrow::Cow;
use std::sync::LazyLock;
use validate::validate;

type ReviewFn = fn(&ReviewContext<'_>, &AdmissionRequest<'_>, Operation) -> ReviewOutcome;

/// The handlers of requests for one kind.
pub(crate) struct Route {
    group: Cow<'static, str>,
    version: Cow<'static, str>,
    kind: Cow<'static, str>,
    pub(crate) validate: ReviewFn,
    pub(crate) mutate: ReviewFn,
}

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = Routes(Vec::new());
    kinds::visit(&mut routes);
    routes.0
});

struct Routes(Vec<Route>);

impl KindVisitor for Routes {
    fn kind<T: ValidatedKind>(&mut self) {
        if T::WEBHOOK != WebhookScope::Never {
            self.0.push(Route::for_type::<T>());
        }
    }
}

impl Route {
    fn for_type<T: ValidatedKind>() -> Self {
        Self {
            group: T::group(&()),
            version: T::version(&()),
            kind: T::kind(&()),
            validate: validate::<T>,
            mutate: |context, request, operation| mutate::<T>(context, request, operation).into(),
        }
    }

    /// Returns the route for the kind of a request.
    pub(crate) fn find(request: &AdmissionRequest<'_>) -> Option<&'static Self> {
        ROUTES.iter().find(|route| {
            let kind = &request.kind;
            route.kind == kind.name && route.version == kind.version && route.group == kind.group
        })
    }
}
