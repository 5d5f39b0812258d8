//! The state of placement on nodes.

use super::victim_pod::VictimPod;
use super::waiting::WaitingWorkloads;
use crate::key::ObjectKey;
use lockkeeper_api::workload::NominatedPlacement;
use lockkeeper_cluster_state::placement_state::{PlacementState, Victim};
use std::collections::{BTreeMap, BTreeSet};

/// The state of placement on nodes. It exists as soon as a ClusterQueue places workloads on nodes.
#[derive(Debug, Default)]
pub(in crate::reconciler) struct NodePlacement {
    /// Nodes, bound pods, disruption budgets, and the workloads that hold quota.
    pub(in crate::reconciler) nodes: PlacementState,
    /// The nodes that are reserved for the pods of workloads until they are bound.
    pub(super) reserved: BTreeMap<ObjectKey, NominatedPlacement>,
    /// The workloads that wait for their victims.
    pub(super) nominated: BTreeSet<ObjectKey>,
    /// Those of them that have changed since they were planned.
    pub(super) due: BTreeSet<ObjectKey>,
    pub(super) rounds: BTreeMap<ObjectKey, EvictionRounds>,
    pub(in crate::reconciler) waiting: WaitingWorkloads,
    /// The pods to evict.
    pub(in crate::reconciler) victims: BTreeMap<ObjectKey, VictimPod>,
    /// The workloads that had a pod on a node with another priority.
    other_priorities: BTreeSet<ObjectKey>,
    /// The revision of the nodes that all nominated workloads were planned on.
    pub(super) planned_revision: Option<u64>,
    /// When they were, in milliseconds since 1970.
    pub(super) planned_at_ms: i64,
}

impl NodePlacement {
    /// The workloads that hold quota and wait for their victims.
    pub(in crate::reconciler) fn nominated(&self) -> impl Iterator<Item = &ObjectKey> {
        self.nominated.iter()
    }

    /// Records the workload of a pod on a node if they differ in their priority, and returns it.
    pub(in crate::reconciler) fn note_priority(&mut self, pod: &ObjectKey) -> Option<ObjectKey> {
        let (namespace, name) = (pod.namespace(), pod.name());
        let workload = self.nodes.workload_of_other_priority(namespace, name)?;
        let workload = ObjectKey::from_key(workload);
        self.other_priorities.insert(workload.clone());
        Some(workload)
    }

    /// Whether a pod of a workload had another priority.
    pub(in crate::reconciler) fn has_other_priorities(&self, workload: &ObjectKey) -> bool {
        self.other_priorities.contains(workload)
    }

    /// Forgets the priorities of the pods of a workload that holds no quota any more.
    pub(super) fn forget_priorities(&mut self, workload: &ObjectKey) {
        self.other_priorities.remove(workload);
    }
}

/// The evictions for one nominated workload in this process.
#[derive(Debug, Default)]
pub(super) struct EvictionRounds {
    victims: BTreeSet<Victim>,
    /// How often there were further victims, because other pods took the room.
    lost: u32,
}

impl EvictionRounds {
    /// Records the victims of a plan, and returns how often the room was lost so far.
    pub(super) fn record(&mut self, victims: &[Victim]) -> u32 {
        let known = self.victims.len();
        self.victims.extend(victims.iter().cloned());
        if known > 0 && self.victims.len() > known {
            self.lost = self.lost.saturating_add(1);
        }
        self.lost
    }
}
