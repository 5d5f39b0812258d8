//! Scheduling cycles: takes the heads of the queues, decides, and requeues the rest.

use super::cycle;
use super::flavors::TriedFlavors;
use super::pending_queue::LastAssignment;
use super::scheduler::Scheduler;
use super::tree::Tree;
use crate::model::cluster_model::ModelReservation;
use crate::model::named_decisions::{NamedCycle, NamedDecision, NamedEntry};
use lockkeeper_preemption::{QueueingStrategy, RequeueDestination, RequeueReason};

impl Scheduler {
    /// Makes workloads active whose backoff ended.
    fn requeue_expired_backoffs(&mut self, now_s: i64) {
        for line in self.pending_queues.values_mut() {
            let held = line.backing_off.clone();
            for (name, _) in held.iter().filter(|(_, until_s)| **until_s <= now_s) {
                line.backing_off.remove(name);
                line.push(&self.cluster_model.workloads[name]);
            }
        }
    }

    pub fn next_cycle(&mut self, now_s: i64) -> NamedCycle {
        self.cycle += 1;
        self.requeue_expired_backoffs(now_s);
        let mut result = NamedCycle::default();
        let mut heads = Vec::new();
        let tree = Tree::new(&self.cluster_model);
        for (name, queue) in self.cluster_model.queues.clone() {
            let cluster_model = self.cluster_model.clone();
            let line = self.pending_queue(&name);
            if !queue.is_active || tree.nodes[tree.index(&name, true)].is_misconfigured {
                continue;
            }
            let order = line.order(&cluster_model, &line.active, queue.strategy);
            let Some(head) = order.first() else {
                continue;
            };
            line.active.remove(head);
            if cluster_model.workloads[head].is_in_scope {
                let is_sticky = line.sticky.as_ref() == Some(head);
                result.heads.push((head.clone(), is_sticky));
                let marker = self.tried_flavors(&cluster_model.workloads[head]);
                heads.push((head.clone(), marker));
            } else {
                line.inadmissible.insert(head.clone());
                result.out_of_scope.push(head.clone());
            }
        }
        let done = cycle::decide(&self.cluster_model, &heads);
        for cycle::ProcessedEntry {
            mut entry,
            tried_flavors: marker,
        } in done
        {
            entry.requeued = self.finish_entry(&entry, marker, now_s);
            result.entries.push(entry);
        }
        result
    }

    fn finish_entry(
        &mut self,
        entry: &NamedEntry,
        marker: TriedFlavors,
        now_s: i64,
    ) -> Option<(RequeueReason, RequeueDestination)> {
        let reason = match &entry.decision {
            NamedDecision::Admit => {
                let plan = entry.recomputed.as_ref().unwrap_or(&entry.nominated.plan);
                let held = ModelReservation {
                    usage: plan.usage.clone(),
                    reserved_at_s: now_s,
                    is_evicted: false,
                };
                self.reserve(&entry.workload, &held);
                return None;
            }
            NamedDecision::Preempt(_) | NamedDecision::DeferredFit => {
                RequeueReason::PendingPreemption
            }
            NamedDecision::Skip(_) => RequeueReason::FailedAfterNomination,
            NamedDecision::NoCandidates => RequeueReason::PreemptionNoCandidates,
            NamedDecision::NoFit => RequeueReason::NoFit,
        };
        let is_pending = reason == RequeueReason::PendingPreemption;
        let marker = if is_pending {
            TriedFlavors::new()
        } else {
            marker
        };
        let workload = self.cluster_model.workloads[&entry.workload].clone();
        let strategy = self.cluster_model.queues[&workload.queue].strategy;
        let (cluster_model, cycle) = (self.cluster_model.clone(), self.cycle);
        let line = self.pending_queue(&workload.queue);
        line.last_assignments.remove(&workload.name);
        if is_pending {
            line.sticky = Some(workload.name.clone());
        }
        let comes_again = strategy == QueueingStrategy::StrictFifo
            || is_pending
            || reason == RequeueReason::FailedAfterNomination
            || !marker.is_empty();
        let to = if comes_again {
            line.push(&workload);
            RequeueDestination::Active
        } else {
            line.mark_inadmissible(&cluster_model, &workload);
            RequeueDestination::Inadmissible
        };
        if !marker.is_empty() {
            let generation = line.generation;
            let progress = LastAssignment {
                tried_flavors: marker,
                cycle,
                generation,
            };
            line.last_assignments.insert(workload.name, progress);
        }
        Some((reason, to))
    }
}
