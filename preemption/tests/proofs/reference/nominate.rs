//! Flavors and victims for one workload by itself, with fewer pods if partial admission requires it.

use super::flavors::{AssignmentRequest, TriedFlavors, assign};
use super::{Snapshot, search};
use crate::model::cluster_model::{Pair, Workload};
use crate::model::named_decisions::{NamedNomination, Plan};
use lockkeeper_preemption::Mode;
use std::collections::BTreeSet;

pub fn nominate(
    snapshot: &Snapshot<'_>,
    workload: &Workload,
    marker: &TriedFlavors,
    only: Option<&Plan>,
) -> NamedNomination {
    let full: Vec<i64> = workload.pods.iter().map(|it| it.count).collect();
    let whole = attempt(snapshot, workload, marker, only, &full);
    if is_sufficient(&whole) {
        return whole;
    }
    let options = &snapshot.cluster_model.options;
    let fewer = if options.disable_partial_admission {
        None
    } else {
        reduce_pods(workload, |counts| {
            attempt(snapshot, workload, marker, only, counts)
        })
    };
    fewer.unwrap_or(NamedNomination {
        plan: whole.plan,
        victims: Vec::new(),
    })
}

fn attempt(
    snapshot: &Snapshot<'_>,
    workload: &Workload,
    marker: &TriedFlavors,
    only: Option<&Plan>,
    counts: &[i64],
) -> NamedNomination {
    let applicant = AssignmentRequest {
        workload,
        queue: &snapshot.cluster_model.queues[&workload.queue],
        counts,
        tried_flavors: marker,
        allowed_flavors: only,
    };
    let plan = assign(snapshot, &applicant);
    let victims = if plan.mode == Mode::Preempt {
        let needs = needs(&plan);
        search(
            snapshot,
            &applicant.preemptor(snapshot, needs, plan.usage.clone()),
        )
    } else {
        Vec::new()
    };
    NamedNomination { plan, victims }
}

/// The flavor and resource pairs of an assignment that do not fit without preemption.
pub fn needs(plan: &Plan) -> BTreeSet<Pair> {
    let flavors = plan.pod_sets.iter().flat_map(|it| &it.flavors);
    flavors
        .filter(|it| it.mode == Mode::Preempt)
        .map(|it| (it.flavor, it.resource))
        .collect()
}

fn is_sufficient(nomination: &NamedNomination) -> bool {
    match nomination.plan.mode {
        Mode::Fit => true,
        Mode::Preempt => !nomination.victims.is_empty(),
        Mode::NoFit => false,
    }
}

/// The smallest reduction that is accepted, by bisection.
fn reduce_pods(
    workload: &Workload,
    attempt: impl Fn(&[i64]) -> NamedNomination,
) -> Option<NamedNomination> {
    let pods = &workload.pods;
    let spare = |at: usize| {
        pods[at]
            .count_min
            .map_or(0, |it| (pods[at].count - it).max(0))
    };
    let total: i64 = (0..pods.len()).map(spare).sum();
    if total == 0 {
        return None;
    }
    let with = |reduction: i64| {
        let counts = (0..pods.len()).map(|at| pods[at].count - spare(at) * reduction / total);
        attempt(&counts.collect::<Vec<_>>())
    };
    let (mut low, mut high) = (0, total + 1);
    while low < high {
        let middle = low.midpoint(high);
        if is_sufficient(&with(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low <= total).then(|| with(low)).filter(is_sufficient)
}
