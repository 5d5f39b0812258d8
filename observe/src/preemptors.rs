//! The preemptors that may wait for their victims.

use crate::workload_facts::{condition, transition_s};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{QueueingStrategy, mark_preemptor};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most preemptions that are remembered.
const PREEMPTIONS_MAX: usize = 4_096;

/// The last preemptions, the oldest first: the second, and the preemptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preemptors {
    last: VecDeque<(i64, Arc<str>)>,
}

impl Preemptors {
    /// Records a preemption.
    pub(crate) fn record(&mut self, second: i64, key: &Arc<str>) {
        if self.last.len() >= PREEMPTIONS_MAX {
            self.last.pop_front();
        }
        self.last.push_back((second, Arc::clone(key)));
    }

    /// Puts the preemptors up to a second at the heads of their queues, as Kueue does until they are admitted.
    pub(crate) fn mark<'a>(
        &self,
        cluster: &mut ClusterState,
        until_s: i64,
        version: impl Fn(&str) -> Option<&'a Workload>,
    ) {
        for (second, key) in &self.last {
            if *second > until_s {
                continue;
            }
            let Some(id) = cluster.state().workload(key) else {
                continue;
            };
            let view = cluster.state().workload_view(id);
            let Some(queue) = view.queue().filter(|_| view.reservation().is_none()) else {
                continue;
            };
            // An admission in between has ended its place at the head.
            let is_later = |it: &Workload| {
                let reserved = condition(it, "QuotaReserved").filter(|it| it.status == "False");
                let evicted = condition(it, "Evicted").filter(|it| it.status == "True");
                reserved.is_some() && evicted.is_some_and(|it| transition_s(it) > *second)
            };
            if version(key).is_some_and(is_later)
                || cluster.state().node_view(queue).strategy() != QueueingStrategy::BestEffortFifo
            {
                continue;
            }
            mark_preemptor(cluster.state_mut(), id);
        }
    }
}
