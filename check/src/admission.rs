//! Checks objects with the admission policies among the files or in a cluster.

use crate::definitions::{
    Admitted, DefinitionSet, Mutable, admitted_built_in, admitted_custom_resource,
    mutable_built_in, mutable_custom_resource,
};
use crate::kinds::KindRegistry;
use crate::severity::Severity;
use lockkeeper_crd_schema::admission_policy::{
    AdmissionRequest, Decision, MergeTypes, MutationKind, PolicySet, Resource, UserInfo,
};
use lockkeeper_crd_schema::builtin::BuiltInKind;
use lockkeeper_policies::admission_policy;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::rule::Context;
use serde_json::Value;

/// The namespace of an object that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Admission policies, and the user whose requests they decide about.
#[derive(Debug, Default)]
pub struct AdmissionPolicies {
    policies: PolicySet,
    /// `None` if the user is not known.
    user: Option<UserInfo>,
}

type Findings = Vec<(Severity, Finding)>;

/// Where the object of a request is.
struct Place<'a> {
    resource: &'a Resource,
    is_namespaced: bool,
}

impl AdmissionPolicies {
    /// Policies, for the kinds of these definitions.
    #[must_use]
    pub fn new(
        mut policies: PolicySet,
        user: Option<UserInfo>,
        definitions: &DefinitionSet,
    ) -> Self {
        for (api_version, kind) in definitions.cluster_scoped() {
            policies.add_cluster_scoped(&api_version, kind);
        }
        Self { policies, user }
    }

    /// Whether there are no policies.
    pub(crate) fn are_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// The object with its defaults after mutating policies, and their findings. `None` if no policy changes the object.
    pub(crate) fn mutate(
        &self,
        kinds: &KindRegistry,
        (object, old): (&Value, Option<&Value>),
        context: &Context<'_>,
    ) -> (Option<Value>, Findings) {
        let Some(mutable) = mutable(kinds, object, context) else {
            return (None, Findings::new());
        };
        let place = Place {
            resource: &mutable.resource,
            is_namespaced: mutable.is_namespaced,
        };
        let old = old.map(|it| (mutable.set_defaults)(it.clone()));
        let request = self.request(&mutable.object, old.as_ref(), &place);
        let kind = MutationKind {
            types: mutable.types,
            set_defaults: &*mutable.set_defaults,
        };
        let mutated = self.policies.mutate(&request, kind);
        (mutated.object, findings(mutated.decisions, object))
    }

    /// The findings of validating policies about a valid object, or about its change. `source` is the object of the file,
    /// before mutating policies.
    pub(crate) fn validate(
        &self,
        kinds: &KindRegistry,
        (object, old): (&Value, Option<&Value>),
        source: &Value,
        context: &Context<'_>,
    ) -> Findings {
        let Some(admitted) = admitted(kinds, object, old, context) else {
            return Findings::new();
        };
        let place = Place {
            resource: &admitted.resource,
            is_namespaced: admitted.is_namespaced,
        };
        let request = self.request(&admitted.object, admitted.old.as_ref(), &place);
        findings(self.policies.validate(&request), source)
    }

    fn request<'a>(
        &'a self,
        object: &'a Value,
        old: Option<&'a Value>,
        place: &Place<'a>,
    ) -> AdmissionRequest<'a> {
        let namespace = object.pointer("/metadata/namespace");
        let namespace = namespace
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty());
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
        AdmissionRequest {
            object,
            old,
            resource: place.resource,
            namespace: place.is_namespaced.then_some(namespace),
            user: self.user.as_ref(),
        }
    }
}

/// The findings about decisions.
fn findings(decisions: Vec<Decision>, object: &Value) -> Findings {
    let finding = |decision| {
        let (finding, is_rejected) = admission_policy::finding(decision, object);
        let severity = if is_rejected {
            Severity::Error
        } else {
            Severity::Warning
        };
        (severity, finding)
    };
    decisions.into_iter().map(finding).collect()
}

/// The group, version and kind of an object.
fn type_of(object: &Value) -> Option<(&str, &str, &str)> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some((group, version, kind))
}

fn is_built_in(kinds: &KindRegistry, object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    BuiltInKind::find_in(kinds.release(), text("apiVersion"), text("kind")).is_some()
}

/// The resource of an object of a kind that has no definition and is not built in, and whether it has a namespace.
fn other_resource(kinds: &KindRegistry, object: &Value) -> Option<(Resource, bool)> {
    let (group, version, kind) = type_of(object)?;
    let own = kinds.resource(object);
    let plural = own.map_or_else(|| Resource::plural_of(kind), |it| it.0.to_owned());
    let has_namespace = object.pointer("/metadata/namespace").is_some();
    let is_namespaced = own.map_or(has_namespace, |it| it.1);
    Some((Resource::new(group, version, kind, &plural), is_namespaced))
}

/// The object with its defaults, for mutating policies.
fn mutable<'a>(
    kinds: &'a KindRegistry,
    object: &Value,
    context: &'a Context<'a>,
) -> Option<Mutable<'a>> {
    if kinds.definitions().has(object) {
        return mutable_custom_resource(kinds.definitions(), object);
    }
    if is_built_in(kinds, object) {
        return mutable_built_in(kinds.release(), object);
    }
    let (resource, is_namespaced) = other_resource(kinds, object)?;
    let set_defaults = move |object: Value| kinds.with_defaults(&object, context);
    Some(Mutable {
        object: set_defaults(object.clone()),
        resource,
        is_namespaced,
        types: MergeTypes::Unknown,
        set_defaults: Box::new(set_defaults),
    })
}

/// The object as it is stored; `None` if it is not valid.
fn admitted(
    kinds: &KindRegistry,
    object: &Value,
    old: Option<&Value>,
    context: &Context<'_>,
) -> Option<Admitted> {
    if kinds.definitions().has(object) {
        return admitted_custom_resource(kinds.definitions(), object, old);
    }
    if is_built_in(kinds, object) {
        return admitted_built_in(kinds.release(), object, old);
    }
    let (resource, is_namespaced) = other_resource(kinds, object)?;
    Some(Admitted {
        object: kinds.with_defaults(object, context),
        old: old.map(|it| kinds.with_defaults(it, context)),
        resource,
        is_namespaced,
    })
}
