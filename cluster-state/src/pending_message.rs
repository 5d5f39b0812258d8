//! The reason why an entry is pending, in one line, for the condition of its workload.

use crate::decision_text::{flavor_amount, flavor_verdict_text, pod_set_names};
use crate::preemption_obstacle::preemption_obstacle;
use lockkeeper_preemption::{
    Amount, DampingView, Decision, Entry, FlavorId, FlavorResource, FlavorVerdict, Headroom,
    Possibility, State, Step,
};
use std::fmt::Write;

/// The most preemptors named in a message among those that quota is held for.
const HOLDERS_SHOWN_MAX: usize = 3;

/// Why an entry does not fit or has no victims: by pod set and flavor, as in its trace, and the preemptors for which
/// the missing quota is held. Requires a trace, and the state after the cycle.
#[must_use]
pub fn pending_message(state: &State, entry: &Entry) -> String {
    if entry.decision == Decision::NoCandidates {
        return quota_shortage(state, entry);
    }
    let workload = state.workload_name(entry.workload);
    let names = pod_set_names(state, workload);
    if let Some(message) = not_covered(state, entry, &names) {
        return message;
    }
    let mut parts: Vec<String> = Vec::new();
    let mut reported = Vec::new();
    for step in entry.trace.steps() {
        let Step::Flavor {
            pod_set,
            flavor,
            verdict,
        } = step
        else {
            continue;
        };
        // The second evaluation, without quota held for lower priorities, has the same result with other numbers.
        let key = (*pod_set, *flavor, requested(verdict));
        if !is_rejection(verdict) || reported.contains(&key) {
            continue;
        }
        reported.push(key);
        let pod_set = names.get(*pod_set).copied().unwrap_or_default();
        let flavor = state.flavor_name(*flavor);
        let shortage = shortage_text(state, entry, (key.0, key.1), verdict);
        let verdict = shortage.unwrap_or_else(|| rejection_text(state, entry, verdict));
        parts.push(format!("{pod_set} on flavor {flavor}: {verdict}"));
    }
    if parts.is_empty() {
        return "Couldn't assign flavors".to_owned();
    }
    format!("Couldn't assign flavors; {}", parts.join("; "))
}

/// The message if the queue does not cover a requested resource.
fn not_covered(state: &State, entry: &Entry, names: &[&str]) -> Option<String> {
    let mut steps = entry.trace.steps().iter();
    steps.find_map(|step| match step {
        Step::ResourceNotCovered { pod_set, resource } => {
            let pod_set = names.get(*pod_set).copied().unwrap_or_default();
            let resource = match state.resource_name(*resource) {
                "" => "a resource",
                name => name,
            };
            Some(format!(
                "Resource not covered: pod set {pod_set} requests {resource}, which its ClusterQueue does not cover"
            ))
        }
        _ => None,
    })
}

/// The amounts of a flavor that needs preemption and has no candidates.
fn shortage_text(
    state: &State,
    entry: &Entry,
    (pod_set, flavor): (usize, FlavorId),
    verdict: &FlavorVerdict,
) -> Option<String> {
    let FlavorVerdict::Possible { .. } = verdict else {
        return None;
    };
    let quotas = state.node_view(entry.queue).usage();
    let pod_sets = state.workload_view(entry.workload).pod_sets();
    let requests = pod_sets.get(pod_set)?.requests.iter();
    let short = requests.filter_map(|(resource, requested)| {
        let resource = *resource;
        let of = FlavorResource { flavor, resource };
        // Other resources of the pod set have other flavors.
        if !quotas.iter().any(|(it, _)| *it == of) {
            return None;
        }
        let room = DampingView::new(state).headroom_for(entry.workload, of);
        (*requested > room.free).then(|| {
            format!(
                "requests {}, {} free{}",
                flavor_amount(state, of, *requested),
                flavor_amount(state, of, room.free),
                held_quota(state, of, &room)
            )
        })
    });
    let short: Vec<String> = short.collect();
    let why = preemption_obstacle(entry.trace.steps());
    (!short.is_empty()).then(|| format!("{}, and {why}", short.join(", ")))
}

const fn is_rejection(verdict: &FlavorVerdict) -> bool {
    match verdict {
        FlavorVerdict::NotNominated => false,
        FlavorVerdict::Possible { possibility, .. } => {
            matches!(possibility, Possibility::NoCandidates | Possibility::NoFit)
        }
        _ => true,
    }
}

/// The amount that was requested of a rejected flavor.
const fn requested(verdict: &FlavorVerdict) -> Option<(FlavorResource, Amount)> {
    match verdict {
        FlavorVerdict::WaitingForQuota { of, requested, .. }
        | FlavorVerdict::ExceedsMaxQuota { of, requested, .. } => Some((*of, *requested)),
        _ => None,
    }
}

fn rejection_text(state: &State, entry: &Entry, verdict: &FlavorVerdict) -> String {
    if let FlavorVerdict::WaitingForQuota {
        of,
        requested,
        available,
    } = verdict
    {
        let room = DampingView::new(state).headroom_for(entry.workload, *of);
        if !room.held.is_empty() {
            return format!(
                "requests {}, {} is free{}, and preemption cannot help (WaitingForQuota)",
                flavor_amount(state, *of, *requested),
                flavor_amount(state, *of, *available),
                held_quota(state, *of, &room)
            );
        }
    }
    flavor_verdict_text(state, verdict)
}

/// The requested and the free amounts, and the preemptors that the rest is held for; the entry has no victims.
fn quota_shortage(state: &State, entry: &Entry) -> String {
    let assignment = entry.assignment();
    let needs = assignment.needs();
    let usage = assignment.usage.iter();
    let short = usage.filter(|(of, _)| needs.contains(of));
    let short: Vec<String> = short
        .map(|(of, requested)| {
            let room = DampingView::new(state).headroom_for(entry.workload, *of);
            format!(
                "requests {} of flavor {}, {} free{}",
                flavor_amount(state, *of, *requested),
                state.flavor_name(of.flavor),
                flavor_amount(state, *of, room.free),
                held_quota(state, *of, &room)
            )
        })
        .collect();
    let why = preemption_obstacle(entry.trace.steps());
    format!("Waiting for quota: {}; {why}", short.join("; "))
}

/// The preemptors for which more of a resource is held, as text; empty if there are none.
fn held_quota(state: &State, of: FlavorResource, room: &Headroom) -> String {
    let named = room
        .held
        .iter()
        .take(HOLDERS_SHOWN_MAX)
        .map(|(holder, held)| {
            let (held, holder) = (
                flavor_amount(state, of, *held),
                state.workload_name(*holder),
            );
            format!(", {held} held for preemptor {holder}")
        });
    let mut out: String = named.collect();
    let more = room.held.len().saturating_sub(HOLDERS_SHOWN_MAX);
    match more {
        0 => {}
        1 => out.push_str(", and more for 1 other"),
        more => drop(write!(out, ", and more for {more} others")),
    }
    out
}
