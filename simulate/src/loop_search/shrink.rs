//! Shrinking of a preemption loop: fewer workloads, lower priorities, smaller amounts.

use super::CYCLES_MAX;
use super::sampling::WorkloadSampler;
use crate::queue_tree::SimulatedCluster;
use crate::run::{PreemptionLoop, SimWorkload, SimulationRun};

/// The maximum number of changes tried.
const STEPS_MAX: usize = 400;

/// Simplifies a loop by single changes until none of them keeps a loop.
pub(super) fn simplify(
    cluster: &SimulatedCluster,
    sampler: &WorkloadSampler<'_>,
    found: PreemptionLoop,
) -> PreemptionLoop {
    let mut best = found;
    let mut steps = 0_usize;
    'simpler: while steps < STEPS_MAX {
        for workloads in simplifications(sampler, &best.workloads) {
            steps = steps.saturating_add(1);
            if let Some(next) = SimulationRun::new(cluster, &workloads).find_loop(CYCLES_MAX) {
                best = next;
                continue 'simpler;
            }
        }
        break;
    }
    best
}

/// All sets of workloads that are simpler by one change.
fn simplifications(
    sampler: &WorkloadSampler<'_>,
    workloads: &[SimWorkload],
) -> Vec<Vec<SimWorkload>> {
    let mut all = Vec::new();
    // `simplify` takes the first change that keeps a loop, so the strongest come first.
    for at in 0..workloads.len() {
        let mut fewer = workloads.to_vec();
        fewer.remove(at);
        all.push(fewer);
    }
    for (at, workload) in workloads.iter().enumerate() {
        let mut change = |changed: SimWorkload| {
            let mut candidate = workloads.to_vec();
            if let Some(slot) = candidate.get_mut(at) {
                *slot = changed;
            }
            all.push(candidate);
        };
        for resource in workload.requests.keys() {
            if workload.requests.len() > 1 {
                let mut narrower = workload.clone();
                narrower.requests.remove(resource);
                change(narrower);
            }
        }
        let lower = sampler
            .priorities
            .iter()
            .filter(|it| **it < workload.priority);
        for priority in lower {
            change(SimWorkload {
                priority: *priority,
                ..workload.clone()
            });
        }
        for (resource, amount) in &workload.requests {
            let amounts = sampler.amounts(*resource).iter();
            let smaller = amounts.filter(|it| *it < amount);
            for less in smaller {
                let mut smaller = workload.clone();
                smaller.requests.insert(*resource, *less);
                change(smaller);
            }
        }
        // The first workload arrives in an idle cluster anyway.
        if at > 0 && !workload.arrives_when_idle {
            change(SimWorkload {
                arrives_when_idle: true,
                ..workload.clone()
            });
        }
    }
    all
}
