//! Runs that have begun before the start.

use super::job_trace::Job;
use super::result::RunAssignment;
use lockkeeper_preemption::{Amount, FlavorResource, Reservation, State};
use std::collections::BTreeMap;

/// The run of a job at the start.
#[derive(Clone, Debug)]
pub(super) struct InitialRun {
    pub(super) assignment: RunAssignment,
    pub(super) reservation: Reservation,
}

/// Returns the run of a job that was admitted `ran_s` seconds before the start, with the flavors of its pod sets.
pub(super) fn initial_run(state: &mut State, job: &Job, ran_s: i64) -> InitialRun {
    let mut usage: BTreeMap<FlavorResource, Amount> = BTreeMap::new();
    let mut flavors = Vec::with_capacity(job.pod_sets.len());
    for pod_set in job.pod_sets.iter() {
        for (resource, flavor) in &pod_set.flavors {
            let of = FlavorResource {
                flavor: state.flavor(flavor),
                resource: state.resource(resource),
            };
            let requested = pod_set.requests.get(resource);
            let requested = requested.and_then(|it| it.in_core_units(resource));
            let amount = match requested {
                Some(amount) => amount,
                // Quota for pods counts them.
                None if resource == "pods" => pod_set.count,
                None => 0,
            };
            let sum = usage.entry(of).or_default();
            *sum = sum.plus(Amount::new(amount));
        }
        flavors.push(pod_set.flavors.clone());
    }
    InitialRun {
        assignment: RunAssignment {
            flavors,
            counts: None,
        },
        reservation: Reservation {
            usage: usage.into_iter().collect(),
            reserved_at_s: ran_s.saturating_neg(),
            is_evicted: false,
        },
    }
}
