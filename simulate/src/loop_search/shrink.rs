//! The simplest circle that is found from one: fewer guests, lower priorities, smaller amounts.

use super::CYCLES_MAX;
use super::sampling::WorkloadSampler;
use crate::queue_tree::SimulatedCluster;
use crate::run::{PreemptionLoop, SimWorkload, SimulationRun};

/// Steps after which it is simple enough.
const STEPS_MAX: usize = 400;

/// Makes a circle simpler as long as one change does.
pub(super) fn simplify(
    field: &SimulatedCluster,
    cards: &WorkloadSampler<'_>,
    found: PreemptionLoop,
) -> PreemptionLoop {
    let mut best = found;
    let mut steps = 0_usize;
    'simpler: while steps < STEPS_MAX {
        for guests in simplifications(cards, &best.workloads) {
            steps = steps.saturating_add(1);
            if let Some(next) = SimulationRun::new(field, &guests).find_loop(CYCLES_MAX) {
                best = next;
                continue 'simpler;
            }
        }
        break;
    }
    best
}

/// All sets of guests that are one change simpler.
fn simplifications(cards: &WorkloadSampler<'_>, guests: &[SimWorkload]) -> Vec<Vec<SimWorkload>> {
    let mut all = Vec::new();
    for at in 0..guests.len() {
        let mut fewer = guests.to_vec();
        fewer.remove(at);
        all.push(fewer);
    }
    for (at, guest) in guests.iter().enumerate() {
        let mut change = |changed: SimWorkload| {
            let mut simpler = guests.to_vec();
            if let Some(it) = simpler.get_mut(at) {
                *it = changed;
            }
            all.push(simpler);
        };
        for resource in guest.requests.keys() {
            if guest.requests.len() > 1 {
                let mut narrower = guest.clone();
                narrower.requests.remove(resource);
                change(narrower);
            }
        }
        let lower = cards.priorities.iter().filter(|it| **it < guest.priority);
        for priority in lower {
            change(SimWorkload {
                priority: *priority,
                ..guest.clone()
            });
        }
        for (resource, amount) in &guest.requests {
            let amounts = cards.amounts(*resource).iter();
            let smaller = amounts.filter(|it| *it < amount);
            for less in smaller {
                let mut smaller = guest.clone();
                smaller.requests.insert(*resource, *less);
                change(smaller);
            }
        }
        if at > 0 && !guest.arrives_when_idle {
            change(SimWorkload {
                arrives_when_idle: true,
                ..guest.clone()
            });
        }
    }
    all
}
