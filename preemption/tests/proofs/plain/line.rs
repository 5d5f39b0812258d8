//! The pending workloads of one queue: active, parked, or held back for a while.

use super::flavors::Marker;
use crate::model::world::{Pods, Workload, World};
use lockkeeper_preemption::QueueingStrategy;
use std::collections::{BTreeMap, BTreeSet};

/// What makes workloads fare alike.
pub type Class = (Vec<Pods>, i32);

pub fn class(workload: &Workload) -> Class {
    (workload.pods.clone(), workload.priority)
}

/// Where the search for flavors goes on.
#[derive(Clone, Debug)]
pub struct Progress {
    pub marker: Marker,
    pub cycle: u64,
    pub generation: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Line {
    pub active: BTreeSet<String>,
    pub parked: BTreeSet<String>,
    /// Until when.
    pub held: BTreeMap<String, i64>,
    pub sticky: Option<String>,
    pub parked_classes: Vec<Class>,
    pub progress: BTreeMap<String, Progress>,
    /// Rises when quota may have become free.
    pub generation: u64,
}

impl Line {
    /// Takes a workload in that waits.
    pub fn push(&mut self, workload: &Workload) {
        if self.parked_classes.contains(&class(workload)) {
            self.parked.insert(workload.name.clone());
        } else {
            self.active.insert(workload.name.clone());
        }
    }

    pub fn take_out(&mut self, workload: &str) {
        self.active.remove(workload);
        self.parked.remove(workload);
        self.held.remove(workload);
    }

    /// A workload that leaves for good.
    pub fn forget(&mut self, workload: &str) {
        self.take_out(workload);
        self.progress.remove(workload);
        if self.sticky.as_deref() == Some(workload) {
            self.sticky = None;
        }
    }

    /// Names in queue order; the workload that is waited for first, where that counts.
    pub fn order(
        &self,
        world: &World,
        names: &BTreeSet<String>,
        strategy: QueueingStrategy,
    ) -> Vec<String> {
        let mut names: Vec<String> = names.iter().cloned().collect();
        names.sort_by_key(|name| {
            let it = &world.workloads[name];
            let is_first =
                strategy == QueueingStrategy::BestEffortFifo && self.sticky.as_ref() == Some(name);
            let uid = it.uid.clone();
            (!is_first, -i64::from(it.priority), it.order_time, uid)
        });
        names
    }

    /// Parks a workload, and with it all that fare alike, until something changes.
    pub fn park(&mut self, world: &World, workload: &Workload) {
        let class = class(workload);
        self.active.remove(&workload.name);
        self.parked.insert(workload.name.clone());
        for name in self.active.clone() {
            if self::class(&world.workloads[&name]) == class {
                self.active.remove(&name);
                self.parked.insert(name);
            }
        }
        self.parked_classes.push(class);
    }

    /// Something has changed: back to active.
    pub fn revive(&mut self, world: &World) {
        self.parked_classes.clear();
        for name in std::mem::take(&mut self.parked) {
            if world.workloads[&name].is_in_scope {
                self.active.insert(name);
            } else {
                self.parked.insert(name);
            }
        }
    }
}
