//! Kubernetes' Workload and PodGroup as Kubernetes 1.37 has them: `v1beta1`, and `v1alpha3` with the same fields.
//!
//! They differ from `v1alpha2` in this:
//!
//! - The disruption mode is an object with one of `single` and `all`, no longer the text `Pod` or `PodGroup`.
//! - A PodGroup names its template in `workloadRef`, in place of `podGroupTemplateRef.workload`, and its parent
//!   in `parentCompositePodGroupName`.
//! - A Workload has exactly one of `podGroupTemplates` and `compositePodGroupTemplates`, which nest up to four
//!   levels deep.
//! - Templates and PodGroups have a `preemptionPolicy`.

use super::{
    BasicPolicy, ControllerReference, DisruptionMode, GROUP, PodGroupStatus, SchedulingConstraints,
    or_default,
};
use crate::foreign::foreign_kind;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

/// The version that the rules check.
pub const VERSION: &str = "v1beta1";

/// Another version with the same fields.
pub const EQUIVALENT_VERSION: &str = "v1alpha3";

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
    /// The templates in it.
    #[serde(flatten)]
    pub templates: Templates,
}

/// The templates of a Workload, or below a composite one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Templates {
    /// A template of PodGroups.
    #[serde(default, deserialize_with = "or_default")]
    pub pod_group_templates: Vec<PodGroupTemplate>,
    /// The templates of groups of groups.
    #[serde(default, deserialize_with = "or_default")]
    pub composite_pod_group_templates: Vec<CompositePodGroupTemplate>,
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
    /// The fields of `v1alpha2`.
    #[serde(flatten)]
    pub base: super::Group,
    /// Whether it preempts others: `Never` or `PreemptLowerPriority`.
    #[serde(default)]
    pub preemption_policy: Option<String>,
}

/// The templates of groups of groups.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositePodGroupTemplate {
    /// Its name within the Workload.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The scheduling policy.
    #[serde(default, deserialize_with = "or_default")]
    pub scheduling_policy: CompositeSchedulingPolicy,
    /// The scheduling constraints.
    #[serde(default)]
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// The disruption mode.
    #[serde(default)]
    pub disruption_mode: Option<DisruptionMode>,
    /// Its PriorityClass; empty for none.
    #[serde(default, deserialize_with = "or_default")]
    pub priority_class_name: String,
    /// Its priority.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Whether it preempts others: `Never` or `PreemptLowerPriority`.
    #[serde(default)]
    pub preemption_policy: Option<String>,
    /// The templates below it.
    #[serde(flatten)]
    pub templates: Templates,
}

/// How the groups of a group are scheduled: exactly one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CompositeSchedulingPolicy {
    /// One by one.
    #[serde(default)]
    pub basic: Option<BasicPolicy>,
    /// All or nothing.
    #[serde(default)]
    pub gang: Option<CompositeGangPolicy>,
}

/// Groups are scheduled together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositeGangPolicy {
    /// The minimum number of groups that are scheduled together.
    #[serde(default, deserialize_with = "or_default")]
    pub min_group_count: i32,
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
#[serde(rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// The composite group that the group belongs to.
    #[serde(default)]
    pub parent_composite_pod_group_name: Option<String>,
    /// The template of the group.
    #[serde(default)]
    pub workload_ref: Option<WorkloadReference>,
    /// The common fields.
    #[serde(flatten)]
    pub group: Group,
}

/// A template of a Workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// The Workload.
    #[serde(default, deserialize_with = "or_default")]
    pub workload_name: String,
    /// The template.
    #[serde(default, deserialize_with = "or_default")]
    pub template_name: String,
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
    use crate::foreign::scheduling::DisruptionModeMembers;
    use serde_json::{Value, json};

    fn decode<T: for<'de> Deserialize<'de>>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn null_reads_as_default() {
        let group: PodGroup = decode(json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"workloadRef": null, "schedulingPolicy": null, "preemptionPolicy": null},
            "status": null,
        }));
        assert_eq!(group, PodGroup::default());
        let templates = json!({"podGroupTemplates": null, "compositePodGroupTemplates": null});
        let workload: Workload = decode(json!({"spec": templates}));
        assert_eq!(workload, Workload::default());
    }

    #[test]
    fn composite_templates_nest() {
        let workers = json!({
            "name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}},
            "disruptionMode": {"all": {}}, "priority": 5, "preemptionPolicy": "Never",
        });
        let slices = json!({
            "name": "slices", "schedulingPolicy": {"gang": {"minGroupCount": 3}}, "podGroupTemplates": [workers],
        });
        let workload: Workload = decode(json!({"spec": {"compositePodGroupTemplates": [slices]}}));
        let slices = &workload.spec.templates.composite_pod_group_templates[0];
        let gang = slices.scheduling_policy.gang.as_ref();
        assert_eq!(gang.map(|it| it.min_group_count), Some(3));
        let workers = &slices.templates.pod_group_templates[0].group;
        assert_eq!(workers.base.priority, Some(5));
        assert_eq!(workers.preemption_policy.as_deref(), Some("Never"));
        let all = DisruptionModeMembers {
            single: None,
            all: Some(BasicPolicy {}),
        };
        assert_eq!(
            workers.base.disruption_mode,
            Some(DisruptionMode::OneOf(all))
        );
    }
}
