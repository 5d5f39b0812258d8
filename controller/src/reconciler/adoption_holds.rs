//! Holds admissions in a tree of cohorts while `lockkeeper adopt` checks the quota there.
//!
//! The command lists the cluster, checks that its running jobs fit, and writes their admissions. A workload that is admitted
//! between the list and the writes would use the same quota. So the controller confirms an adoption only when no admission of
//! its tree is under way, and admits and preempts nothing there until the adoption has its quota, or its hold ends.

use super::adoption::{REQUESTED, annotation, is_adopting};
use super::model::{Model, TrackedWorkload};
use super::pending_decision::PendingDecision;
use crate::key::ObjectKey;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The longest hold of an adoption, in milliseconds. An interrupted command delays other workloads no longer.
const HOLD_MAX_MS: i64 = 120_000;

/// The pause after which admissions under way are looked for again, in milliseconds.
const RECHECK_PAUSE_MS: i64 = 50;

/// The adoptions that wait for their quota.
#[derive(Debug, Default)]
pub(super) struct AdoptionHolds {
    by_workload: BTreeMap<ObjectKey, AdoptionHold>,
}

#[derive(Clone, Copy, Debug)]
struct AdoptionHold {
    /// Milliseconds since 1970.
    until_ms: i64,
    /// The root of the tree; `None` without a ClusterQueue.
    root: Option<NodeId>,
    /// Whether no admission of the tree is under way. The hold keeps it so.
    is_clear: bool,
}

impl AdoptionHolds {
    /// Whether the adoption of a workload may be confirmed: no admission of its tree is under way.
    pub(super) fn is_clear(&self, key: &ObjectKey) -> bool {
        self.by_workload.get(key).is_some_and(|it| it.is_clear)
    }

    /// When the workload has to be planned again for its hold, in milliseconds since 1970.
    pub(super) fn replan_at_ms(&self, key: &ObjectKey, now_ms: i64) -> Option<i64> {
        let hold = self.by_workload.get(key)?;
        let at_ms = if hold.is_clear {
            hold.until_ms
        } else {
            now_ms.saturating_add(RECHECK_PAUSE_MS)
        };
        (hold.until_ms > now_ms).then_some(at_ms)
    }

    /// The roots of the trees in which nothing is admitted or preempted now. Costs the adoptions.
    pub(super) fn roots(&self, cluster: &ClusterState, now_ms: i64) -> BTreeSet<NodeId> {
        let holds = self.by_workload.iter();
        let in_effect = holds.filter(|(_, it)| it.until_ms > now_ms);
        in_effect
            .filter_map(|(key, _)| root_of(cluster, key))
            .collect()
    }

    /// Begins, continues or ends the hold of a workload, as its object is now. True if a hold ends, so that a cycle is due.
    /// Costs the pending decisions while an admission of its tree is under way.
    pub(super) fn update(
        &mut self,
        model: &Model,
        cluster: &mut ClusterState,
        key: &ObjectKey,
        now_ms: i64,
    ) -> bool {
        let workload = model.workloads.get(key);
        let Some(workload) = workload.filter(|it| waits_for_quota(it, now_ms)) else {
            return self.by_workload.remove(key).is_some();
        };
        cluster.state_mut().apply_changes();
        let root = root_of(cluster, key);
        let mut has_ended = false;
        let mut hold = match self.by_workload.get(key) {
            Some(it) if it.until_ms > now_ms => *it,
            // The command has not continued within the bound.
            Some(it) if annotation(&workload.object) != Some(REQUESTED) => {
                has_ended = true;
                *it
            }
            _ => AdoptionHold {
                until_ms: now_ms.saturating_add(HOLD_MAX_MS),
                root,
                is_clear: false,
            },
        };
        hold.is_clear = hold.is_clear && hold.root == root
            || root.is_none_or(|root| !has_admission_under_way(model, cluster, root));
        hold.root = root;
        self.by_workload.insert(key.clone(), hold);
        has_ended
    }
}

fn waits_for_quota(workload: &TrackedWorkload, now_ms: i64) -> bool {
    is_adopting(workload, now_ms) && !workload.holds_quota() && !workload.is_deleted
}

/// The root of the tree of a workload's ClusterQueue.
fn root_of(cluster: &ClusterState, key: &ObjectKey) -> Option<NodeId> {
    let core = cluster.state();
    let workload = core.workload(key.key())?;
    let queue = core.workload_view(workload).queue()?;
    Some(core.node_view(queue).root())
}

/// Whether the API server may not have an admission yet that was decided in a tree.
fn has_admission_under_way(model: &Model, cluster: &ClusterState, root: NodeId) -> bool {
    let mut decided = model.decided();
    decided.any(|(key, decision)| {
        matches!(decision, PendingDecision::Admit(_)) && root_of(cluster, key) == Some(root)
    })
}
