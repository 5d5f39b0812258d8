//! Why a workload that needs preemption has no victims, in one clause: the limit that applies, with its key.

use lockkeeper_preemption::{Protection, QueueVerdict, Step, WorkloadId};
use std::collections::BTreeSet;

/// The clause, from the steps of a trace.
pub(crate) fn preemption_obstacle(steps: &[Step]) -> String {
    if let Some(clause) = steps.iter().find_map(preemptor_obstacle) {
        return clause;
    }
    let limits: Vec<String> = [
        (Limit::MinRun, "within their minimum run time (preemption.limits.withinMinRunSeconds, reclaimMinRunSeconds)"),
        (Limit::Preemptions, "at preemption.limits.maxPreemptions of their ClusterQueue"),
        (Limit::NonPreemptible, "non-preemptible (elastic)"),
    ]
    .into_iter()
    .filter_map(|(limit, text)| match candidates_protected_by(steps, limit) {
        0 => None,
        1 => Some(format!("1 candidate is {}", text.replace("their ", "its "))),
        count => Some(format!("{count} candidates are {text}")),
    })
    .collect();
    let threshold = steps.iter().any(is_threshold).then(|| {
        "the others are above preemption.limits.withinMaxPriorityThreshold or reclaimMaxPriorityThreshold".to_owned()
    });
    let reasons: Vec<String> = limits.into_iter().chain(threshold).collect();
    if reasons.is_empty() {
        return "there are no candidate workloads for preemption".to_owned();
    }
    format!("no candidate may be preempted: {}", reasons.join(", "))
}

/// The clause if the preemptor itself may not preempt, or needs too many victims.
fn preemptor_obstacle(step: &Step) -> Option<String> {
    match step {
        Step::ExceedsVictimLimit {
            victims,
            victims_max,
        } => Some(format!(
            "{victims} preemptions are needed, and the limit per cycle is {victims_max} (maxVictimsPerCycle)"
        )),
        Step::PreemptionDelayed { .. } => Some(
            "it may preempt after it has waited for preemption.limits.delaySeconds of its ClusterQueue".to_owned(),
        ),
        Step::MayNotPreempt => Some(
            "it may not preempt (preemptionPolicy Never, or the labels of its pods in an elastic ClusterQueue)".to_owned(),
        ),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    MinRun,
    Preemptions,
    NonPreemptible,
}

/// The number of candidates that a limit protects.
fn candidates_protected_by(steps: &[Step], limit: Limit) -> usize {
    let protected = steps.iter().filter_map(|step| match step {
        Step::Protected {
            workload,
            protection,
        } => {
            let of = match protection {
                Protection::BelowMinRuntime { .. } => Limit::MinRun,
                Protection::PreemptedTooOften { .. } => Limit::Preemptions,
                Protection::NonPreemptible => Limit::NonPreemptible,
                _ => return None,
            };
            (of == limit).then_some(*workload)
        }
        _ => None,
    });
    // Each search of a trace meets a candidate once.
    protected.collect::<BTreeSet<WorkloadId>>().len()
}

const fn is_threshold(step: &Step) -> bool {
    matches!(
        step,
        Step::Thresholds { .. }
            | Step::Queue {
                verdict: QueueVerdict::AboveThreshold { .. },
                ..
            }
    )
}
