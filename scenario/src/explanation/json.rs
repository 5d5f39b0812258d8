//! Decisions in the field names of the scenarios.

use crate::build::quota_pairs;
use lockkeeper_cluster_state::decision_text::pod_set_names;
use lockkeeper_preemption::{
    Amount, Assignment, CandidateVerdict, Decision, Entry, FlavorResource, FlavorVerdict, Mode,
    Nomination, Possibility, Protection, QueueVerdict, RequeueDestination, RequeueReason,
    SkipReason, State, Step, Trace, Victim,
};
use serde_json::{Map, Value, json};

/// A nomination: `{workload, clusterQueue, assignment, victims, trace}`.
#[must_use]
pub fn nomination_json(state: &State, workload: &str, nomination: &Nomination) -> Value {
    let id = state.workload(workload);
    let queue = id.and_then(|id| state.workload_view(id).queue());
    json!({
        "workload": workload,
        "clusterQueue": queue.map(|id| state.node_view(id).name()),
        "assignment": assignment_json(state, workload, &nomination.assignment),
        "victims": victims_json(state, &nomination.victims),
        "trace": trace_json(state, &nomination.trace),
    })
}

/// An entry of a cycle: a nomination with the decision.
#[must_use]
pub fn entry_json(state: &State, entry: &Entry) -> Value {
    let workload = state.workload_name(entry.workload);
    let (decision, victims_now, skip) = match &entry.decision {
        Decision::Admit => ("admitted", &[][..], None),
        Decision::Preempt(victims) => ("preempting", victims.as_slice(), None),
        Decision::Skip(reason) => ("skipped", &[][..], Some(skip_reason(*reason))),
        Decision::DeferredFit => ("deferredFit", &[][..], None),
        Decision::NoCandidates => ("preemptNoCandidates", &[][..], None),
        Decision::NoFit => ("noFit", &[][..], None),
    };
    let mut object = json!({
        "workload": workload,
        "clusterQueue": state.node_view(entry.queue).name(),
        "decision": decision,
        "assignment": assignment_json(state, workload, entry.assignment()),
        "victims": victims_json(state, victims_now),
        "reserved": usage_json(state, &entry.reserved),
        "trace": trace_json(state, &entry.trace),
    });
    if let Some(fields) = object.as_object_mut() {
        if let Some(skip) = skip {
            fields.insert("skipReason".to_owned(), skip.into());
        }
        if let Some((reason, to)) = entry.requeued {
            fields.insert("requeueReason".to_owned(), requeue_reason(reason).into());
            fields.insert("requeuedTo".to_owned(), requeued_to(to).into());
        }
    }
    object
}

fn skip_reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NoLongerFits => "noLongerFits",
        SkipReason::OverlappingVictims => "overlappingPreemptionTargets",
        SkipReason::BorrowingGate => "borrowingGate",
        SkipReason::VictimLimit => "budget",
    }
}

fn requeue_reason(reason: RequeueReason) -> &'static str {
    match reason {
        RequeueReason::FailedAfterNomination => "FailedAfterNomination",
        RequeueReason::PendingPreemption => "PendingPreemption",
        RequeueReason::PreemptionNoCandidates => "PreemptionNoCandidates",
        RequeueReason::NoFit => "NoFit",
        RequeueReason::NamespaceMismatch => "NamespaceMismatch",
    }
}

fn requeued_to(to: RequeueDestination) -> &'static str {
    match to {
        RequeueDestination::Active => "active",
        RequeueDestination::Inadmissible => "inadmissible",
    }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::NoFit => "NoFit",
        Mode::Preempt => "Preempt",
        Mode::Fit => "Fit",
    }
}

pub(super) fn possibility(possibility: Possibility) -> &'static str {
    match possibility {
        Possibility::NoFit => "NoFit",
        Possibility::NoCandidates => "NoCandidates",
        Possibility::Preempt => "Preempt",
        Possibility::Reclaim => "Reclaim",
        Possibility::Fit => "Fit",
    }
}

fn assignment_json(state: &State, workload: &str, assignment: &Assignment) -> Value {
    let names = pod_set_names(state, workload);
    let pod_sets = assignment.pod_sets.iter().map(|pod_set| {
        let flavors = pod_set.flavors.iter().map(|assigned| {
            let flavor = json!({
                "flavor": state.flavor_name(assigned.flavor),
                "mode": mode(assigned.mode),
                "borrow": assigned.borrowing_level,
                "triedFlavorIdx": assigned.tried_flavor_index.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)),
            });
            (state.resource_name(assigned.resource).to_owned(), flavor)
        });
        let flavors: Map<String, Value> = flavors.collect();
        json!({
            "name": names.get(pod_set.pod_set),
            "count": pod_set.count,
            "mode": mode(pod_set.mode),
            "flavors": flavors,
        })
    });
    let pod_sets: Vec<Value> = pod_sets.collect();
    let needs: Vec<(FlavorResource, Amount)> = assignment
        .usage
        .iter()
        .filter(|(of, _)| assignment.needs().contains(of))
        .copied()
        .collect();
    json!({
        "representativeMode": mode(assignment.mode),
        "borrowing": assignment.borrowing_level,
        "podSets": pod_sets,
        "usage": usage_json(state, &assignment.usage),
        "needPreemption": usage_json(state, &needs),
    })
}

fn usage_json(state: &State, amounts: &[(FlavorResource, Amount)]) -> Value {
    serde_json::to_value(quota_pairs(state, amounts)).unwrap_or_default()
}

fn victims_json(state: &State, victims: &[Victim]) -> Value {
    let victims = victims.iter().map(|victim| {
        let queue = state.workload_view(victim.workload).queue();
        json!({
            "workload": state.workload_name(victim.workload),
            "clusterQueue": queue.map(|id| state.node_view(id).name()),
            "reason": victim.reason.as_str(),
        })
    });
    victims.collect()
}

fn trace_json(state: &State, trace: &Trace) -> Value {
    trace
        .steps()
        .iter()
        .map(|it| step_json(state, it))
        .collect()
}

fn step_json(state: &State, step: &Step) -> Value {
    let pair = |of: &FlavorResource| {
        json!({
            "flavor": state.flavor_name(of.flavor),
            "resource": state.resource_name(of.resource),
        })
    };
    match step {
        Step::Flavor {
            pod_set,
            flavor,
            verdict,
        } => {
            let mut object = json!({
                "step": "flavor",
                "podSet": pod_set,
                "flavor": state.flavor_name(*flavor),
            });
            if let (Some(object), Value::Object(verdict)) =
                (object.as_object_mut(), flavor_verdict_json(state, verdict))
            {
                object.extend(verdict);
            }
            object
        }
        Step::Search { needs } => {
            json!({"step": "search", "needs": needs.iter().map(pair).collect::<Vec<_>>()})
        }
        Step::MayNotPreempt => json!({"step": "mayNotTrigger"}),
        Step::PreemptionDelayed { until_s } => json!({"step": "delayed", "untilSeconds": until_s}),
        Step::CannotSucceed => json!({"step": "inVain"}),
        Step::Attempt { may_borrow } => json!({"step": "attempt", "allowBorrowing": may_borrow}),
        Step::Candidate {
            workload,
            reason,
            verdict,
        } => json!({
            "step": "candidate",
            "workload": state.workload_name(*workload),
            "reason": reason.as_str(),
            "verdict": match verdict {
                CandidateVerdict::Selected => "taken",
                CandidateVerdict::NotNewer => "notNewer",
                CandidateVerdict::NotWhileBorrowing => "notWhileBorrowing",
                CandidateVerdict::ShareTooLarge => "shareTooLarge",
                _ => "other",
            },
        }),
        Step::Queue { queue, verdict } => json!({
            "step": "queue",
            "clusterQueue": state.node_view(*queue).name(),
            "verdict": match verdict {
                QueueVerdict::NoLongerBorrows => "noLongerBorrows",
                QueueVerdict::PriorityTooHigh => "priorityTooHigh",
                QueueVerdict::AboveThreshold { .. } => "aboveThreshold",
                _ => "other",
            },
        }),
        Step::FilledBack { workload } => json!({
            "step": "filledBack",
            "workload": state.workload_name(*workload),
        }),
        Step::SearchEnded { found } => json!({"step": "searched", "found": found}),
        _ => limit_step_json(state, step),
    }
}

/// Steps that are neither about quota nor about preemption policies.
fn limit_step_json(state: &State, step: &Step) -> Value {
    match step {
        Step::ResourceNotCovered { pod_set, resource } => json!({
            "step": "resourceNotCovered",
            "podSet": pod_set,
            "resource": state.resource_name(*resource),
        }),
        Step::FewerPods { counts } => json!({"step": "fewerPods", "counts": counts}),
        Step::Protected {
            workload,
            protection: why,
        } => {
            let mut object = protection_json(why);
            if let Some(object) = object.as_object_mut() {
                object.insert("step".to_owned(), json!("spared"));
                object.insert("workload".to_owned(), json!(state.workload_name(*workload)));
            }
            object
        }
        Step::QuotaHeld { preemptor, amounts } => {
            let amounts = amounts.iter().map(|(of, amount)| {
                json!({
                    "flavor": state.flavor_name(of.flavor),
                    "resource": state.resource_name(of.resource),
                    "amount": amount.get(),
                })
            });
            json!({
                "step": "held",
                "preemptor": state.workload_name(*preemptor),
                "amounts": amounts.collect::<Vec<_>>(),
            })
        }
        Step::Thresholds {
            within_max,
            reclaim_max,
        } => json!({
            "step": "thresholds",
            "withinMaxPriorityThreshold": within_max,
            "reclaimMaxPriorityThreshold": reclaim_max,
        }),
        Step::DecisionRetained => json!({"step": "stands"}),
        Step::Displaced { preemptor } => json!({
            "step": "displaced",
            "preemptor": state.workload_name(*preemptor),
        }),
        Step::ExceedsVictimLimit {
            victims,
            victims_max,
        } => json!({"step": "overBudget", "victims": victims, "maxVictims": victims_max}),
        Step::Backfilled { head, starts_by_s } => json!({
            "step": "backfilled",
            "head": state.workload_name(*head),
            "headStartsBySeconds": starts_by_s,
        }),
        _ => json!({"step": "other"}),
    }
}

fn protection_json(why: &Protection) -> Value {
    match why {
        Protection::NonPreemptible => json!({"verdict": "nonPreemptible"}),
        Protection::EvictedForAnother => json!({"verdict": "promised"}),
        Protection::PreemptedBefore => json!({"verdict": "takenBefore"}),
        Protection::BelowMinRuntime {
            runtime_s: for_s,
            min_runtime_s: least_s,
        } => {
            json!({"verdict": "runsTooShort", "seconds": for_s, "minSeconds": least_s})
        }
        Protection::PreemptedTooOften { times } => {
            json!({"verdict": "preemptedTooOften", "times": times})
        }
        _ => json!({"verdict": "other"}),
    }
}

fn flavor_verdict_json(state: &State, verdict: &FlavorVerdict) -> Value {
    match verdict {
        FlavorVerdict::Ineligible => json!({"verdict": "NoMatchingFlavor"}),
        FlavorVerdict::NotNominated => json!({"verdict": "notNominated"}),
        FlavorVerdict::ExceedsMaxQuota {
            of,
            requested,
            potential,
        } => json!({
            "verdict": "ExceedsMaxQuota",
            "resource": state.resource_name(of.resource),
            "requested": requested.get(),
            "potential": potential.get(),
        }),
        FlavorVerdict::ExceedsMin { of, sum, min } => json!({
            "verdict": "beyondMin",
            "resource": state.resource_name(of.resource),
            "sum": sum.get(),
            "min": min.get(),
        }),
        FlavorVerdict::ExceedsMax {
            of,
            sum,
            reserved,
            max,
        } => json!({
            "verdict": "beyondMax",
            "resource": state.resource_name(of.resource),
            "sum": sum.get(),
            "reserved": reserved.get(),
            "max": max.get(),
        }),
        FlavorVerdict::WaitingForQuota {
            of,
            requested,
            available,
        } => json!({
            "verdict": "WaitingForQuota",
            "resource": state.resource_name(of.resource),
            "requested": requested.get(),
            "available": available.get(),
        }),
        FlavorVerdict::Possible {
            possibility: it,
            borrowing_level,
        } => json!({"verdict": possibility(*it), "borrow": borrowing_level}),
        _ => json!({"verdict": "other"}),
    }
}
