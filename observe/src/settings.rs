//! The settings of an observer.

use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;

/// The settings of an [`Observer`](crate::Observer). Times are in milliseconds.
#[derive(Clone, Debug)]
pub struct ObserveSettings {
    /// The options of all queues.
    pub options: Options,
    /// The requeueing of workloads whose pods are not ready.
    pub requeue: RequeueSettings,
    /// Resources whose names start with one of these need no quota.
    pub excluded_resource_prefixes: Vec<String>,
    /// Settings of Kueue that decisions here do not consider. They explain differences.
    pub not_considered: Vec<String>,
    /// How long after its last change a decision is compared: other decisions of the same cycle may be written later.
    pub settle_ms: i64,
    /// How much older than a decision the state may be on which Kueue has decided.
    pub lag_ms: i64,
    /// How many seconds a cycle with preemptions may take.
    pub slow_cycle_s: i64,
    /// How long a workload that does not fit may stay out of its queue after it would fit.
    pub inadmissible_ms: i64,
    /// How long changes are kept. Kueue may write a decision as much later.
    pub history_ms: i64,
    /// How long the core admits or preempts without a decision of Kueue, until that is a difference.
    pub missing_after_ms: i64,
    /// The most changes that are kept.
    pub changes_max: usize,
    /// The most differences that a report has; the oldest are dropped.
    pub differences_max: usize,
}

impl Default for ObserveSettings {
    fn default() -> Self {
        Self {
            options: Options::default(),
            requeue: RequeueSettings::default(),
            excluded_resource_prefixes: Vec::new(),
            not_considered: Vec::new(),
            settle_ms: 3_000,
            lag_ms: 2_000,
            slow_cycle_s: 10,
            inadmissible_ms: 5_000,
            history_ms: 30_000,
            missing_after_ms: 60_000,
            changes_max: 100_000,
            differences_max: 100,
        }
    }
}
