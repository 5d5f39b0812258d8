//! Why an entry waits, in one line: for the condition of its workload.

use super::json::pod_set_names;
use super::text::flavor_verdict;
use lockkeeper_preemption::{Decision, Entry, FlavorVerdict, Possibility, State, Step};

/// Why an entry does not fit, or why nobody is taken for it: by pod set and flavor, as its trace says. It needs
/// a trace.
#[must_use]
pub fn why_not(state: &State, entry: &Entry) -> String {
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
    let head = match entry.decision {
        Decision::NoCandidates => "Others would have to go, and nobody may be taken",
        _ => "Does not fit",
    };
    if parts.is_empty() {
        return head.to_owned();
    }
    format!("{head}; {}", parts.join("; "))
}
