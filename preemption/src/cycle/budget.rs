//! How many workloads go in one cycle, of all queues and of each.

use crate::names::NodeId;
use crate::running::Workloads;
use crate::state::State;
use crate::victim::Victim;
use std::collections::BTreeMap;

/// What was spent so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    all: u32,
    of: BTreeMap<NodeId, u32>,
}

/// Whether victims may go in a cycle.
pub(super) enum Judgement {
    Within,
    /// Not any more in this one.
    Spent,
    /// In none: they are too many.
    Never {
        victims: u32,
        victims_max: u32,
    },
}

impl Budget {
    /// Those who go already cost nothing.
    pub(super) fn judge(&self, state: &State, victims: &[Victim]) -> Judgement {
        if state.options.victims_per_cycle_max.is_none() && !state.has_limits {
            return Judgement::Within;
        }
        let mut new = Self::default();
        new.spend(state, victims);
        let most = state.options.victims_per_cycle_max;
        let of_queues = new.of.iter().map(|(queue, count)| {
            let limits = state
                .pending(*queue)
                .map(|it| it.settings.preemption.limits);
            let most = limits.and_then(|it| it.victims_per_cycle_max);
            let spent = self.of.get(queue).copied().unwrap_or_default();
            (*count, spent, most)
        });
        let all = std::iter::once((new.all, self.all, most)).chain(of_queues);
        let mut judgement = Judgement::Within;
        for (victims, spent, most) in all {
            match most {
                Some(victims_max) if victims > victims_max => {
                    return Judgement::Never {
                        victims,
                        victims_max,
                    };
                }
                Some(most) if victims.saturating_add(spent) > most => judgement = Judgement::Spent,
                _ => {}
            }
        }
        judgement
    }

    pub(super) fn spend(&mut self, state: &State, victims: &[Victim]) {
        let new = victims.iter().map(|it| it.workload);
        let new = new.filter(|id| state.histories.told_by(*id).is_none());
        let running = new.filter_map(|id| state.records.running(id));
        for running in running.filter(|it| !it.is_evicted) {
            self.all = self.all.saturating_add(1);
            let of = self.of.entry(running.queue).or_default();
            *of = of.saturating_add(1);
        }
    }
}
