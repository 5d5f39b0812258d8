//! The proposal's `PostFilter` step by step, on copies of whole nodes: slow, and simple.

use super::model::{Amounts, Model, Pod, RESOURCES, fits, sum};
use lockkeeper_preemption::job::{LabelValue, Preemptibility};
use std::cmp::Reverse;

/// The outcome of a round, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceOutcome {
    Preempt {
        nominations: Vec<(String, String)>,
        victims: Vec<String>,
    },
    Rejected(&'static str),
}

fn is_non_preemptible(model: &Model, pod: &Pod) -> bool {
    match pod.preemption_labels.preemptible {
        LabelValue::No => true,
        LabelValue::Yes => false,
        LabelValue::Missing => model.elastic_defaults.disable_default_preemptible,
    }
}

fn may_trigger(model: &Model, pod: &Pod) -> bool {
    let says = pod.preemption_labels;
    let by_label = match says.can_preempt {
        LabelValue::No => false,
        LabelValue::Yes => true,
        LabelValue::Missing => !model.elastic_defaults.disable_default_trigger,
    };
    by_label && !says.never_preempts
}

fn plus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] + b[0], a[1] + b[1]]
}

fn minus(a: Amounts, b: Amounts) -> Amounts {
    [a[0] - b[0], a[1] - b[1]]
}

pub fn reference_outcome(model: &Model) -> ReferenceOutcome {
    let job = model.job();
    let first = job[0];
    let is_fixed = is_non_preemptible(model, first);
    if let Some(why) = rejection_reason(model, &job) {
        return ReferenceOutcome::Rejected(why);
    }
    // Pods with a held place are already part of the usage of their quota.
    let job_request = job
        .iter()
        .filter(|it| it.host.is_none() && it.nominated.is_none());
    let job_request = sum(job_request.map(|it| it.request));
    if !passes_gate(model, first, is_fixed, job_request) {
        return ReferenceOutcome::Rejected("quota");
    }
    let leaving = |quota: usize| {
        let gone = model.pods.iter().filter(|it| it.is_leaving);
        sum(gone
            .filter(|it| model.counts_at(it, quota))
            .map(|it| it.request))
    };
    let counted = |quota: usize| minus(plus(model.used(quota, None), job_request), leaving(quota));
    let path = model.path(first.quota);
    let over: Vec<usize> = path
        .into_iter()
        .filter(|it| !fits(counted(*it), model.quotas[*it].max))
        .collect();
    let counts = |pod: &Pod| over.iter().any(|it| model.counts_at(pod, *it));
    let may_go =
        |it: &Pod| !is_non_preemptible(model, it) && it.priority < first.priority && !it.is_leaving;
    let placed: Vec<&Pod> = model
        .pods
        .iter()
        .filter(|it| it.host.is_some() && may_go(it))
        .collect();
    let recycled: Vec<&Pod> = placed.iter().copied().filter(|it| counts(it)).collect();
    let mut used: Vec<(usize, Amounts)> = over.iter().map(|it| (*it, counted(*it))).collect();
    for (quota, used) in &mut used {
        for pod in recycled.iter().filter(|it| model.counts_at(it, *quota)) {
            *used = minus(*used, pod.request);
        }
    }
    if used
        .iter()
        .any(|(quota, used)| !fits(*used, model.quotas[*quota].max))
    {
        return ReferenceOutcome::Rejected("over max");
    }
    // First in the current state, then without all pods that may be preempted.
    let mut removed = recycled;
    let mut left = free(model, first.priority, &removed);
    let mut found = place(model, &job, &mut left);
    if found.is_none() {
        let is_candidate = |it: &&Pod| it.host.is_some_and(|at| !model.hosts[at].is_excluded);
        removed = placed
            .into_iter()
            .filter(|it| counts(it) || is_candidate(it))
            .collect();
        left = free(model, first.priority, &removed);
        found = place(model, &job, &mut left);
    }
    let Some(placed) = found else {
        return ReferenceOutcome::Rejected("no place");
    };
    let mut victims = assign_back(model, &placed, removed, &mut left, &mut used);
    victims.sort_by_key(|it| (&it.name, it.namespace));
    let nominations = placed.into_iter();
    ReferenceOutcome::Preempt {
        nominations: nominations
            .map(|(pod, at)| (pod.full_name(), model.hosts[at].name.clone()))
            .collect(),
        victims: victims.into_iter().map(Pod::full_name).collect(),
    }
}

/// Why a job needs no preemption, or may not preempt.
fn rejection_reason(model: &Model, job: &[&Pod]) -> Option<&'static str> {
    let first = job[0];
    let differs = |pod: &&Pod| {
        pod.quota != first.quota
            || pod.priority != first.priority
            || is_non_preemptible(model, pod) != is_non_preemptible(model, first)
    };
    if job.iter().any(differs) {
        return Some("mixed");
    }
    let may = job.iter().all(|it| may_trigger(model, it));
    (!may).then_some("trigger")
}

/// The final victims among the candidates that were removed.
fn assign_back<'a>(
    model: &Model,
    placed: &[(&Pod, usize)],
    mut removed: Vec<&'a Pod>,
    free: &mut [Amounts],
    used: &mut [(usize, Amounts)],
) -> Vec<&'a Pod> {
    removed.sort_by_key(|it| (Reverse(it.priority), it.name.clone(), it.namespace));
    let mut victims: Vec<&Pod> = Vec::new();
    for pod in removed {
        let at = pod.host.unwrap();
        // A resource that no pod of the job takes on this node does not prevent the reprieve.
        let is_requested = |resource: usize| {
            placed
                .iter()
                .any(|(ours, host)| *host == at && ours.request[resource] > 0)
        };
        let has_room = (0..RESOURCES)
            .all(|it| pod.request[it] == 0 || !is_requested(it) || pod.request[it] <= free[at][it]);
        let mut counted = used
            .iter()
            .filter(|(quota, _)| model.counts_at(pod, *quota));
        let has_quota =
            counted.all(|(quota, used)| fits(plus(*used, pod.request), model.quotas[*quota].max));
        if has_room && has_quota {
            free[at] = minus(free[at], pod.request);
            for (quota, used) in used.iter_mut() {
                if model.counts_at(pod, *quota) {
                    *used = plus(*used, pod.request);
                }
            }
        } else {
            victims.push(pod);
        }
    }
    victims
}

fn passes_gate(model: &Model, job: &Pod, is_fixed: bool, job_request: Amounts) -> bool {
    model.path(job.quota).into_iter().all(|level| {
        let quota = &model.quotas[level];
        if is_fixed {
            let used = model.used(level, Some(Preemptibility::NonPreemptible));
            return fits(plus(used, job_request), quota.min);
        }
        let fixed = model.pods.iter().filter(|it| is_non_preemptible(model, it));
        let request = sum(fixed
            .filter(|it| model.counts_at(it, level))
            .map(|it| it.request));
        let reserved =
            [0, 1].map(|it| quota.min[it].map_or(request[it], |min| min.min(request[it])));
        let used = model.used(level, Some(Preemptibility::Preemptible));
        fits(plus(plus(reserved, used), job_request), quota.max)
    })
}

/// The free resources of each node without these pods, and without terminating pods.
fn free(model: &Model, priority: i32, removed: &[&Pod]) -> Vec<Amounts> {
    let mut free: Vec<Amounts> = model.hosts.iter().map(|it| it.allocatable).collect();
    for pod in &model.pods {
        let is_there = pod
            .host
            .filter(|_| !pod.is_leaving && !removed.contains(&pod));
        let is_held = !pod.is_in_job && pod.priority >= priority;
        if let Some(at) = is_there.or(pod.nominated.filter(|_| is_held)) {
            free[at] = minus(free[at], pod.request);
        }
    }
    free
}

/// Places each pending pod on the first node with room; `None` if one of them finds none.
fn place<'a>(
    model: &Model,
    job: &[&'a Pod],
    free: &mut [Amounts],
) -> Option<Vec<(&'a Pod, usize)>> {
    let mut placed = Vec::new();
    for pod in job.iter().filter(|it| it.host.is_none()) {
        let has_room = |at: &usize| {
            (0..RESOURCES).all(|it| pod.request[it] == 0 || pod.request[it] <= free[*at][it])
        };
        let mut hosts = (0..model.hosts.len()).filter(|at| !model.hosts[*at].is_excluded);
        let at = hosts.find(has_room)?;
        free[at] = minus(free[at], pod.request);
        placed.push((*pod, at));
    }
    Some(placed)
}
