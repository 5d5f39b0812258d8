//! Damping of a state: what users may read, and the input of the search for victims.

use super::held_quota::{apply_holds, release_hold};
use super::model::State;
use crate::amount::Amount;
use crate::damping::{Damping, Headroom, Hold, RepeatStats};
use crate::ids::{FlavorResource, WorkloadId};
use crate::queue::Queue;
use crate::quota::{Overlay, View};
use crate::victim_protection::VictimProtection;
use std::cell::Cell;

/// Damping of a state, read-only: held quota, repeated preemptions and the next wake-up.
#[derive(Clone, Copy, Debug)]
pub struct DampingView<'a> {
    state: &'a State,
}

impl<'a> DampingView<'a> {
    /// Creates a view of `state`.
    #[must_use]
    pub const fn new(state: &'a State) -> Self {
        Self { state }
    }

    /// Returns how many preempted workloads were readmitted and preempted again.
    #[must_use]
    pub fn repeat_stats(self) -> RepeatStats {
        self.state.histories.repeat_stats()
    }

    /// Returns the earliest second at which a cycle has work without any event: a backoff ends, or a
    /// candidate reaches its minimum run time.
    #[must_use]
    pub fn next_wake_s(self) -> Option<i64> {
        let backoff_ends = self
            .state
            .queues
            .iter()
            .filter_map(Queue::next_backoff_end_s);
        let min_runtime_end = self.state.reactivation_times.first().map(|(at_s, _)| *at_s);
        backoff_ends.chain(min_runtime_end).min()
    }

    /// Returns the held quota by preemptor, less the part that its victims still use.
    #[must_use]
    pub fn held_quota(self) -> Vec<(WorkloadId, Vec<(FlavorResource, Amount)>)> {
        let amounts = |(id, hold): (WorkloadId, &Hold)| {
            let amounts = hold.amounts(
                id,
                &self.state.histories,
                &self.state.admitted_index,
                &self.state.workloads,
            );
            (id, amounts)
        };
        self.state.holds.iter().map(amounts).collect()
    }

    /// Returns the quota of a flavor and resource that a workload could use now, and the holds of other
    /// preemptors that reduce it, in the order of their ids. A hold on quota that the workload could not use
    /// is left out. Costs a walk up the tree for each hold.
    #[must_use]
    pub fn headroom_for(self, id: WorkloadId, of: FlavorResource) -> Headroom {
        let mut headroom = Headroom::default();
        let queue = self.state.workloads.get(id).map(|row| row.queue);
        let Some(cell) = queue.and_then(|queue| self.state.tree.node(queue).cell(of)) else {
            return headroom;
        };
        let mut overlay = Overlay::default();
        let mut view = View::new(&self.state.tree, &self.state.usage, &mut overlay);
        apply_holds(self.state, &mut view);
        // The quota held for the workload itself is free for it.
        release_hold(self.state, &mut view, id);
        let mut available = view.available(cell);
        headroom.free = available.or_zero();
        for (holder, amounts) in self.held_quota() {
            if holder == id {
                continue;
            }
            release_hold(self.state, &mut view, holder);
            // Released one by one: a hold is listed only if its end makes more quota available.
            let without = view.available(cell);
            let held = amounts.iter().find(|(it, _)| *it == of);
            if let Some((_, held)) = held.filter(|_| without > available) {
                headroom.held.push((holder, *held));
            }
            available = without;
        }
        headroom
    }
}

/// Returns the protection of candidates against one preemptor.
pub(crate) fn victim_protection<'a>(
    state: &'a State,
    preemptor: WorkloadId,
    displaced: &'a [WorkloadId],
    next_candidate_at_s: &'a Cell<Option<i64>>,
) -> VictimProtection<'a> {
    VictimProtection {
        preemptor,
        histories: &state.histories,
        holds: &state.holds,
        displaced,
        queues: &state.queues,
        now_s: state.now_s,
        is_damped: state.options.damping == Damping::On,
        has_limits: state.has_limits || state.has_elastic,
        next_candidate_at_s,
    }
}
