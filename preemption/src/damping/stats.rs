//! Statistics of damping: free quota and repeated preemptions.

use crate::amount::Amount;
use crate::ids::WorkloadId;

/// The quota of one flavor and resource that a workload could use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headroom {
    /// The free quota, the part that can be borrowed included.
    pub free: Amount,
    /// Quota held for other preemptors without which more would be free, by preemptor.
    pub held: Vec<(WorkloadId, Amount)>,
}

/// Counts of preemptions, readmissions and repeated preemptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepeatStats {
    /// Workloads that released their quota because they were preempted.
    pub preempted: u64,
    /// Those of `preempted` that were admitted again.
    pub readmitted: u64,
    /// Those of `readmitted` that were preempted again.
    pub preempted_again: u64,
}
