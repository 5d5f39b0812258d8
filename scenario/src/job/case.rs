//! The format of the cases. Amounts are in the unit of their suffix (`cpu_milli`, `memory_bytes`), or as in other
//! scenarios.

use crate::amount_text::AmountText;
use lockkeeper_preemption::job::{ElasticDefaults, LabelValue, PreemptionLabels};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Amounts by resource.
pub(super) type Amounts = BTreeMap<String, AmountText>;

pub(super) type Labels = BTreeMap<String, String>;

/// The three feature switches.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct PluginArgs {
    disable_default_preemptiable: bool,
    disable_default_trigger_preemption: bool,
    pod_should_be_deleted_when_preempted: bool,
}

impl PluginArgs {
    pub(super) const fn elastic_defaults(self) -> ElasticDefaults {
        ElasticDefaults {
            disable_default_preemptible: self.disable_default_preemptiable,
            disable_default_trigger: self.disable_default_trigger_preemption,
            delete_victims: self.pod_should_be_deleted_when_preempted,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum PodPreemptionPolicy {
    PreemptLowerPriority,
    Never,
}

pub(super) fn preemption_labels(
    preemptible: Option<&str>,
    can_preempt: Option<&str>,
    policy: Option<PodPreemptionPolicy>,
) -> PreemptionLabels {
    PreemptionLabels {
        preemptible: LabelValue::from_value(preemptible),
        can_preempt: LabelValue::from_value(can_preempt),
        never_preempts: policy == Some(PodPreemptionPolicy::Never),
    }
}

/// An elastic quota.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quota {
    pub(super) name: String,
    #[serde(default)]
    pub(super) parent: Option<String>,
    #[serde(default)]
    pub(super) min: Amounts,
    #[serde(default)]
    pub(super) max: Amounts,
}

/// A pod of a quota.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaPod {
    pub(super) name: String,
    pub(super) req: Amounts,
    #[serde(default)]
    pub(super) running: bool,
    #[serde(default)]
    pub(super) preemptible: Option<String>,
    /// Its quota; the job's by default.
    #[serde(default)]
    pub(super) quota: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobPod {
    pub(super) name: String,
    pub(super) req: Amounts,
    /// The node where it runs or is assumed.
    #[serde(default)]
    pub(super) node: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Job {
    pub(super) name: String,
    #[serde(default)]
    pub(super) preemptible: Option<String>,
    #[serde(default)]
    pub(super) can_preempt: Option<String>,
    #[serde(default, rename = "preemptionPolicy")]
    pub(super) policy: Option<PodPreemptionPolicy>,
    #[serde(default)]
    pub(super) priority: i32,
    /// The minimum number of pods, if its owner sets one.
    #[serde(default)]
    pub(super) minimum: Option<u32>,
    /// The number of pods, if its owner sets one.
    #[serde(default)]
    pub(super) total: Option<u32>,
    pub(super) pods: Vec<JobPod>,
}

impl Job {
    pub(super) fn preemption_labels(&self) -> PreemptionLabels {
        preemption_labels(
            self.preemptible.as_deref(),
            self.can_preempt.as_deref(),
            self.policy,
        )
    }
}

/// `job_admission` and `preemption_quota_gate`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobAdmissionCase {
    #[serde(default)]
    pub(super) args: PluginArgs,
    pub(super) quota: Quota,
    /// Its ancestors and siblings.
    #[serde(default)]
    pub(super) quotas: Vec<Quota>,
    #[serde(default)]
    pub(super) pods: Vec<QuotaPod>,
    pub(super) job: Job,
}

/// `may_trigger_preemption`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TriggerCase {
    #[serde(default)]
    pub(super) args: PluginArgs,
    pub(super) pod: TriggerPod,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TriggerPod {
    #[serde(default, rename = "preemptionPolicy")]
    pub(super) policy: Option<PodPreemptionPolicy>,
    #[serde(default)]
    pub(super) can_preempt: Option<String>,
}

/// The filter result of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum NodeStatus {
    Success,
    Error,
    #[default]
    Unschedulable,
    UnschedulableAndUnresolvable,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: String,
    /// Whole cores, or a quantity.
    #[serde(default)]
    pub(super) cpu: Option<AmountText>,
    /// Other resources. A resource that no node lists is unlimited.
    #[serde(default)]
    pub(super) allocatable: Amounts,
    #[serde(default)]
    pub(super) status: NodeStatus,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunningPod {
    pub(super) name: String,
    pub(super) req: Amounts,
    pub(super) node: String,
    #[serde(default)]
    pub(super) priority: i32,
    #[serde(default)]
    pub(super) preemptible: Option<String>,
    #[serde(default)]
    pub(super) quota: Option<String>,
    /// Whether it is being evicted.
    #[serde(default)]
    pub(super) leaving: bool,
}

/// `job_preemption`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobPreemptionCase {
    #[serde(default)]
    pub(super) args: PluginArgs,
    pub(super) quota: Quota,
    /// Its ancestors and siblings.
    #[serde(default)]
    pub(super) quotas: Vec<Quota>,
    pub(super) nodes: Vec<Node>,
    #[serde(default)]
    pub(super) running: Vec<RunningPod>,
    /// Pending pods. Those of a non-preemptible class count as requests of their quota.
    #[serde(default)]
    pub(super) pending: Vec<QuotaPod>,
    pub(super) job: Job,
    #[serde(default)]
    pub(super) assumed_pods: Vec<String>,
    #[serde(default)]
    pub(super) previous_round_in_flight: bool,
}

/// A pod as Koordinator sees it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelledPod {
    pub(super) name: String,
    #[serde(default, rename = "namespace")]
    pub(super) _namespace: String,
    #[serde(default)]
    pub(super) labels: Option<Labels>,
    #[serde(default, rename = "node")]
    pub(super) _node: String,
    #[serde(default)]
    pub(super) priority: i32,
    pub(super) requests: Amounts,
}

impl LabelledPod {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrefilterArgs {
    pub(super) enable_runtime_quota: bool,
}

/// A quota as the check of a pod sees it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaStatus {
    pub(super) name: String,
    pub(super) runtime: Amounts,
    #[serde(default)]
    pub(super) used: Amounts,
    /// The limit. If absent, only the resources of the runtime quota are checked.
    #[serde(default)]
    pub(super) max: Option<Amounts>,
    #[serde(default)]
    pub(super) min: Amounts,
    /// The min after scaling. The check uses the declared min.
    #[serde(default, rename = "effective_min")]
    pub(super) _effective_min: Amounts,
    #[serde(default)]
    pub(super) non_preemptible_used: Amounts,
}

/// `prefilter`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrefilterCase {
    pub(super) args: PrefilterArgs,
    pub(super) pod: LabelledPod,
    pub(super) quota: QuotaStatus,
    /// The inputs of `used` and `runtime`.
    #[serde(default, rename = "running_pods")]
    pub(super) _running: Vec<LabelledPod>,
    #[serde(default, rename = "total_resource")]
    pub(super) _total: Amounts,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParentArgs {
    pub(super) enable_check_parent_quota: bool,
}

/// `prefilter_parent`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrefilterParentCase {
    pub(super) args: ParentArgs,
    /// The pod's quota, then its ancestors.
    pub(super) chain: Vec<QuotaStatus>,
    pub(super) pod: LabelledPod,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CanPreemptArgs {
    pub(super) disable_default_quota_preemption: bool,
}

/// `can_preempt`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CanPreemptCase {
    pub(super) args: CanPreemptArgs,
    pub(super) preemptor: LabelledPod,
    pub(super) preemptor_quota: String,
    pub(super) victim: LabelledPod,
    pub(super) victim_quota: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaUsageLimit {
    pub(super) used: Amounts,
    pub(super) used_limit: Amounts,
}

/// `select_victims_on_node`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SelectVictimsCase {
    pub(super) pods_on_node: Vec<LabelledPod>,
    pub(super) preemptor: LabelledPod,
    pub(super) quota: QuotaUsageLimit,
    /// The allocatable resources; other resources are unlimited.
    #[serde(default)]
    pub(super) allocatable: Amounts,
}

/// A quota among its siblings, in one resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaShare {
    pub(super) name: String,
    pub(super) min: i64,
    #[serde(default)]
    pub(super) guarantee: i64,
    pub(super) limited_request: i64,
    pub(super) shared_weight: i64,
    pub(super) allow_lent_resource: bool,
}

/// `runtime_quota`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuntimeQuotaCase {
    pub(super) total: i64,
    pub(super) quotas: Vec<QuotaShare>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuntimeUsage {
    pub(super) runtime: Amounts,
    pub(super) used: Amounts,
}

/// `overuse_revoke`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeCase {
    pub(super) pods: Vec<LabelledPod>,
    pub(super) quota: RuntimeUsage,
}
