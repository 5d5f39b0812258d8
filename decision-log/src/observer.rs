//! Observers of a replay.

use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::journal::{ClusterEvent, CycleRecord};
use lockkeeper_preemption::Cycle;

/// What is done at each step of a replay. Each method does nothing by default.
pub trait ReplayObserver {
    /// A file of the log begins: a new state, whose objects follow.
    fn begin_file(&mut self) {}

    /// An event is about to be applied to the state.
    fn before_event(&mut self, _cluster: &ClusterState, _event: &ClusterEvent) {}

    /// An event other than a cycle was applied.
    fn after_event(&mut self, _cluster: &ClusterState, _event: &ClusterEvent) {}

    /// A cycle has run.
    fn after_cycle(&mut self, _cluster: &ClusterState, _cycle: &Cycle, _record: &CycleRecord) {}
}

impl ReplayObserver for () {}
