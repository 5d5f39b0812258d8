//! Whether a policy permits preemptions among the workloads of one ClusterQueue.

use lockkeeper_api::cluster_queue::WithinClusterQueue;
use lockkeeper_preemption::{State, WorkloadId};

/// Whether one of the `pending` workloads of a ClusterQueue could preempt another workload of it, now or later, by
/// `withinClusterQueue`. `running` has those with quota; a workload that is being evicted may be in both.
pub(crate) fn is_preemption_within_possible(
    state: &State,
    policy: WithinClusterQueue,
    pending: &[WorkloadId],
    running: &[WorkloadId],
) -> bool {
    let priorities = pending.iter().map(|it| state.workload_view(*it).priority());
    let Some(highest) = priorities.max() else {
        return false;
    };
    let mut all = pending.iter().chain(running);
    match policy {
        WithinClusterQueue::Never => false,
        WithinClusterQueue::LowerOrNewerEqualPriority
            if pending.len().saturating_add(running.len()) > 1 =>
        {
            true
        }
        WithinClusterQueue::LowerOrNewerEqualPriority | WithinClusterQueue::LowerPriority => {
            all.any(|it| state.workload_view(*it).preemption_priority() < highest)
        }
    }
}
