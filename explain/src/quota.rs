//! The quota that a workload requests, and what is free of it on each level of its tree.

use crate::answer::{LevelAnswer, QuotaAnswer};
use crate::trial::Trial;
use lockkeeper_cluster_state::quantity;
use lockkeeper_preemption::{
    Amount, FlavorResource, NodeId, QuotaLevel, State, WorkloadId, quota_levels,
};
use std::collections::BTreeSet;

/// The request of a workload for one flavor and resource.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) of: FlavorResource,
    /// The requests of all its pod sets that may use the flavor.
    pub(crate) requested: Amount,
}

/// A request, and what is missing for it, in the core's units.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    pub(crate) of: FlavorResource,
    pub(crate) flavor: String,
    pub(crate) resource: String,
    pub(crate) short: i64,
}

/// The requests of a pending workload, for each flavor of its ClusterQueue that it may use, in the order of the flavors.
pub(crate) fn requests(trial: &mut Trial) -> Vec<Request> {
    let Some(id) = trial.id() else {
        return Vec::new();
    };
    let queue = std::sync::Arc::clone(&trial.queue);
    let state = trial.cluster.state_mut();
    let mut requests = Vec::new();
    for group in &queue.spec.resource_groups {
        let resources: Vec<_> = group
            .covered_resources
            .iter()
            .map(|it| state.resource(it))
            .collect();
        for flavor in &group.flavors {
            let flavor = state.flavor(&flavor.name);
            for resource in resources.iter().copied() {
                let pod_sets = state.workload_view(id).pod_sets().iter();
                let eligible = pod_sets.filter(|it| !it.ineligible.contains(&flavor));
                let amounts = eligible
                    .flat_map(|it| it.requests.iter())
                    .filter(|(it, _)| *it == resource);
                let requested = amounts.fold(Amount::ZERO, |sum, (_, amount)| sum.plus(*amount));
                if requested > Amount::ZERO {
                    let of = FlavorResource { flavor, resource };
                    requests.push(Request { of, requested });
                }
            }
        }
    }
    requests
}

/// What is missing of each request.
pub(crate) fn shortages(trial: &mut Trial) -> Vec<Shortage> {
    let requests = requests(trial);
    let Some(queue) = queue_node(trial) else {
        return Vec::new();
    };
    let state = trial.cluster.state_mut();
    let shortages = requests.iter().map(|request| {
        let levels = quota_levels(state, queue, request.of);
        Shortage {
            of: request.of,
            flavor: state.flavor_name(request.of.flavor).to_owned(),
            resource: state.resource_name(request.of.resource).to_owned(),
            short: short(request, &levels).get(),
        }
    });
    shortages.collect()
}

/// The flavors and resources of which something is missing.
pub(crate) fn needed(trial: &mut Trial) -> BTreeSet<FlavorResource> {
    let shortages = shortages(trial).into_iter();
    shortages
        .filter(|it| it.short > 0)
        .map(|it| it.of)
        .collect()
}

/// The answers for the requests of a pending workload.
pub(crate) fn requested_quota(trial: &mut Trial) -> Vec<QuotaAnswer> {
    let requests = requests(trial);
    let Some(queue) = queue_node(trial) else {
        return Vec::new();
    };
    let state = trial.cluster.state_mut();
    requests
        .iter()
        .map(|it| quota_answer(state, queue, it))
        .collect()
}

/// The answers for the quota that a workload uses.
pub(crate) fn used_quota(state: &mut State, id: WorkloadId) -> Vec<QuotaAnswer> {
    let view = state.workload_view(id);
    let (Some(queue), Some(reservation)) = (view.queue(), view.reservation()) else {
        return Vec::new();
    };
    let answers = reservation.usage.into_iter().map(|(of, requested)| {
        let mut answer = quota_answer(state, queue, &Request { of, requested });
        // Its own usage is part of the usage of the levels.
        "0".clone_into(&mut answer.short);
        answer.limited_by.clear();
        answer
    });
    answers.collect()
}

fn queue_node(trial: &Trial) -> Option<NodeId> {
    trial.cluster.state().workload_view(trial.id()?).queue()
}

/// What is missing of a request.
fn short(request: &Request, levels: &[QuotaLevel]) -> Amount {
    let free = levels.first().map_or(Amount::ZERO, |it| it.available);
    request.requested.minus(free).or_zero()
}

fn quota_answer(state: &mut State, queue: NodeId, request: &Request) -> QuotaAnswer {
    let levels = quota_levels(state, queue, request.of);
    let resource = state.resource_name(request.of.resource).to_owned();
    let text = |amount: Amount| {
        if amount.is_unlimited() {
            "unlimited".to_owned()
        } else {
            quantity(&resource, amount).to_string()
        }
    };
    let short = short(request, &levels);
    let limited_by = if short == Amount::ZERO {
        String::new()
    } else {
        limit(state, &levels)
    };
    QuotaAnswer {
        flavor: state.flavor_name(request.of.flavor).to_owned(),
        requested: text(request.requested),
        free: text(levels.first().map_or(Amount::ZERO, |it| it.available)),
        short: text(short),
        limited_by,
        levels: levels
            .iter()
            .enumerate()
            .map(|(at, level)| LevelAnswer {
                kind: if at == 0 { "ClusterQueue" } else { "Cohort" },
                name: state.node_view(level.node).name().to_owned(),
                nominal: text(level.nominal),
                quota: text(level.quota),
                used: text(level.usage),
                free: text(level.available),
                borrowable: level.borrowable.map(text),
            })
            .collect(),
        resource,
    }
}

/// The level whose limit applies: the lowest one with a binding borrowing limit, else the root, which has no more quota.
fn limit(state: &State, levels: &[QuotaLevel]) -> String {
    let limited = levels.iter().position(|it| it.is_limited_by_borrowing);
    let at = limited.unwrap_or(levels.len().saturating_sub(1));
    let Some(level) = levels.get(at) else {
        return "the ClusterQueue, which has no quota of it".to_owned();
    };
    let what = if limited.is_some() {
        "borrowing limit"
    } else {
        "quota"
    };
    let kind = if at == 0 { "ClusterQueue" } else { "Cohort" };
    format!(
        "the {what} of {kind} {}",
        state.node_view(level.node).name()
    )
}

/// Whether the ClusterQueue of a running workload uses more than its nominal quota of something that the workload uses.
pub(crate) fn exceeds_nominal(state: &State, id: WorkloadId) -> bool {
    let view = state.workload_view(id);
    let (Some(queue), Some(reservation)) = (view.queue(), view.reservation()) else {
        return false;
    };
    let queue = state.node_view(queue);
    reservation
        .usage
        .iter()
        .any(|(of, _)| queue.borrowed(*of) > Amount::ZERO)
}
