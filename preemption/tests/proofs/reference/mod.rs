//! A plain reference: everything anew from the objects, nothing kept, nothing clever.
//!
//! It was written from what is known of Kueue's behaviour (the quota tree, both searches for victims, the
//! assignment of flavors, the cycle, the queues), without a look at the code under test.

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

/// What a decision sees.
#[derive(Clone)]
pub struct Snapshot<'a> {
    pub world: &'a ClusterModel,
    pub tree: Tree,
    /// Running workloads that count as gone.
    pub removed: BTreeSet<String>,
}

impl<'a> Snapshot<'a> {
    pub fn new(world: &'a ClusterModel) -> Self {
        Self {
            world,
            tree: Tree::new(world),
            removed: BTreeSet::new(),
        }
    }

    pub fn admitted(&self) -> impl Iterator<Item = (&'a Workload, &'a ModelReservation)> {
        let world = self.world;
        world
            .admitted()
            .filter(|(it, _)| !self.removed.contains(&it.name))
    }

    /// Takes off what a running workload uses.
    pub fn remove(&mut self, workload: &str) {
        let workload = &self.world.workloads[workload];
        let queue = self.tree.index(&workload.queue, true);
        for (pair, amount) in &workload.reservation.as_ref().unwrap().usage {
            self.tree.remove(queue, *pair, *amount);
        }
    }

    pub fn restore(&mut self, workload: &str) {
        let workload = &self.world.workloads[workload];
        let queue = self.tree.index(&workload.queue, true);
        for (pair, amount) in &workload.reservation.as_ref().unwrap().usage {
            self.tree.add(queue, *pair, *amount);
        }
    }
}

/// Who wants room.
#[derive(Clone, Debug)]
pub struct Preemptor {
    pub queue: usize,
    pub priority: i32,
    pub order_time: i64,
    pub policy: Preemption,
    pub needs: BTreeSet<Pair>,
    /// Without what is nothing.
    pub request: BTreeMap<Pair, i64>,
}

impl Preemptor {
    /// Whether the policies let it take a workload, which is in its own queue or in another.
    pub fn may_preempt(&self, other: &Workload, is_own: bool) -> bool {
        let is_lower = other.priority < self.priority;
        if is_own {
            let is_newer = other.priority == self.priority && self.order_time < other.order_time;
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

    /// Whether it fits, as things are.
    pub fn fits(&self, tree: &Tree, may_borrow: bool) -> bool {
        self.request.iter().all(|(pair, amount)| {
            let within = tree.usage(self.queue, *pair) + amount <= tree.nominal(self.queue, *pair);
            (may_borrow || within) && *amount <= tree.available(self.queue, *pair).max(0)
        })
    }
}

/// The order of candidates: evicted first, the lowest priority, the newest, by uid.
pub fn candidate_order<'a>(
    workload: &'a Workload,
    held: &ModelReservation,
) -> (bool, i32, Reverse<i64>, &'a str) {
    let newest = Reverse(held.reserved_at_s);
    (!held.is_evicted, workload.priority, newest, &workload.uid)
}

/// Who has to go; nobody if that makes no room.
pub fn search(snapshot: &Snapshot<'_>, preemptor: &Preemptor) -> Vec<NamedVictim> {
    match &snapshot.world.options.algorithm {
        Algorithm::Classical => classical::search(snapshot, preemptor),
        Algorithm::FairSharing(strategies) => fair::search(snapshot, preemptor, strategies),
    }
}

/// Lets off who is not needed, from the last but one to the first.
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
