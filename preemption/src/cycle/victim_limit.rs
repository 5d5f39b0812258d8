//! Limits on the workloads preempted in one cycle, in total and per queue.

use crate::admitted::AdmittedLookup;
use crate::ids::NodeId;
use crate::state::State;
use crate::victim::Victim;
use std::collections::BTreeMap;

/// The victims so far in this cycle.
#[derive(Debug, Default)]
pub(super) struct VictimLimit {
    total: u32,
    by_queue: BTreeMap<NodeId, u32>,
}

/// The result of a check.
pub(super) enum LimitCheck {
    Within,
    /// Not in this cycle any more.
    Exhausted,
    /// In no cycle: they exceed the limit.
    ExceedsMax {
        victims: u32,
        victims_max: u32,
    },
}

impl VictimLimit {
    /// Checks the victims of an entry; workloads that are being evicted already count nothing.
    pub(super) fn check(&self, state: &State, victims: &[Victim]) -> LimitCheck {
        if state.options.victims_per_cycle_max.is_none() && !state.has_limits {
            return LimitCheck::Within;
        }
        let mut new = Self::default();
        new.record(state, victims);
        let most = state.options.victims_per_cycle_max;
        let of_queues = new.by_queue.iter().map(|(queue, count)| {
            let limits = state
                .queues
                .get(queue.index())
                .map(|it| it.settings.preemption.limits);
            let most = limits.and_then(|it| it.victims_per_cycle_max);
            let spent = self.by_queue.get(queue).copied().unwrap_or_default();
            (*count, spent, most)
        });
        let all = std::iter::once((new.total, self.total, most)).chain(of_queues);
        let mut result = LimitCheck::Within;
        for (victims, spent, most) in all {
            match most {
                Some(victims_max) if victims > victims_max => {
                    return LimitCheck::ExceedsMax {
                        victims,
                        victims_max,
                    };
                }
                Some(most) if victims.saturating_add(spent) > most => {
                    result = LimitCheck::Exhausted;
                }
                _ => {}
            }
        }
        result
    }

    pub(super) fn record(&mut self, state: &State, victims: &[Victim]) {
        let new = victims.iter().map(|it| it.workload);
        // A repeated decision has victims that were counted in an earlier cycle.
        let new = new.filter(|id| state.histories.evicting_preemptor(*id).is_none());
        let running = new.filter_map(|id| state.workloads.admitted(id));
        for running in running.filter(|it| !it.is_evicted) {
            self.total = self.total.saturating_add(1);
            let of = self.by_queue.entry(running.queue).or_default();
            *of = of.saturating_add(1);
        }
    }
}
