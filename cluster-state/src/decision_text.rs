//! Parts of the text of a decision: amounts, pod sets, and verdicts on flavors.

use lockkeeper_preemption::{
    Amount, FlavorResource, FlavorVerdict, Possibility, Protection, State,
};

/// The names of the pod sets of a workload, in order; empty if the state has no such workload.
#[must_use]
pub fn pod_set_names<'a>(state: &'a State, workload: &str) -> Vec<&'a str> {
    let id = state.workload(workload);
    let pod_sets = id
        .map(|id| state.workload_view(id).pod_sets())
        .unwrap_or_default();
    pod_sets.iter().map(|it| &*it.name).collect()
}

/// The verdict on a flavor as text.
#[must_use]
pub fn flavor_verdict_text(state: &State, verdict: &FlavorVerdict) -> String {
    match verdict {
        FlavorVerdict::Ineligible => {
            "a taint or the node affinity excludes its pods (NoMatchingFlavor)".to_owned()
        }
        FlavorVerdict::NotNominated => "not among the flavors of its nomination".to_owned(),
        FlavorVerdict::ExceedsMaxQuota {
            of,
            requested,
            potential,
        } => format!(
            "requests {}, and the maximum capacity is {} (ExceedsMaxQuota)",
            flavor_amount(state, *of, *requested),
            flavor_amount(state, *of, *potential)
        ),
        FlavorVerdict::ExceedsMin { of, sum, min } => format!(
            "usage of non-preemptible workloads would be {}, and min is {} (elastic)",
            flavor_amount(state, *of, *sum),
            flavor_amount(state, *of, *min)
        ),
        FlavorVerdict::ExceedsMax {
            of,
            sum,
            reserved,
            max,
        } => format!(
            "usage would be {}, including {} reserved for non-preemptible workloads, and max is {} (elastic)",
            flavor_amount(state, *of, *sum),
            flavor_amount(state, *of, *reserved),
            flavor_amount(state, *of, *max)
        ),
        FlavorVerdict::WaitingForQuota {
            of,
            requested,
            available,
        } => format!(
            "requests {}, {} is free, and preemption cannot help (WaitingForQuota)",
            flavor_amount(state, *of, *requested),
            flavor_amount(state, *of, *available)
        ),
        FlavorVerdict::Possible {
            possibility,
            borrowing_level,
        } => {
            let how = match possibility {
                Possibility::Fit => "free",
                Possibility::Reclaim => "fits after reclaiming borrowed quota",
                Possibility::Preempt => "fits after preempting workloads in its ClusterQueue",
                Possibility::NoCandidates => {
                    "not free, and there are no candidate workloads for preemption"
                }
                Possibility::NoFit => "does not fit",
            };
            match borrowing_level {
                0 => how.to_owned(),
                level => format!("{how}; borrowing level {level}"),
            }
        }
        _ => String::new(),
    }
}

/// An amount of the resource of a flavor as text.
#[must_use]
pub fn flavor_amount(state: &State, of: FlavorResource, amount: Amount) -> String {
    format_amount(state.resource_name(of.resource), amount)
}

/// An amount as in manifests: milli-CPU in CPUs, multiples of a binary unit in that unit.
#[must_use]
pub fn format_amount(resource: &str, amount: Amount) -> String {
    const UNITS: [(&str, u32); 4] = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let number = amount.get();
    if amount.is_unlimited() || number == 0 {
        return format!("{amount} {resource}");
    }
    if resource == "cpu" {
        return match number.checked_rem(1000) {
            Some(0) => format!("{} cpu", number.checked_div(1000).unwrap_or(0)),
            _ => format!("{number}m cpu"),
        };
    }
    // A multiple of 2^n ends in at least n zero bits.
    let whole = |(_, bits): &&(&str, u32)| number.trailing_zeros() >= *bits;
    match UNITS.iter().find(whole) {
        Some((unit, bits)) => format!("{}{unit} {resource}", number >> bits),
        None => format!("{number} {resource}"),
    }
}

/// The reason that protects a candidate, as text.
#[must_use]
pub fn protection_text(why: Protection) -> String {
    match why {
        Protection::NonPreemptible => {
            "it is non-preemptible, and its ClusterQueue is elastic".to_owned()
        }
        Protection::EvictedForAnother => "it is being evicted for another preemptor".to_owned(),
        Protection::PreemptedBefore => {
            "the preemptor preempted it before, and this would be a preemption loop".to_owned()
        }
        Protection::BelowMinRuntime {
            runtime_s: for_s,
            min_runtime_s: least_s,
        } => {
            format!("it has run for {for_s} s of its minimum of {least_s} s")
        }
        Protection::PreemptedTooOften { times } => {
            format!(
                "it was preempted {}, which is the limit",
                count_times(times)
            )
        }
        _ => "it is protected".to_owned(),
    }
}

fn count_times(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    }
}
