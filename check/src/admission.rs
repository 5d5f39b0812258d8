//! Checks objects with the admission policies among the files or in a cluster.

use crate::definitions::{Admitted, DefinitionSet, admitted_built_in, admitted_custom_resource};
use crate::document::Identity;
use crate::kinds::KindRegistry;
use crate::severity::Severity;
use lockkeeper_crd_schema::admission_policy::{AdmissionRequest, PolicySet, Resource, UserInfo};
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

    /// The findings of the policies about a valid object, or about its change.
    pub(crate) fn findings(
        &self,
        kinds: &KindRegistry,
        (object, old): (&Value, Option<&Value>),
        context: &Context<'_>,
    ) -> Vec<(Severity, Finding)> {
        let Some(admitted) = admitted(kinds, object, old, context) else {
            return Vec::new();
        };
        let namespace = admitted.object.pointer("/metadata/namespace");
        let namespace = namespace
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty());
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
        let request = AdmissionRequest {
            object: &admitted.object,
            old: admitted.old.as_ref(),
            resource: &admitted.resource,
            namespace: admitted.is_namespaced.then_some(namespace),
            user: self.user.as_ref(),
        };
        let decisions = self.policies.validate(&request).into_iter();
        decisions
            .map(|it| {
                let (finding, is_rejected) = admission_policy::finding(it, object);
                let severity = if is_rejected {
                    Severity::Error
                } else {
                    Severity::Warning
                };
                (severity, finding)
            })
            .collect()
    }
}

/// The object with its defaults; `None` if it is not valid.
fn admitted(
    kinds: &KindRegistry,
    object: &Value,
    old: Option<&Value>,
    context: &Context<'_>,
) -> Option<Admitted> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let identity = Identity::from_object(object);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = |plural: &str| Resource::new(group, version, kind, plural);
    if kinds.definitions().has(object) {
        return admitted_custom_resource(kinds.definitions(), object, old);
    }
    if BuiltInKind::find(api_version, kind).is_some() {
        return admitted_built_in(object, old);
    }
    let own = kinds.resource(object);
    let plural = own.map_or_else(|| Resource::plural_of(kind), |it| it.0.to_owned());
    Some(Admitted {
        object: kinds.with_defaults(object, context),
        old: old.map(|it| kinds.with_defaults(it, context)),
        resource: resource(&plural),
        is_namespaced: own.map_or(!identity.namespace.is_empty(), |it| it.1),
    })
}
