//! Maps the kind of a request to the rules and defaults of its type.

mod decode;
mod mutate;
mod user_rules;
mod validate;

pub(crate) use user_rules::{has_user_rules, validate_user_rules};

use crate::admission_review::AdmissionRequest;
use crate::review_context::{ReviewContext, ReviewOutcome};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::kueue;
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, LocalQueue, ResourceFlavor, Workload, job_set};
use lockkeeper_policies::rule::Operation;
use lockkeeper_policies::validated_kind::ValidatedKind;
use mutate::mutate;
use validate::validate;

type ReviewFn = fn(&ReviewContext<'_>, &AdmissionRequest<'_>, Operation) -> ReviewOutcome;

/// The functions for requests with one kind of object.
pub(crate) struct Route {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    pub(crate) validate: ReviewFn,
    pub(crate) mutate: ReviewFn,
}

static ROUTES: &[Route] = &[
    Route::for_type::<ClusterQueue>("lockkeeper.dev", "v1alpha1", "ClusterQueue"),
    Route::for_type::<Cohort>("lockkeeper.dev", "v1alpha1", "Cohort"),
    Route::for_type::<ResourceFlavor>("lockkeeper.dev", "v1alpha1", "ResourceFlavor"),
    Route::for_type::<LocalQueue>("lockkeeper.dev", "v1alpha1", "LocalQueue"),
    Route::for_type::<Workload>("lockkeeper.dev", "v1alpha1", "Workload"),
    Route::for_type::<PriorityClass>("scheduling.k8s.io", "v1", "PriorityClass"),
    Route::for_type::<Pod>("", "v1", "Pod"),
    Route::for_type::<Job>("batch", "v1", "Job"),
    Route::for_type::<JobSet>(job_set::GROUP, job_set::VERSION, job_set::KIND),
    Route::for_type::<kueue::ClusterQueue>(kueue::GROUP, kueue::VERSION, "ClusterQueue"),
    Route::for_type::<kueue::Cohort>(kueue::GROUP, kueue::VERSION, "Cohort"),
    Route::for_type::<kueue::ResourceFlavor>(kueue::GROUP, kueue::VERSION, "ResourceFlavor"),
    Route::for_type::<kueue::LocalQueue>(kueue::GROUP, kueue::VERSION, "LocalQueue"),
    Route::for_type::<kueue::Workload>(kueue::GROUP, kueue::VERSION, "Workload"),
    Route::for_type::<ElasticQuota>(koordinator::GROUP, koordinator::VERSION, koordinator::KIND),
];

impl Route {
    const fn for_type<T: ValidatedKind + Send + Sync>(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
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
