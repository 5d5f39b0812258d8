//! A plain reference: it computes everything from the objects each time, without caches or optimizations.
//!
//! It implements Kueue's behaviour (the quota tree, both searches for victims, the assignment of flavors, the cycle,
//! the queues) independently of the code under test.

pub mod classical;
pub mod cycle;
pub mod fair;
pub mod flavors;
pub mod nominate;
pub mod order;
pub mod pending_queue;
pub mod scheduler;
pub mod scheduling_loop;
pub mod tree;

use crate::model::cluster_model::{ClusterModel, ModelReservation, Pair, Workload};
use crate::model::named_decisions::NamedVictim;
use lockkeeper_preemption::{Algorithm, Preemption, ReclaimWithinCohort, WithinClusterQueue};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tree::Tree;

/// The input of a decision.
#[derive(Clone)]
pub struct Snapshot<'a> {
    pub cluster_model: &'a ClusterModel,
    pub tree: Tree,
    /// Running workloads that are treated as removed.
    pub removed: BTreeSet<String>,
}

impl<'a> Snapshot<'a> {
    pub fn new(cluster_model: &'a ClusterModel) -> Self {
        Self {
            cluster_model,
            tree: Tree::new(cluster_model),
            removed: BTreeSet::new(),
        }
    }

    pub fn admitted(&self) -> impl Iterator<Item = (&'a Workload, &'a ModelReservation)> {
        let cluster_model = self.cluster_model;
        cluster_model
            .admitted()
            .filter(|(it, _)| !self.removed.contains(&it.name))
    }

    /// Subtracts the usage of a running workload.
    pub fn remove(&mut self, workload: &str) {
        let workload = &self.cluster_model.workloads[workload];
        let queue = self.tree.index(&workload.queue, true);
        for (pair, amount) in &workload.reservation.as_ref().unwrap().usage {
            self.tree.remove(queue, *pair, *amount);
        }
    }

    pub fn restore(&mut self, workload: &str) {
        let workload = &self.cluster_model.workloads[workload];
        let queue = self.tree.index(&workload.queue, true);
        for (pair, amount) in &workload.reservation.as_ref().unwrap().usage {
            self.tree.add(queue, *pair, *amount);
        }
    }
}

/// The workload that needs quota.
#[derive(Clone, Debug)]
pub struct Preemptor {
    pub queue: usize,
    pub priority: i32,
    pub order_time: i64,
    pub policy: Preemption,
    pub needs: BTreeSet<Pair>,
    /// Without amounts of 0.
    pub request: BTreeMap<Pair, i64>,
}

impl Preemptor {
    /// Whether the policies let it preempt a workload of its own queue or of another one.
    pub fn may_preempt(&self, other: &Workload, is_own: bool) -> bool {
        let priority = other.candidate_priority();
        let is_lower = priority < self.priority;
        if is_own {
            let is_newer = priority == self.priority && self.order_time < other.order_time;
            return match self.policy.within_cluster_queue {
                WithinClusterQueue::Never => false,
                WithinClusterQueue::LowerPriority => is_lower,
                WithinClusterQueue::LowerOrNewerEqualPriority => is_lower || is_newer,
            };
        }
        match self.policy.reclaim_within_cohort {
            ReclaimWithinCohort::Never => false,
            ReclaimWithinCohort::LowerPriority => is_lower,
            ReclaimWithinCohort::Any => true,
        }
    }

    /// Whether it fits in the given tree.
    pub fn fits(&self, tree: &Tree, may_borrow: bool) -> bool {
        self.request.iter().all(|(pair, amount)| {
            let within = tree.usage(self.queue, *pair) + amount <= tree.nominal(self.queue, *pair);
            (may_borrow || within) && *amount <= tree.available(self.queue, *pair).max(0)
        })
    }
}

/// The order of candidates: evicted first, then the lowest priority, the newest, the uid.
pub fn candidate_order<'a>(
    workload: &'a Workload,
    held: &ModelReservation,
) -> (bool, i32, Reverse<i64>, &'a str) {
    let newest = Reverse(held.reserved_at_s);
    let priority = workload.candidate_priority();
    (!held.is_evicted, priority, newest, &workload.uid)
}

/// The victims; empty if even all candidates do not make enough room.
pub fn search(snapshot: &Snapshot<'_>, preemptor: &Preemptor) -> Vec<NamedVictim> {
    match &snapshot.cluster_model.options.algorithm {
        Algorithm::Classical => classical::search(snapshot, preemptor),
        Algorithm::FairSharing(strategies) => fair::search(snapshot, preemptor, strategies),
    }
}

/// Reprieves victims that are not needed, from the last but one to the first.
pub fn fill_back(
    snapshot: &mut Snapshot<'_>,
    preemptor: &Preemptor,
    may_borrow: bool,
    victims: &mut Vec<NamedVictim>,
) {
    for at in (0..victims.len() - 1).rev() {
        let (name, _) = victims[at].clone();
        snapshot.restore(&name);
        if preemptor.fits(&snapshot.tree, may_borrow) {
            let last = victims.pop().unwrap();
            if at < victims.len() {
                victims[at] = last;
            }
        } else {
            snapshot.remove(&name);
        }
    }
}
