//! Why an entry waits, in one line: for the condition of its workload.

use super::json::pod_set_names;
use super::text::{amount, flavor_verdict};
use lockkeeper_preemption::{Decision, Entry, FlavorVerdict, Possibility, State, Step};

/// Why an entry does not fit, or why nobody is taken for it: by pod set and flavor, as its trace says. It needs
/// a trace.
#[must_use]
pub fn why_not(state: &State, entry: &Entry) -> String {
    if entry.decision == Decision::NoCandidates {
        return what_is_short(state, entry);
    }
    let workload = state.workload_name(entry.workload);
    let names = pod_set_names(state, workload);
    let mut parts: Vec<String> = Vec::new();
    for step in entry.trace.steps() {
        let Step::Flavor {
            pod_set,
            flavor,
            verdict,
        } = step
        else {
            continue;
        };
        let is_refusal = match verdict {
            FlavorVerdict::NotNominated => false,
            FlavorVerdict::Possible { possibility, .. } => {
                matches!(possibility, Possibility::NoCandidates | Possibility::NoFit)
            }
            _ => true,
        };
        if is_refusal {
            let pod_set = names.get(*pod_set).copied().unwrap_or_default();
            let flavor = state.flavor_name(*flavor);
            let verdict = flavor_verdict(state, verdict);
            let part = format!("{pod_set} on flavor {flavor}: {verdict}");
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    if parts.is_empty() {
        return "Does not fit".to_owned();
    }
    format!("Does not fit; {}", parts.join("; "))
}

/// What it asks for and what of it is free; nobody may be taken for it.
fn what_is_short(state: &State, entry: &Entry) -> String {
    let assignment = entry.assignment();
    let needs = assignment.needs();
    let usage = assignment.usage.iter();
    let short = usage.filter(|(of, _)| needs.contains(of));
    let short: Vec<String> = short
        .map(|(of, asked)| {
            let free = state.available(entry.queue, *of);
            format!(
                "asks for {} of flavor {}, {} free",
                amount(state, *of, *asked),
                state.flavor_name(of.flavor),
                amount(state, *of, free)
            )
        })
        .collect();
    format!(
        "Waits for quota: {}; nobody may be preempted for it",
        short.join("; ")
    )
}
