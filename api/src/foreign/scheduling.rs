//! Kubernetes' Workload and PodGroup (`scheduling.k8s.io`).
//!
//! The types here are those of `v1alpha2` (Kubernetes 1.36); [`v1beta1`] has those of 1.37. Groups, policies,
//! constraints, claims, priorities and the status are the same in both.

pub mod v1beta1;

use crate::foreign::foreign_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

/// The API group.
pub const GROUP: &str = "scheduling.k8s.io";

/// The version of the types here.
pub const VERSION: &str = "v1alpha2";

/// The prefix of the names of Kubernetes' own PriorityClasses.
pub const SYSTEM_PREFIX: &str = "system-";

/// The maximum value of a user-defined PriorityClass, and of the priority of a group.
pub const USER_PRIORITY_MAX: i32 = 1_000_000_000;

/// The finalizer that keeps a PodGroup until its pods are gone.
pub const POD_GROUP_PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// The disruption mode in which each pod is disrupted alone; the default of a PodGroup.
pub const DISRUPTION_MODE_POD: &str = "Pod";

/// The disruption mode in which all pods of a group are disrupted together.
pub const DISRUPTION_MODE_POD_GROUP: &str = "PodGroup";

/// Groups of pods that belong together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Workload {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: WorkloadSpec,
}

/// The specification of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The object that controls the Workload.
    #[serde(default)]
    pub controller_ref: Option<ControllerReference>,
    /// The templates of the groups.
    #[serde(default, deserialize_with = "or_default")]
    pub pod_group_templates: Vec<PodGroupTemplate>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerReference {
    /// Its API group; empty for the core group.
    #[serde(default, deserialize_with = "or_default")]
    pub api_group: String,
    /// Its kind.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: String,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
}

/// A template of PodGroups.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodGroupTemplate {
    /// Its name within the Workload.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The fields of the group.
    #[serde(flatten)]
    pub group: Group,
}

/// The common fields of templates and PodGroups.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The scheduling policy.
    #[serde(default, deserialize_with = "or_default")]
    pub scheduling_policy: SchedulingPolicy,
    /// The scheduling constraints.
    #[serde(default)]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// The claims that its pods share.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_claims: Vec<ResourceClaim>,
    /// The disruption mode.
    #[serde(default)]
    pub disruption_mode: Option<DisruptionMode>,
    /// Its PriorityClass; empty for none.
    #[serde(default, deserialize_with = "or_default")]
    pub priority_class_name: String,
    /// Its priority.
    #[serde(default)]
    pub priority: Option<i32>,
}

/// How the pods of a group are scheduled: exactly one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SchedulingPolicy {
    /// One by one.
    #[serde(default)]
    pub basic: Option<BasicPolicy>,
    /// All or nothing.
    #[serde(default)]
    pub gang: Option<GangPolicy>,
}

/// Pods are scheduled one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BasicPolicy {}

/// Pods are scheduled together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GangPolicy {
    /// The minimum number of pods that are scheduled together.
    #[serde(default, deserialize_with = "or_default")]
    pub min_count: i32,
}

/// Where the pods of a group may be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SchedulingConstraints {
    /// The domains that the pods share.
    #[serde(default, deserialize_with = "or_default")]
    pub topology: Vec<TopologyConstraint>,
}

/// All pods are in one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TopologyConstraint {
    /// The label of nodes whose value names the domain.
    #[serde(default, deserialize_with = "or_default")]
    pub key: String,
}

/// A claim that the pods of a group share: exactly one of the references is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClaim {
    /// Its name within the group.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The ResourceClaim that it is.
    #[serde(default)]
    pub resource_claim_name: Option<String>,
    /// The ResourceClaimTemplate that it is created from.
    #[serde(default)]
    pub resource_claim_template_name: Option<String>,
}

/// The disruption mode of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum DisruptionMode {
    /// The form of `v1alpha2`.
    Text(String),
    /// The form of `v1alpha3` and `v1beta1`.
    OneOf(DisruptionModeMembers),
}

/// The disruption mode of `v1alpha3` and `v1beta1`: exactly one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DisruptionModeMembers {
    /// Each pod is disrupted alone.
    #[serde(default)]
    pub single: Option<BasicPolicy>,
    /// All pods are disrupted together.
    #[serde(default)]
    pub all: Option<BasicPolicy>,
}

/// A group of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodGroup {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Its specification.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: PodGroupSpec,
    /// The observed state.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PodGroupStatus,
}

/// The specification of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodGroupSpec {
    /// The template of the group.
    #[serde(default, rename = "podGroupTemplateRef")]
    pub template_ref: Option<TemplateReference>,
    /// The common fields.
    #[serde(flatten)]
    pub group: Group,
}

/// A template in some object: exactly one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TemplateReference {
    /// One of a Workload.
    #[serde(default)]
    pub workload: Option<WorkloadTemplateReference>,
}

/// A template of a Workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTemplateReference {
    /// The Workload.
    #[serde(default, deserialize_with = "or_default")]
    pub workload_name: String,
    /// The template.
    #[serde(default, deserialize_with = "or_default")]
    pub pod_group_template_name: String,
}

/// The observed state of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// The latest observations.
    #[serde(default, deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// The claims that were created from templates.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_claim_statuses: Vec<ResourceClaimStatus>,
}

/// A condition. Unlike that of `k8s-openapi` it may lack its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    /// The generation that the condition was set for.
    #[serde(default, deserialize_with = "or_default")]
    pub observed_generation: i64,
    /// The last transition time, in RFC 3339.
    #[serde(default)]
    pub last_transition_time: Option<String>,
    /// The reason, in one word.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: String,
    /// The message.
    #[serde(default, deserialize_with = "or_default")]
    pub message: String,
}

/// The ResourceClaim of a claim of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    /// The name of the claim within the group.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The created ResourceClaim; `None` if none was needed.
    #[serde(default)]
    pub resource_claim_name: Option<String>,
}

/// Decodes `null` as the empty value, as Go does.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

foreign_kind!(
    Workload,
    kube::core::NamespaceResourceScope,
    GROUP,
    VERSION,
    "Workload",
    "workloads"
);

foreign_kind!(
    PodGroup,
    kube::core::NamespaceResourceScope,
    GROUP,
    VERSION,
    "PodGroup",
    "podgroups"
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn decode<T: for<'de> Deserialize<'de>>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn null_reads_as_default() {
        let group: PodGroup = decode(json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"podGroupTemplateRef": null, "schedulingPolicy": null, "resourceClaims": null},
            "status": null,
        }));
        assert_eq!(group, PodGroup::default());
        let workload: Workload = decode(json!({"spec": {"podGroupTemplates": null}}));
        assert_eq!(workload, Workload::default());
    }
}
