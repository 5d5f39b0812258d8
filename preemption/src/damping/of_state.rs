//! Damping as the state's users see it.

use super::{Damping, Headroom, Hold, ThrashStats};
use crate::amount::Amount;
use crate::ids::{FlavorResource, NodeId, WorkloadId};
use crate::queue::Queue;
use crate::quota::{Overlay, View};
use crate::state::State;
use crate::victim_protection::VictimProtection;
use std::cell::Cell;
use std::collections::BTreeSet;

impl State {
    /// How often preemptions were undone again.
    #[must_use]
    pub fn thrash_stats(&self) -> ThrashStats {
        self.histories.thrash_stats()
    }

    /// The second at which a cycle finds something to do although nothing has happened: a workload is held
    /// no longer, or another has run for long enough to be taken.
    #[must_use]
    pub fn next_wake_s(&self) -> Option<i64> {
        let held = self.queues.iter().filter_map(Queue::next_backoff_end_s);
        let woken = self.reactivation_times.first().map(|(at_s, _)| *at_s);
        held.chain(woken).min()
    }

    /// How often a workload gave its quota back because it was preempted.
    #[must_use]
    pub fn preemption_count(&self, id: WorkloadId) -> u32 {
        self.histories.preemption_count(id)
    }

    /// The preemptors for whom quota is held, and how much of it their victims have left to them.
    #[must_use]
    pub fn held_quota(&self) -> Vec<(WorkloadId, Vec<(FlavorResource, Amount)>)> {
        let amounts = |(id, hold): (WorkloadId, &Hold)| {
            let amounts = hold.amounts(id, &self.histories, &self.admitted_index, &self.workloads);
            (id, amounts)
        };
        self.holds.iter().map(amounts).collect()
    }

    /// What a workload could have of a flavor and resource now, and for which other preemptors more of it is
    /// held. Only those are named without whose hold there would be more for it, by number; a hold that
    /// nobody else could use is none of its business. Costs a walk up the tree for each hold.
    #[must_use]
    pub fn headroom_for(&self, id: WorkloadId, of: FlavorResource) -> Headroom {
        let mut room = Headroom::default();
        let queue = self.queue_of(id);
        let Some(cell) = queue.and_then(|queue| self.tree.node(queue).cell(of)) else {
            return room;
        };
        let mut overlay = Overlay::default();
        let mut view = View::new(&self.tree, &self.usage, &mut overlay);
        self.apply_holds(&mut view);
        self.release_hold(&mut view, id);
        let mut available = view.available(cell);
        room.free = available.or_zero();
        for (holder, amounts) in self.held_quota() {
            if holder == id {
                continue;
            }
            self.release_hold(&mut view, holder);
            let without = view.available(cell);
            let held = amounts.iter().find(|(it, _)| *it == of);
            if let Some((_, held)) = held.filter(|_| without > available) {
                room.held.push((holder, *held));
            }
            available = without;
        }
        room
    }

    pub(crate) fn victim_protection<'a>(
        &'a self,
        preemptor: WorkloadId,
        displaced: &'a [WorkloadId],
        soonest_s: &'a Cell<Option<i64>>,
    ) -> VictimProtection<'a> {
        VictimProtection {
            preemptor,
            histories: &self.histories,
            holds: &self.holds,
            displaced,
            queues: &self.queues,
            now_s: self.now_s,
            is_damped: self.options.damping == Damping::On,
            has_limits: self.has_limits || self.has_elastic,
            next_candidate_at_s: soonest_s,
        }
    }

    /// What was taken before means nothing where queues or cohorts have changed, and a queue that
    /// admits nothing needs no quota.
    pub(crate) fn forget_history_below(&mut self, roots: &BTreeSet<NodeId>) {
        let tree = &self.tree;
        let is_below = |queue: NodeId| roots.contains(&tree.node(queue).root);
        if !self.histories.is_empty() {
            let records = &self.workloads;
            let is_of_it = |id| records.get(id).is_some_and(|it| is_below(it.queue));
            self.histories.forget_where(is_of_it);
        }
        let queues = &self.queues;
        self.holds.end_where(|hold| {
            let queue = queues.get(hold.queue.index());
            is_below(hold.queue) && !queue.is_some_and(|it| it.settings.is_active)
        });
    }
}
