//! The objects and the queues, with everything that can happen to them.

use super::flavors::{Applicant, Marker};
use super::line::Line;
use super::tree::Tree;
use super::{Snapshot, nominate};
use crate::model::told::{Gone, Nominated, Places};
use crate::model::world::{Cohort, Held, Pair, Queue, Workload, World};
use lockkeeper_preemption::{Options, QueueingStrategy};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    pub world: World,
    pub(super) lines: BTreeMap<String, Line>,
    pub(super) cycle: u64,
}

impl Scheduler {
    pub fn new(options: Options) -> Self {
        let mut scheduler = Self::default();
        scheduler.world.options = options;
        scheduler
    }

    pub fn line(&mut self, queue: &str) -> &mut Line {
        self.lines.entry(queue.to_owned()).or_default()
    }

    /// The queues of the tree of a node.
    fn tree_of(&self, name: &str, is_queue: bool) -> Vec<String> {
        let tree = Tree::of(&self.world);
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

    /// Quota came free in a tree: what is parked there is looked at again.
    fn revive(&mut self, queues: &[String]) {
        for queue in queues {
            let line = self.lines.entry(queue.clone()).or_default();
            line.revive(&self.world);
        }
    }

    /// Quota changes in the trees of a node as they were and as they are: what was tried there is out
    /// of date, and what is parked is looked at again.
    fn change(&mut self, name: &str, is_queue: bool, change: impl FnOnce(&mut World)) {
        let before = self.tree_of(name, is_queue);
        change(&mut self.world);
        for queues in [before, self.tree_of(name, is_queue)] {
            for queue in &queues {
                self.line(queue).generation += 1;
            }
            self.revive(&queues);
        }
    }

    pub fn set_queue(&mut self, queue: &Queue) {
        self.change(&queue.name, true, |world| {
            world.queues.insert(queue.name.clone(), queue.clone());
        });
    }

    pub fn remove_queue(&mut self, name: &str) {
        self.change(name, true, |world| {
            world.queues.remove(name);
        });
    }

    pub fn set_cohort(&mut self, cohort: &Cohort) {
        self.change(&cohort.name, false, |world| {
            world.cohorts.insert(cohort.name.clone(), cohort.clone());
        });
    }

    pub fn remove_cohort(&mut self, name: &str) {
        self.change(name, false, |world| {
            world.cohorts.remove(name);
        });
    }

    /// A workload, pending or running.
    pub fn add(&mut self, workload: &Workload) {
        self.remove(&workload.name);
        let (name, queue) = (workload.name.clone(), workload.queue.clone());
        self.world.workloads.insert(name, workload.clone());
        if workload.held.is_some() {
            self.line(&queue).generation += 1;
        } else {
            self.line(&queue).push(workload);
        }
    }

    pub fn reserve(&mut self, name: &str, held: &Held) {
        let workload = self.world.workloads.get_mut(name).unwrap();
        let mut held = held.clone();
        held.usage.retain(|_, amount| *amount != 0);
        workload.held = Some(held);
        let queue = workload.queue.clone();
        let line = self.line(&queue);
        line.forget(name);
        line.generation += 1;
    }

    pub fn mark_evicted(&mut self, name: &str) {
        let workload = self.world.workloads.get_mut(name).unwrap();
        workload.held.as_mut().unwrap().is_evicted = true;
    }

    pub fn release(&mut self, name: &str) {
        let workload = self.world.workloads.get_mut(name).unwrap();
        workload.held = None;
        let workload = workload.clone();
        let line = self.line(&workload.queue);
        line.generation += 1;
        line.push(&workload);
        let tree = self.tree_of(&workload.queue, true);
        self.revive(&tree);
    }

    pub fn remove(&mut self, name: &str) {
        let Some(workload) = self.world.workloads.get(name).cloned() else {
            return;
        };
        let tree = self.tree_of(&workload.queue, true);
        self.world.workloads.remove(name);
        let line = self.line(&workload.queue);
        line.forget(name);
        if workload.held.is_some() {
            line.generation += 1;
            self.revive(&tree);
        }
    }

    pub fn hold(&mut self, name: &str, until_s: i64) {
        let queue = self.world.workloads[name].queue.clone();
        let line = self.line(&queue);
        line.take_out(name);
        line.held.insert(name.to_owned(), until_s);
    }

    /// The active and the parked workloads of a queue, in order.
    pub fn places(&self, queue: &str) -> Places {
        let Some(line) = self.lines.get(queue) else {
            return (Vec::new(), Vec::new());
        };
        let declared = self.world.queues.get(queue);
        let strategy = declared.map_or(QueueingStrategy::default(), |it| it.strategy);
        let active = line.order(&self.world, &line.active, strategy);
        let in_line = QueueingStrategy::StrictFifo;
        (active, line.order(&self.world, &line.parked, in_line))
    }

    pub fn usage(&self) -> BTreeMap<String, BTreeMap<Pair, i64>> {
        usage(&Tree::of(&self.world))
    }

    pub(super) fn marker(&self, workload: &Workload) -> Marker {
        let Some(line) = self.lines.get(&workload.queue) else {
            return Marker::new();
        };
        let Some(progress) = line.progress.get(&workload.name) else {
            return Marker::new();
        };
        let is_fresh = progress.cycle + 1 >= self.cycle;
        if is_fresh || progress.generation >= line.generation {
            progress.marker.clone()
        } else {
            Marker::new()
        }
    }

    pub fn nominate(&self, name: &str) -> Nominated {
        let workload = &self.world.workloads[name];
        let snapshot = Snapshot::of(&self.world);
        nominate::nominate(&snapshot, workload, &self.marker(workload), None)
    }

    /// The victims for a request that is given.
    pub fn search(&self, name: &str, needs: &[Pair], request: &BTreeMap<Pair, i64>) -> Vec<Gone> {
        let workload = &self.world.workloads[name];
        let snapshot = Snapshot::of(&self.world);
        let applicant = Applicant {
            workload,
            queue: &self.world.queues[&workload.queue],
            counts: &[],
            marker: &Marker::new(),
            only: None,
        };
        let needs = needs.iter().copied().collect();
        let preemptor = applicant.preemptor(&snapshot, needs, request.clone());
        super::search(&snapshot, &preemptor)
    }
}

/// By the names of the nodes, without what is nothing.
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
