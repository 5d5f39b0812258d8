//! The assignment of flavors to a workload.

use super::{Preemptor, Snapshot, search};
use crate::model::cluster_model::{Group, PODS, Pair, Pods, Queue, Workload};
use crate::model::named_decisions::{FlavorPlan, Plan, PodSetPlan};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, Compatibility, Fungibility, Mode, Possibility, PreemptionReason,
    Preference, ReclaimWithinCohort,
};
use std::collections::{BTreeMap, BTreeSet};

/// By pod set and resource: the last flavor tried.
pub type TriedFlavors = BTreeMap<(usize, usize), usize>;

/// The possibility of a flavor, and its borrowing level.
type GranularMode = (Possibility, u32);

pub struct AssignmentRequest<'a> {
    pub workload: &'a Workload,
    pub queue: &'a Queue,
    pub counts: &'a [i64],
    pub tried_flavors: &'a TriedFlavors,
    /// The flavors of an earlier nomination, if the assignment is limited to them.
    pub allowed_flavors: Option<&'a Plan>,
}

impl AssignmentRequest<'_> {
    pub fn preemptor(
        &self,
        snapshot: &Snapshot<'_>,
        needs: BTreeSet<Pair>,
        request: BTreeMap<Pair, i64>,
    ) -> Preemptor {
        let mut request = request;
        request.retain(|_, amount| *amount != 0);
        Preemptor {
            queue: snapshot.tree.index(&self.queue.name, true),
            priority: self.workload.priority,
            order_time: self.workload.order_time,
            policy: self.queue.preemption,
            needs,
            request,
        }
    }
}

pub fn assign(snapshot: &Snapshot<'_>, applicant: &AssignmentRequest<'_>) -> Plan {
    let mut plan = Plan {
        mode: Mode::Fit,
        level: 0,
        pod_sets: Vec::new(),
        usage: BTreeMap::new(),
    };
    for (at, pods) in applicant.workload.pods.iter().enumerate() {
        let count = applicant.counts[at];
        let requests = requests(pods, count, applicant.queue);
        let found = pod_set(snapshot, applicant, at, &requests, &plan.usage);
        let Some((mode, flavors)) = found else {
            plan.mode = Mode::NoFit;
            plan.pod_sets.push(PodSetPlan {
                count,
                mode: Mode::NoFit,
                flavors: Vec::new(),
            });
            break;
        };
        for flavor in &flavors {
            plan.level = plan.level.max(flavor.level);
            let amount = requested_amount(&requests, flavor.resource);
            *plan
                .usage
                .entry((flavor.flavor, flavor.resource))
                .or_default() += amount;
        }
        plan.mode = plan.mode.min(mode);
        plan.pod_sets.push(PodSetPlan {
            count,
            mode,
            flavors,
        });
    }
    plan
}

fn requests(pods: &Pods, count: i64, queue: &Queue) -> Vec<(usize, i64)> {
    let mut requests = pods.requests.clone();
    for (_, amount) in &mut requests {
        if count != pods.count {
            *amount = *amount / pods.count * count;
        }
    }
    if queue.groups.iter().any(|it| it.resources.contains(&PODS)) {
        requests.retain(|(resource, _)| *resource != PODS);
        requests.push((PODS, count));
    }
    requests
}

fn requested_amount(requests: &[(usize, i64)], resource: usize) -> i64 {
    let found = requests.iter().find(|(it, _)| *it == resource);
    found.map_or(0, |(_, amount)| *amount)
}

/// The flavors of a pod set; none if it does not fit.
fn pod_set(
    snapshot: &Snapshot<'_>,
    applicant: &AssignmentRequest<'_>,
    at: usize,
    requests: &[(usize, i64)],
    before: &BTreeMap<Pair, i64>,
) -> Option<(Mode, Vec<FlavorPlan>)> {
    let mut mode = Mode::Fit;
    let mut flavors: Vec<FlavorPlan> = Vec::new();
    for (resource, amount) in requests {
        if flavors.iter().any(|it| it.resource == *resource) {
            continue;
        }
        let mut groups = applicant.queue.groups.iter();
        let Some(group) = groups.find(|it| it.resources.contains(resource)) else {
            if *amount == 0 {
                continue;
            }
            return None;
        };
        let group_requests = requests.iter();
        let group_requests: Vec<_> = group_requests
            .filter(|(it, _)| group.resources.contains(it))
            .copied()
            .collect();
        let (of_group, found) = scan(snapshot, applicant, at, group, &group_requests, before)?;
        mode = mode.min(of_group);
        flavors.extend(found);
    }
    Some((mode, flavors))
}

/// A flavor with the mode of its worst resource.
struct EvaluatedFlavor {
    flavor: usize,
    granular_mode: GranularMode,
    mode: Mode,
    resources: Vec<(usize, GranularMode)>,
}

fn scan(
    snapshot: &Snapshot<'_>,
    applicant: &AssignmentRequest<'_>,
    at: usize,
    group: &Group,
    requests: &[(usize, i64)],
    before: &BTreeMap<Pair, i64>,
) -> Option<(Mode, Vec<FlavorPlan>)> {
    let fungibility = &applicant.queue.fungibility;
    let start = applicant
        .tried_flavors
        .get(&(at, requests[0].0))
        .map_or(0, |it| it + 1);
    let mut best: Option<EvaluatedFlavor> = None;
    let mut tried_flavor_index = None;
    for (position, (flavor, _)) in group.flavors.iter().enumerate().skip(start) {
        tried_flavor_index = Some(position);
        let nominated = applicant.allowed_flavors.is_none_or(|only| {
            let pod_set = only.pod_sets.get(at);
            pod_set.is_some_and(|it| it.flavors.iter().any(|it| it.flavor == *flavor))
        });
        if applicant.workload.pods[at].ineligible.contains(flavor) || !nominated {
            continue;
        }
        let judged = evaluate_flavor(snapshot, applicant, *flavor, requests, before);
        let (possibility, level) = judged.granular_mode;
        let tries_next = match possibility {
            Possibility::NoFit | Possibility::NoCandidates => true,
            Possibility::Preempt | Possibility::Reclaim
                if fungibility.when_can_preempt == Fungibility::TryNextFlavor =>
            {
                true
            }
            _ => level > 0 && fungibility.when_can_borrow == Fungibility::TryNextFlavor,
        };
        let preference = fungibility.preference;
        if !tries_next {
            best = Some(judged);
            break;
        }
        let beats =
            |it: &EvaluatedFlavor| is_preferred(preference, judged.granular_mode, it.granular_mode);
        if possibility != Possibility::NoFit && best.as_ref().is_none_or(beats) {
            best = Some(judged);
        }
    }
    let best = best?;
    let tried_flavor_index = tried_flavor_index.filter(|it| it + 1 != group.flavors.len());
    let resources = best.resources.iter();
    let flavors = resources.map(|(resource, (possibility, level))| FlavorPlan {
        resource: *resource,
        flavor: best.flavor,
        mode: (*possibility).into(),
        level: *level,
        tried_flavor_index,
    });
    Some((best.mode, flavors.collect()))
}

fn evaluate_flavor(
    snapshot: &Snapshot<'_>,
    applicant: &AssignmentRequest<'_>,
    flavor: usize,
    requests: &[(usize, i64)],
    before: &BTreeMap<Pair, i64>,
) -> EvaluatedFlavor {
    let preference = applicant.queue.fungibility.preference;
    let mut resources = Vec::new();
    for (resource, amount) in requests {
        let pair = (flavor, *resource);
        let amount = amount + before.get(&pair).copied().unwrap_or(0);
        resources.push((*resource, granular_mode(snapshot, applicant, pair, amount)));
    }
    let all = resources.iter().map(|(_, it)| *it);
    let mut outlook = all
        .clone()
        .reduce(|worst, mode| {
            if is_preferred(preference, worst, mode) {
                mode
            } else {
                worst
            }
        })
        .unwrap();
    if snapshot.cluster_model.options.compatibility == Compatibility::Lockkeeper {
        // The worst over all resources, independent of the preference.
        outlook.0 = all.map(|(possibility, _)| possibility).min().unwrap();
    }
    EvaluatedFlavor {
        flavor,
        granular_mode: outlook,
        mode: outlook.0.into(),
        resources,
    }
}

fn granular_mode(
    snapshot: &Snapshot<'_>,
    applicant: &AssignmentRequest<'_>,
    pair: Pair,
    amount: i64,
) -> GranularMode {
    let tree = &snapshot.tree;
    let queue = tree.index(&applicant.queue.name, true);
    if amount > tree.potential(queue, pair) {
        return (Possibility::NoFit, 0);
    }
    let (level, may_reclaim) = tree.level(queue, pair, amount);
    if amount <= tree.available(queue, pair).max(0) {
        return (Possibility::Fit, level);
    }
    let policy = applicant.queue.preemption;
    let is_fair = snapshot.cluster_model.options.algorithm != Algorithm::Classical;
    let while_borrowing = policy.borrow_within_cohort != BorrowWithinCohort::Never
        || (is_fair && policy.reclaim_within_cohort != ReclaimWithinCohort::Never);
    if amount > tree.nominal(queue, pair) && !may_reclaim && !while_borrowing {
        return (Possibility::NoFit, level);
    }
    let (needs, request) = ([pair].into(), [(pair, amount)].into());
    let victims = search(snapshot, &applicant.preemptor(snapshot, needs, request));
    if victims.is_empty() {
        return (Possibility::NoCandidates, level);
    }
    let mut without = snapshot.clone();
    for (name, _) in &victims {
        without.remove(name);
    }
    let (level, _) = without.tree.level(queue, pair, amount);
    let is_own =
        |(_, reason): &(String, PreemptionReason)| *reason == PreemptionReason::InClusterQueue;
    if victims.iter().any(is_own) {
        (Possibility::Preempt, level)
    } else {
        (Possibility::Reclaim, level)
    }
}

/// Whether `a` is strictly better.
fn is_preferred(preference: Preference, a: GranularMode, b: GranularMode) -> bool {
    let rank = |possibility: Possibility| match possibility {
        Possibility::NoFit => 0,
        Possibility::NoCandidates => 1,
        _ => 2,
    };
    if rank(a.0) != rank(b.0) {
        return rank(a.0) > rank(b.0);
    }
    match preference {
        Preference::BorrowingOverPreemption => a.0 > b.0 || (a.0 == b.0 && a.1 < b.1),
        Preference::PreemptionOverBorrowing => a.1 < b.1 || (a.1 == b.1 && a.0 > b.0),
    }
}
