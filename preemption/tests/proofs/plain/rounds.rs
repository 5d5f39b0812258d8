//! Cycle after cycle: the heads come out, and go back to where they belong.

use super::cycle;
use super::flavors::Marker;
use super::line::Progress;
use super::scheduler::Scheduler;
use super::tree::Tree;
use crate::model::told::{Cycle, Decided, Entry};
use crate::model::world::Held;
use lockkeeper_preemption::{QueueingStrategy, RequeueReason, RequeuedTo};

impl Scheduler {
    /// Who has waited long enough is active again.
    fn release_due(&mut self, now_s: i64) {
        for line in self.lines.values_mut() {
            let held = line.held.clone();
            for (name, _) in held.iter().filter(|(_, until_s)| **until_s <= now_s) {
                line.held.remove(name);
                line.push(&self.world.workloads[name]);
            }
        }
    }

    pub fn next_cycle(&mut self, now_s: i64) -> Cycle {
        self.cycle += 1;
        self.release_due(now_s);
        let mut told = Cycle::default();
        let mut heads = Vec::new();
        let tree = Tree::of(&self.world);
        for (name, queue) in self.world.queues.clone() {
            let world = self.world.clone();
            let line = self.line(&name);
            if !queue.is_active || tree.nodes[tree.index(&name, true)].is_misconfigured {
                continue;
            }
            let order = line.order(&world, &line.active, queue.strategy);
            let Some(head) = order.first() else {
                continue;
            };
            line.active.remove(head);
            if world.workloads[head].is_in_scope {
                let is_sticky = line.sticky.as_ref() == Some(head);
                told.heads.push((head.clone(), is_sticky));
                let marker = self.marker(&world.workloads[head]);
                heads.push((head.clone(), marker));
            } else {
                line.parked.insert(head.clone());
                told.out_of_scope.push(head.clone());
            }
        }
        let done = cycle::decide(&self.world, &heads);
        for cycle::Done { mut entry, marker } in done {
            entry.requeued = self.conclude(&entry, marker, now_s);
            told.entries.push(entry);
        }
        told
    }

    fn conclude(
        &mut self,
        entry: &Entry,
        marker: Marker,
        now_s: i64,
    ) -> Option<(RequeueReason, RequeuedTo)> {
        let reason = match &entry.decided {
            Decided::Admit => {
                let plan = entry.recomputed.as_ref().unwrap_or(&entry.nominated.plan);
                let held = Held {
                    usage: plan.usage.clone(),
                    reserved_at_s: now_s,
                    is_evicted: false,
                };
                self.reserve(&entry.workload, &held);
                return None;
            }
            Decided::Preempt(_) | Decided::DeferredFit => RequeueReason::PendingPreemption,
            Decided::Skip(_) => RequeueReason::FailedAfterNomination,
            Decided::NoCandidates => RequeueReason::PreemptionNoCandidates,
            Decided::NoFit => RequeueReason::NoFit,
        };
        let is_pending = reason == RequeueReason::PendingPreemption;
        let marker = if is_pending { Marker::new() } else { marker };
        let workload = self.world.workloads[&entry.workload].clone();
        let strategy = self.world.queues[&workload.queue].strategy;
        let (world, cycle) = (self.world.clone(), self.cycle);
        let line = self.line(&workload.queue);
        line.progress.remove(&workload.name);
        if is_pending {
            line.sticky = Some(workload.name.clone());
        }
        let comes_again = strategy == QueueingStrategy::StrictFifo
            || is_pending
            || reason == RequeueReason::FailedAfterNomination
            || !marker.is_empty();
        let to = if comes_again {
            line.push(&workload);
            RequeuedTo::Active
        } else {
            line.park(&world, &workload);
            RequeuedTo::Parked
        };
        if !marker.is_empty() {
            let generation = line.generation;
            let progress = Progress {
                marker,
                cycle,
                generation,
            };
            line.progress.insert(workload.name, progress);
        }
        Some((reason, to))
    }
}
