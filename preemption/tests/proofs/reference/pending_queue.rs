//! The pending workloads of one queue: active, inadmissible, or in backoff.

use super::flavors::TriedFlavors;
use crate::model::cluster_model::{ClusterModel, Pods, Workload};
use lockkeeper_preemption::QueueingStrategy;
use std::collections::{BTreeMap, BTreeSet};

/// Workloads with the same key get the same decision.
pub type EquivalenceClass = (Vec<Pods>, i32);

pub fn equivalence_class(workload: &Workload) -> EquivalenceClass {
    (workload.pods.clone(), workload.priority)
}

/// The position where the search for flavors continues.
#[derive(Clone, Debug)]
pub struct LastAssignment {
    pub tried_flavors: TriedFlavors,
    pub cycle: u64,
    pub generation: u64,
}

#[derive(Clone, Debug, Default)]
pub struct PendingQueue {
    pub active: BTreeSet<String>,
    pub inadmissible: BTreeSet<String>,
    /// The end of each backoff.
    pub backing_off: BTreeMap<String, i64>,
    pub sticky: Option<String>,
    pub inadmissible_classes: Vec<EquivalenceClass>,
    pub last_assignments: BTreeMap<String, LastAssignment>,
    /// Increases when quota may have become free.
    pub generation: u64,
}

impl PendingQueue {
    /// Adds a pending workload.
    pub fn push(&mut self, workload: &Workload) {
        if self
            .inadmissible_classes
            .contains(&equivalence_class(workload))
        {
            self.inadmissible.insert(workload.name.clone());
        } else {
            self.active.insert(workload.name.clone());
        }
    }

    pub fn dequeue(&mut self, workload: &str) {
        self.active.remove(workload);
        self.inadmissible.remove(workload);
        self.backing_off.remove(workload);
    }

    /// Removes a deleted workload.
    pub fn remove(&mut self, workload: &str) {
        self.dequeue(workload);
        self.last_assignments.remove(workload);
        if self.sticky.as_deref() == Some(workload) {
            self.sticky = None;
        }
    }

    /// Names in queue order; the workload that the queue waits for comes first, where that applies.
    pub fn order(
        &self,
        cluster_model: &ClusterModel,
        names: &BTreeSet<String>,
        strategy: QueueingStrategy,
    ) -> Vec<String> {
        let mut names: Vec<String> = names.iter().cloned().collect();
        names.sort_by_key(|name| {
            let workload = &cluster_model.workloads[name];
            let is_first =
                strategy == QueueingStrategy::BestEffortFifo && self.sticky.as_ref() == Some(name);
            let uid = workload.uid.clone();
            (
                !is_first,
                -i64::from(workload.priority),
                workload.order_time,
                uid,
            )
        });
        names
    }

    /// Marks a workload and its equivalence class as inadmissible, until something changes.
    pub fn mark_inadmissible(&mut self, cluster_model: &ClusterModel, workload: &Workload) {
        let class = equivalence_class(workload);
        self.active.remove(&workload.name);
        self.inadmissible.insert(workload.name.clone());
        for name in self.active.clone() {
            if self::equivalence_class(&cluster_model.workloads[&name]) == class {
                self.active.remove(&name);
                self.inadmissible.insert(name);
            }
        }
        self.inadmissible_classes.push(class);
    }

    /// Makes the inadmissible workloads active after a change.
    pub fn reactivate(&mut self, cluster_model: &ClusterModel) {
        self.inadmissible_classes.clear();
        for name in std::mem::take(&mut self.inadmissible) {
            if cluster_model.workloads[&name].is_in_scope {
                self.active.insert(name);
            } else {
                self.inadmissible.insert(name);
            }
        }
    }
}
