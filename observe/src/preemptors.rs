//! The preemptors that wait for their victims.

use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{QueueingStrategy, mark_preemptor};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most preemptors that are remembered.
const PREEMPTORS_MAX: usize = 4_096;

/// The preemptors that have not been admitted since, in the order of their preemptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preemptors {
    keys: VecDeque<Arc<str>>,
}

impl Preemptors {
    /// Records a preemption.
    pub(crate) fn record(&mut self, key: &Arc<str>) {
        if self.keys.back() == Some(key) {
            return;
        }
        self.remove(key);
        if self.keys.len() >= PREEMPTORS_MAX {
            self.keys.pop_front();
        }
        self.keys.push_back(Arc::clone(key));
    }

    /// Forgets a workload: it was admitted or has left.
    pub(crate) fn remove(&mut self, key: &str) {
        self.keys.retain(|it| **it != *key);
    }

    /// Puts them at the heads of their queues, as Kueue does until they are admitted.
    pub(crate) fn mark(&self, cluster: &mut ClusterState) {
        for key in &self.keys {
            mark_waiting(cluster, key);
        }
    }
}

/// Puts a pending workload at the head of its queue, since workloads were preempted for it.
pub(crate) fn mark_waiting(cluster: &mut ClusterState, key: &str) {
    let Some(id) = cluster.state().workload(key) else {
        return;
    };
    let view = cluster.state().workload_view(id);
    let Some(queue) = view.queue().filter(|_| view.reservation().is_none()) else {
        return;
    };
    if cluster.state().node_view(queue).strategy() == QueueingStrategy::BestEffortFifo {
        mark_preemptor(cluster.state_mut(), id);
    }
}
