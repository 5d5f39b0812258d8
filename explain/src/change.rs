//! The smallest changes that let a pending workload start.

use serde::Serialize;

/// A change that lets the workload start, if it were the only pending workload. Nothing smaller of its kind does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Change {
    /// More nominal quota of the ClusterQueue.
    NominalQuota {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The increases.
        amounts: Vec<AmountChange>,
    },
    /// A higher borrowing limit of the ClusterQueue.
    BorrowingLimit {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The increases.
        amounts: Vec<AmountChange>,
    },
    /// A higher priority.
    Priority {
        /// The lowest sufficient priority.
        priority_min: i32,
        /// The lowest sufficient PriorityClass, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        /// The number of workloads that it would preempt.
        victims: usize,
    },
    /// A preemption policy of the ClusterQueue.
    PreemptionPolicy {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The fields and their values.
        fields: Vec<PolicyField>,
        /// The number of workloads that it would preempt.
        victims: usize,
    },
    /// A preemption policy of the ClusterQueue together with a higher priority, neither of which is sufficient alone.
    PolicyAndPriority {
        /// The ClusterQueue.
        cluster_queue: String,
        /// The fields and their values.
        fields: Vec<PolicyField>,
        /// The lowest priority that is sufficient with this policy.
        priority_min: i32,
        /// The lowest sufficient PriorityClass, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        /// The number of workloads that it would preempt.
        victims: usize,
    },
    /// The end of one other workload.
    WorkloadEnds {
        /// The workloads of which one is sufficient; at most a few.
        workloads: Vec<String>,
        /// The number of all such workloads.
        total: usize,
    },
    /// Resources that need no quota.
    ExcludedResources {
        /// The field of the scheduler's configuration.
        field: &'static str,
        /// The resources, each of which is a sufficient prefix.
        prefixes: Vec<String>,
    },
    /// Fewer pods.
    FewerPods {
        /// The pod set.
        pod_set: String,
        /// The largest number of pods that fits.
        count: i32,
        /// The number now.
        of: i32,
    },
}

/// An increase of a quota or a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AmountChange {
    /// The ResourceFlavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The increase, as a quantity.
    pub by: String,
    /// The new value, as a quantity.
    pub to: String,
}

/// A field of a preemption policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyField {
    /// The path of the field.
    pub field: &'static str,
    /// The value.
    pub value: &'static str,
}
