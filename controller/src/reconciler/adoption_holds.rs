//! Holds admissions in a tree of cohorts while `lockkeeper adopt` checks the quota there.
//!
//! The command lists the cluster, checks that its running jobs fit, and writes their admissions. A workload that is admitted
//! between the list and the writes would use the same quota. So the controller confirms an adoption only when no admission of
//! its tree is under way, and admits and preempts nothing there until the adoption has its quota, or its hold ends.

use super::adoption::{REQUESTED, annotation, is_adopting, needs_quota};
use super::model::{Model, TrackedWorkload};
use super::pending_decision::PendingDecision;
use crate::key::ObjectKey;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{Decision, Entry, NodeId, State};
use std::collections::{BTreeMap, BTreeSet};

/// The longest hold of an adoption, in milliseconds. An interrupted command delays other workloads no longer.
const HOLD_MAX_MS: i64 = 120_000;

/// The pause after which admissions under way are looked for again, in milliseconds.
const RECHECK_PAUSE_MS: i64 = 50;

/// The adoptions that wait for their quota.
#[derive(Debug, Default)]
pub(crate) struct AdoptionHolds {
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

/// The trees of cohorts where an adoption waits for its quota.
#[derive(Debug)]
pub(crate) struct HeldTrees {
    roots: BTreeSet<NodeId>,
}

impl HeldTrees {
    /// Whether an entry of a cycle would change what is admitted in one of the trees.
    pub(crate) fn holds(&self, core: &State, entry: &Entry) -> bool {
        matches!(entry.decision, Decision::Admit | Decision::Preempt(_))
            && self.contains(core, entry.queue)
    }

    /// Whether a queue is in one of the trees.
    pub(crate) fn contains(&self, core: &State, queue: NodeId) -> bool {
        !self.roots.is_empty() && self.roots.contains(&core.node_view(queue).root())
    }
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

    /// The trees in which nothing is admitted or preempted now. Costs the adoptions.
    pub(crate) fn trees(&self, cluster: &ClusterState, now_ms: i64) -> HeldTrees {
        let holds = self.by_workload.iter();
        let in_effect = holds.filter(|(_, it)| it.until_ms > now_ms);
        let roots = in_effect.filter_map(|(key, _)| root_of(cluster, key));
        HeldTrees {
            roots: roots.collect(),
        }
    }

    /// The workloads whose hold has ended, or ends now.
    pub(crate) fn expired(&self, now_ms: i64) -> Vec<ObjectKey> {
        let holds = self.by_workload.iter();
        let expired = holds.filter(|(_, it)| it.until_ms <= now_ms);
        expired.map(|(key, _)| key.clone()).collect()
    }

    /// Begins, continues or ends the hold of a workload. `adoption` is its object if it is being adopted and has no quota;
    /// `is_under_way` tells whether an admission of a tree is, and is asked until there is none. True if a hold ends, so that a
    /// cycle is due.
    pub(crate) fn update(
        &mut self,
        cluster: &mut ClusterState,
        key: &ObjectKey,
        adoption: Option<&Workload>,
        now_ms: i64,
        is_under_way: impl FnOnce(&ClusterState, NodeId) -> bool,
    ) -> bool {
        let Some(workload) = adoption else {
            return self.by_workload.remove(key).is_some();
        };
        cluster.state_mut().apply_changes();
        let root = root_of(cluster, key);
        let mut has_ended = false;
        let mut hold = match self.by_workload.get(key) {
            Some(it) if it.until_ms > now_ms => *it,
            // The command has not continued within the bound.
            Some(it) if annotation(workload) != Some(REQUESTED) => {
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
            || root.is_none_or(|root| !is_under_way(cluster, root));
        hold.root = root;
        self.by_workload.insert(key.clone(), hold);
        has_ended
    }
}

/// The object of a workload that is being adopted and has no quota.
pub(super) fn adoption_without_quota(workload: &TrackedWorkload, now_ms: i64) -> Option<&Workload> {
    let is_waiting = is_adopting(workload, now_ms) && needs_quota(&workload.object);
    (is_waiting && !workload.is_deleted).then_some(&*workload.object)
}

/// The root of the tree of a workload's ClusterQueue.
fn root_of(cluster: &ClusterState, key: &ObjectKey) -> Option<NodeId> {
    let core = cluster.state();
    let workload = core.workload(key.key())?;
    let queue = core.workload_view(workload).queue()?;
    Some(core.node_view(queue).root())
}

/// Whether the API server may not have an admission yet that was decided in a tree. Costs the pending decisions.
pub(super) fn has_admission_under_way(model: &Model, cluster: &ClusterState, root: NodeId) -> bool {
    let mut decided = model.decided();
    decided.any(|(key, decision)| {
        matches!(decision, PendingDecision::Admit(_)) && root_of(cluster, key) == Some(root)
    })
}
