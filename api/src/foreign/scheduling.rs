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

/// What the names of Kubernetes' own PriorityClasses begin with.
pub const SYSTEM_PREFIX: &str = "system-";

/// The largest value of a class, and priority of a group, that is not Kubernetes' own.
pub const USER_PRIORITY_MAX: i32 = 1_000_000_000;

/// The finalizer that keeps a PodGroup until its pods are gone.
pub const POD_GROUP_PROTECTION: &str = "scheduling.k8s.io/podgroup-protection";

/// The disruption mode in which each pod goes by itself; the default of a PodGroup.
pub const DISRUPTION_MODE_POD: &str = "Pod";

/// The disruption mode in which all pods of a group go together.
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
    /// The object that it was made for.
    #[serde(default)]
    pub controller_ref: Option<ControllerReference>,
    /// The groups that are made of it.
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

/// What PodGroups are made of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodGroupTemplate {
    /// Its name within the Workload.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// What the group will be.
    #[serde(flatten)]
    pub group: Group,
}

/// What templates and PodGroups share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// How its pods are scheduled.
    #[serde(default, deserialize_with = "or_default")]
    pub scheduling_policy: SchedulingPolicy,
    /// Where its pods may be scheduled.
    #[serde(default)]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// The claims that its pods share.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_claims: Vec<ResourceClaim>,
    /// What goes together when it is disrupted.
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
    /// So many at once or none.
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
    /// How many pods must find a place at once.
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
    /// The ResourceClaimTemplate that it is made of.
    #[serde(default)]
    pub resource_claim_template_name: Option<String>,
}

/// What goes together when a group is disrupted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum DisruptionMode {
    /// As `v1alpha2` writes it.
    Text(String),
    /// As `v1alpha3` and `v1beta1` write it.
    OneOf(DisruptionModeMembers),
}

/// The disruption mode of `v1alpha3` and `v1beta1`: exactly one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct DisruptionModeMembers {
    /// Each pod goes by itself.
    #[serde(default)]
    pub single: Option<BasicPolicy>,
    /// All pods go together.
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
    /// What became of it.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PodGroupStatus,
}

/// The specification of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct PodGroupSpec {
    /// The template that it was made of.
    #[serde(default, rename = "podGroupTemplateRef")]
    pub template_ref: Option<TemplateReference>,
    /// What the group is.
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

/// What became of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// The latest observations.
    #[serde(default, deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// The claims that were made of templates.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_claim_statuses: Vec<ResourceClaimStatus>,
}

/// A condition. Unlike that of `k8s-openapi` it may lack its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "or_default")]
    pub status: String,
    /// The generation that it is about.
    #[serde(default, deserialize_with = "or_default")]
    pub observed_generation: i64,
    /// When the status changed last, in RFC 3339.
    #[serde(default)]
    pub last_transition_time: Option<String>,
    /// Why it changed, in one word.
    #[serde(default, deserialize_with = "or_default")]
    pub reason: String,
    /// Why it changed, in a sentence.
    #[serde(default, deserialize_with = "or_default")]
    pub message: String,
}

/// The claim that was made for a claim of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClaimStatus {
    /// The name of the claim within the group.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The ResourceClaim that was made; none when none was needed.
    #[serde(default)]
    pub resource_claim_name: Option<String>,
}

/// Reads `null` as Go does: as the empty value.
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
