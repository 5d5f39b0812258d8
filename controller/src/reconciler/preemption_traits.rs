//! What the labels and policies of a workload mean for preemption in its ClusterQueue.

use super::model::TrackedWorkload;
use super::pending_decision::PendingDecision;
use super::queue_store::admitting_cluster_queue;
use lockkeeper_cluster_state::{ClusterState, PreemptionTraits, preemption_traits};

/// The traits of a workload in the ClusterQueue that has admitted it, or is about to.
pub(super) fn traits(cluster: &ClusterState, tracked: &TrackedWorkload) -> PreemptionTraits {
    let decided = match tracked.decision() {
        Some(PendingDecision::Admit(decision)) => Some(&*decision.admission.cluster_queue),
        _ => None,
    };
    let queue = admitting_cluster_queue(&tracked.object).or(decided);
    preemption_traits(
        cluster.objects(),
        &tracked.object,
        queue.unwrap_or_default(),
    )
}
