//! Decisions of a preview's cycles that the controller has not written yet.

use lockkeeper_cluster_state::ClusterState;
use std::collections::BTreeMap;

/// How long the write of a decision is waited for, in milliseconds. Then it counts as not made: the controller may have
/// another configuration, or not run.
const CONFIRMATION_MS: i64 = 10_000;

/// The workloads (`namespace/name`) with an admission or eviction that no watch has shown, with the time of the decision.
#[derive(Debug, Default)]
pub(super) struct UnconfirmedDecisions {
    since_ms: BTreeMap<String, i64>,
}

impl UnconfirmedDecisions {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.since_ms.is_empty()
    }

    /// Records a decision.
    pub(super) fn insert(&mut self, workload: &str, now_ms: i64) {
        self.since_ms.entry(workload.to_owned()).or_insert(now_ms);
    }

    /// The object has changed or is gone: it shows the decision, or supersedes it.
    pub(super) fn remove(&mut self, workload: &str) {
        self.since_ms.remove(workload);
    }

    /// Withdraws the decisions that were not written in time; false if there are none.
    pub(super) fn withdraw_expired(&mut self, cluster: &mut ClusterState, now_ms: i64) -> bool {
        let before = self.since_ms.len();
        self.since_ms.retain(|workload, since_ms| {
            let is_kept = now_ms.saturating_sub(*since_ms) < CONFIRMATION_MS;
            if !is_kept {
                withdraw(cluster, workload);
            }
            is_kept
        });
        self.since_ms.len() != before
    }
}

/// Restores the state of a workload from its object.
fn withdraw(cluster: &mut ClusterState, workload: &str) {
    if cluster.is_assumed(workload) {
        cluster.revert_admission(workload);
    } else if let Some(id) = cluster.state().workload(workload)
        && let Some(mut reservation) = cluster.state().workload_view(id).reservation()
    {
        reservation.is_evicted = false;
        cluster.state_mut().reserve(id, &reservation);
    }
}
