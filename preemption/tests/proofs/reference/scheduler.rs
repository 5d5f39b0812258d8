//! The objects and the queues, with all events.

use super::flavors::{AssignmentRequest, TriedFlavors};
use super::pending_queue::PendingQueue;
use super::tree::Tree;
use super::{Snapshot, nominate};
use crate::model::cluster_model::{ClusterModel, Cohort, ModelReservation, Pair, Queue, Workload};
use crate::model::named_decisions::{NamedNomination, NamedVictim, QueueContents};
use lockkeeper_preemption::{Options, QueueingStrategy};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    pub cluster_model: ClusterModel,
    pub(super) pending_queues: BTreeMap<String, PendingQueue>,
    pub(super) cycle: u64,
}

impl Scheduler {
    pub fn new(options: Options) -> Self {
        let mut scheduler = Self::default();
        scheduler.cluster_model.options = options;
        scheduler
    }

    pub fn pending_queue(&mut self, queue: &str) -> &mut PendingQueue {
        self.pending_queues.entry(queue.to_owned()).or_default()
    }

    /// The queues of the tree of a node.
    fn queues_in_tree(&self, name: &str, is_queue: bool) -> Vec<String> {
        let tree = Tree::new(&self.cluster_model);
        let mut nodes = tree.nodes.iter();
        let node = nodes.position(|it| it.name == name && it.is_queue == is_queue);
        let Some(node) = node else {
            return Vec::new();
        };
        let root = tree.root(node);
        let below = tree.below(root).into_iter().map(|it| &tree.nodes[it]);
        below
            .filter(|it| it.is_queue)
            .map(|it| it.name.clone())
            .collect()
    }

    /// Quota became free in a tree: its inadmissible workloads become active again.
    fn reactivate(&mut self, queues: &[String]) {
        for queue in queues {
            let line = self.pending_queues.entry(queue.clone()).or_default();
            line.reactivate(&self.cluster_model);
        }
    }

    /// Changes the trees of a node: in the trees before and after the change, the tried flavors are out of date, and
    /// inadmissible workloads become active again.
    fn change(&mut self, name: &str, is_queue: bool, change: impl FnOnce(&mut ClusterModel)) {
        let before = self.queues_in_tree(name, is_queue);
        change(&mut self.cluster_model);
        for queues in [before, self.queues_in_tree(name, is_queue)] {
            for queue in &queues {
                self.pending_queue(queue).generation += 1;
            }
            self.reactivate(&queues);
        }
    }

    pub fn set_queue(&mut self, queue: &Queue) {
        self.change(&queue.name, true, |cluster_model| {
            cluster_model
                .queues
                .insert(queue.name.clone(), queue.clone());
        });
    }

    pub fn remove_queue(&mut self, name: &str) {
        self.change(name, true, |cluster_model| {
            cluster_model.queues.remove(name);
        });
    }

    pub fn set_cohort(&mut self, cohort: &Cohort) {
        self.change(&cohort.name, false, |cluster_model| {
            cluster_model
                .cohorts
                .insert(cohort.name.clone(), cohort.clone());
        });
    }

    pub fn remove_cohort(&mut self, name: &str) {
        self.change(name, false, |cluster_model| {
            cluster_model.cohorts.remove(name);
        });
    }

    /// Adds a workload, pending or running.
    pub fn add(&mut self, workload: &Workload) {
        self.remove(&workload.name);
        let (name, queue) = (workload.name.clone(), workload.queue.clone());
        self.cluster_model.workloads.insert(name, workload.clone());
        if workload.reservation.is_some() {
            self.pending_queue(&queue).generation += 1;
        } else {
            self.pending_queue(&queue).push(workload);
        }
    }

    pub fn reserve(&mut self, name: &str, held: &ModelReservation) {
        let workload = self.cluster_model.workloads.get_mut(name).unwrap();
        let held = held.clone();
        workload.reservation = Some(held);
        let queue = workload.queue.clone();
        let line = self.pending_queue(&queue);
        line.remove(name);
        line.generation += 1;
    }

    pub fn mark_evicted(&mut self, name: &str) {
        let workload = self.cluster_model.workloads.get_mut(name).unwrap();
        let held = workload.reservation.as_mut().unwrap();
        if !std::mem::replace(&mut held.is_evicted, true) {
            let queue = workload.queue.clone();
            self.pending_queue(&queue).generation += 1;
        }
    }

    pub fn release(&mut self, name: &str) {
        let workload = self.cluster_model.workloads.get_mut(name).unwrap();
        workload.reservation = None;
        let workload = workload.clone();
        let line = self.pending_queue(&workload.queue);
        line.generation += 1;
        line.push(&workload);
        let tree = self.queues_in_tree(&workload.queue, true);
        self.reactivate(&tree);
    }

    pub fn remove(&mut self, name: &str) {
        let Some(workload) = self.cluster_model.workloads.get(name).cloned() else {
            return;
        };
        let tree = self.queues_in_tree(&workload.queue, true);
        self.cluster_model.workloads.remove(name);
        let line = self.pending_queue(&workload.queue);
        line.remove(name);
        if workload.reservation.is_some() {
            line.generation += 1;
            self.reactivate(&tree);
        }
    }

    pub fn set_backoff(&mut self, name: &str, until_s: i64) {
        let queue = self.cluster_model.workloads[name].queue.clone();
        let line = self.pending_queue(&queue);
        line.dequeue(name);
        line.backing_off.insert(name.to_owned(), until_s);
    }

    /// The active and the inadmissible workloads of a queue, in order.
    pub fn queue_contents(&self, queue: &str) -> QueueContents {
        let Some(line) = self.pending_queues.get(queue) else {
            return (Vec::new(), Vec::new());
        };
        let declared = self.cluster_model.queues.get(queue);
        let strategy = declared.map_or(QueueingStrategy::default(), |it| it.strategy);
        let active = line.order(&self.cluster_model, &line.active, strategy);
        let in_line = QueueingStrategy::StrictFifo;
        (
            active,
            line.order(&self.cluster_model, &line.inadmissible, in_line),
        )
    }

    pub fn usage(&self) -> BTreeMap<String, BTreeMap<Pair, i64>> {
        usage(&Tree::new(&self.cluster_model))
    }

    pub(super) fn tried_flavors(&self, workload: &Workload) -> TriedFlavors {
        let Some(line) = self.pending_queues.get(&workload.queue) else {
            return TriedFlavors::new();
        };
        let Some(progress) = line.last_assignments.get(&workload.name) else {
            return TriedFlavors::new();
        };
        let is_fresh = progress.cycle + 1 >= self.cycle;
        if is_fresh || progress.generation >= line.generation {
            progress.tried_flavors.clone()
        } else {
            TriedFlavors::new()
        }
    }

    pub fn nominate(&self, name: &str) -> NamedNomination {
        let workload = &self.cluster_model.workloads[name];
        let snapshot = Snapshot::new(&self.cluster_model);
        nominate::nominate(&snapshot, workload, &self.tried_flavors(workload), None)
    }

    /// The victims for a given request.
    pub fn search(
        &self,
        name: &str,
        needs: &[Pair],
        request: &BTreeMap<Pair, i64>,
    ) -> Vec<NamedVictim> {
        let workload = &self.cluster_model.workloads[name];
        let snapshot = Snapshot::new(&self.cluster_model);
        let applicant = AssignmentRequest {
            workload,
            queue: &self.cluster_model.queues[&workload.queue],
            counts: &[],
            tried_flavors: &TriedFlavors::new(),
            allowed_flavors: None,
        };
        let needs = needs.iter().copied().collect();
        let preemptor = applicant.preemptor(&snapshot, needs, request.clone());
        super::search(&snapshot, &preemptor)
    }
}

/// The usage by node name, without amounts of 0.
pub fn usage(tree: &Tree) -> BTreeMap<String, BTreeMap<Pair, i64>> {
    let mut all = BTreeMap::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        let pairs = (0..3).flat_map(|flavor| (0..3).map(move |it| (flavor, it)));
        let usage = pairs.map(|pair| (pair, tree.usage(at, pair)));
        let usage: BTreeMap<Pair, i64> = usage.filter(|(_, it)| *it != 0).collect();
        if !usage.is_empty() {
            all.insert(node.name.clone(), usage);
        }
    }
    all
}
