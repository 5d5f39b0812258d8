//! Plans: the core's decision on a request, with the names of nodes, workloads and pods.

use super::obstacles;
use super::pod_plan::{PodPlan, PodSetShape, pod_set_shapes};
use super::request::{PlacementDecision, PlacementOutcome, PlacementRequest, Victim};
use super::unit_store::UnitStore;
use super::workload_entry::{object_key, split_key};
use lockkeeper_preemption::UnitId;
use lockkeeper_preemption::gang::{
    DroppedNomination, GangDecision, GangOutcome, GangTrace, PreemptionRequest, Unit,
};
use std::collections::BTreeSet;

/// Decides on a request.
pub(super) fn plan(store: &mut UnitStore, request: &PlacementRequest<'_>) -> PlacementDecision {
    let pod_sets = match pod_set_shapes(&mut store.cluster, request) {
        Ok(pod_sets) => pod_sets,
        Err(message) => {
            return PlacementDecision {
                outcome: PlacementOutcome::Infeasible(message),
                dropped: None,
            };
        }
    };
    with_pods(store, request, pod_sets, |store, pod_plan| {
        decide(store, request, pod_plan)
    })
}

/// Calls a function while the pods of a request are in the core, and the reservations of its workload are not.
pub(super) fn with_pods<T>(
    store: &mut UnitStore,
    request: &PlacementRequest<'_>,
    pod_sets: Vec<PodSetShape<'_>>,
    call: impl FnOnce(&UnitStore, &PodPlan<'_>) -> T,
) -> T {
    let key = object_key(request.namespace, request.name);
    let changed = std::mem::take(&mut store.changed);
    let reservations = store.take_reservations(&key);
    let pod_plan = PodPlan::add(&mut store.cluster, request, pod_sets);
    let result = call(store, &pod_plan);
    pod_plan.remove(&mut store.cluster);
    store.add_reservations(&key, reservations.into_iter());
    // The reservations are as before.
    store.changed = changed;
    result
}

fn decide(
    store: &UnitStore,
    request: &PlacementRequest<'_>,
    pod_plan: &PodPlan<'_>,
) -> PlacementDecision {
    let cluster = &store.cluster;
    if pod_plan.pods.is_empty() {
        return PlacementDecision {
            outcome: PlacementOutcome::Fits(pod_plan.placement(cluster, &[])),
            dropped: None,
        };
    }
    let preemption_request = PreemptionRequest {
        pods: &pod_plan.pods,
        group: pod_plan.group,
        ..PreemptionRequest::default()
    };
    let GangDecision {
        outcome, dropped, ..
    } = cluster.decide(&preemption_request, &mut GangTrace::off());
    let outcome = match outcome {
        GangOutcome::Fits { placement } => {
            PlacementOutcome::Fits(pod_plan.placement(cluster, &placement))
        }
        GangOutcome::AwaitingVictims { placement } => {
            PlacementOutcome::AwaitingVictims(pod_plan.placement(cluster, &placement))
        }
        GangOutcome::Preempt(plan) => {
            let placement = pod_plan.placement(cluster, &plan.placement);
            let victims = victims(store, &plan.victims);
            if victims.is_empty() {
                PlacementOutcome::AwaitingVictims(placement)
            } else {
                PlacementOutcome::Preempt { placement, victims }
            }
        }
        other => {
            PlacementOutcome::Infeasible(obstacles::message(cluster, request, pod_plan, &other))
        }
    };
    let dropped = match outcome {
        PlacementOutcome::Fits(_) => None,
        _ => dropped_message(store, pod_plan, dropped.as_ref()),
    };
    PlacementDecision { outcome, dropped }
}

/// Why the nominated placement is no longer valid.
fn dropped_message(
    store: &UnitStore,
    pod_plan: &PodPlan<'_>,
    dropped: Option<&DroppedNomination>,
) -> Option<String> {
    let reason = match (dropped, pod_plan.nominated) {
        (Some(dropped), _) => {
            let mut pods = pod_plan.pods.iter();
            let pod_set = pods.position(|it| *it == dropped.pod);
            let pod_set = pod_set.and_then(|at| pod_plan.pod_set_at(at))?;
            let node = store.cluster.cluster().host_name(dropped.host);
            let reason = obstacles::nomination_obstacle(&store.cluster, pod_set, &dropped.reason);
            let name = pod_set.name;
            format!("a pod of pod set {name:?} does not fit on node {node:?}: the node {reason}")
        }
        (None, Some(count)) if count < pod_plan.pods.len() => {
            format!("it has {count} of {} pods", pod_plan.pods.len())
        }
        _ => return None,
    };
    Some(format!(
        "The nominated placement is no longer valid: {reason}."
    ))
}

/// The victims without pods that are terminating already, each once.
fn victims(store: &UnitStore, units: &[UnitId]) -> Vec<Victim> {
    let violations = store.cluster.budget_violations(units);
    let mut victims: Vec<Victim> = Vec::new();
    let mut workloads = BTreeSet::new();
    for (unit, violations) in units.iter().zip(&violations) {
        let Some(unit) = store.cluster.units().get(*unit) else {
            continue;
        };
        let Some(victim) = victim(store, unit, !violations.is_empty()) else {
            continue;
        };
        if let Victim::Workload { namespace, name } = &victim
            && !workloads.insert(object_key(namespace, name))
        {
            continue;
        }
        victims.push(victim);
    }
    // The eviction of a workload includes its pods.
    victims.retain(|victim| match victim {
        Victim::Workload { .. } => true,
        Victim::Pod {
            namespace, name, ..
        } => {
            let entry = store.pods.get(&object_key(namespace, name));
            let workload = entry.and_then(|it| it.workload.as_ref());
            workload.is_none_or(|it| !workloads.contains(it))
        }
    });
    victims
}

/// A unit as a victim; `None` if its pods are terminating already.
fn victim(store: &UnitStore, unit: &Unit, violates_budget: bool) -> Option<Victim> {
    let workloads = store.cluster.workloads();
    let mut pods = unit.pods().iter();
    if pods.all(|it| workloads.is_terminating_by_preemption(*it)) {
        return None;
    }
    let pod = *unit.pods().first()?;
    let group = unit.group().or_else(|| workloads.group_of(pod));
    let workload = group.and_then(|it| store.workload_of_group(it));
    let key = store.cluster.pod_name(pod);
    let entry = store.pods.get(&key);
    if let Some((workload, of_workload)) = workload {
        let pods = of_workload.pods.len();
        let is_single = pods.saturating_add(of_workload.reservations.len()) == 1;
        // A reservation has no pod that could be deleted.
        if unit.group().is_some() || is_single || entry.is_none() {
            let (namespace, name) = split_key(workload);
            return Some(Victim::Workload {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    let (namespace, name) = split_key(&key);
    Some(Victim::Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: entry?.values.uid.clone(),
        violates_budget,
        workload: workload.map(|(key, _)| split_key(key).1.to_owned()),
    })
}
