//! Prints the decision and the trace of a round of job preemption, as JSON and as text.

use super::resolve::{self, QuotaIds, merge_fields};
use lockkeeper_preemption::job::{
    AssignBackFailure, BlockedReason, CheckedUsage, JobCluster, JobOutcome, JobRejection, JobStep,
    QuotaCheck, QuotaCheckLevel, QuotaTree, RemovalReason, ResourceList,
};
use lockkeeper_preemption::placement::{Cluster, Pod};
use lockkeeper_preemption::{HostId, PodId, ResourceId};
use serde_json::{Value, json};
use std::fmt::Write;

/// Looks up the names of ids.
pub(super) struct NameLookup<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) quotas: &'a QuotaIds,
}

impl NameLookup<'_> {
    fn pod(&self, pod: PodId) -> &str {
        self.cluster.pod(pod).map_or("", |it| it.name())
    }

    fn host(&self, host: HostId) -> &str {
        self.cluster.host_name(host)
    }

    fn resources(&self, all: &[ResourceId]) -> Vec<&str> {
        all.iter()
            .map(|it| self.cluster.resource_name(*it))
            .collect()
    }

    fn to_json(&self, amounts: &ResourceList) -> Value {
        resolve::to_json(self.cluster, amounts)
    }

    fn to_text(&self, amounts: &ResourceList) -> String {
        resolve::to_text(self.cluster, amounts)
    }
}

pub(super) const fn trigger_text(may: bool) -> &'static str {
    if may {
        "may trigger preemption"
    } else {
        "may not trigger preemption"
    }
}

/// The quota check of a job, with the sums at its quota and at each ancestor.
pub(super) fn gate_json(names: &NameLookup<'_>, tree: &QuotaTree, admission: &QuotaCheck) -> Value {
    let levels = admission.levels.iter().map(|level| {
        let limits = tree.limits(level.quota);
        let fields = json!({
            "quota": names.quotas.name(level.quota),
            "max": names.to_json(&limits.max),
            "overMax": names.resources(&level.over_max),
        });
        let sums = match &level.usage {
            CheckedUsage::NonPreemptible {
                non_preemptible,
                all,
                over_min,
            } => json!({
                "min": names.to_json(&limits.min),
                "overMin": names.resources(over_min),
                "nonPreemptible": names.to_json(non_preemptible),
                "all": names.to_json(all),
            }),
            CheckedUsage::Preemptible {
                non_preemptible_reserve: kept,
                all,
            } => {
                json!({"kept": names.to_json(kept), "all": names.to_json(all)})
            }
        };
        merge_fields(fields, sums)
    });
    json!({
        "step": "gate",
        "class": admission.preemptibility.as_str(),
        "job": names.to_json(&admission.total),
        "admitted": admission.has_quota(),
        "mayPreempt": admission.may_preempt(),
        "levels": levels.collect::<Vec<_>>(),
    })
}

pub(super) fn gate_lines(
    names: &NameLookup<'_>,
    tree: &QuotaTree,
    admission: &QuotaCheck,
) -> Vec<String> {
    let levels = admission.levels.iter();
    levels.flat_map(|it| level_lines(names, tree, it)).collect()
}

fn level_lines(names: &NameLookup<'_>, tree: &QuotaTree, level: &QuotaCheckLevel) -> Vec<String> {
    let quota = names.quotas.name(level.quota);
    let limits = tree.limits(level.quota);
    let verdict = |limit: &str, most: &ResourceList, over: &[ResourceId]| {
        let most = if most.is_empty() {
            "unlimited".to_owned()
        } else {
            names.to_text(most)
        };
        let over = names.resources(over).join(", ");
        match over.as_str() {
            "" => format!("within {limit} {most}"),
            over => format!("exceeds {limit} {most} ({over})"),
        }
    };
    let max = verdict("max", &limits.max, &level.over_max);
    match &level.usage {
        CheckedUsage::NonPreemptible {
            non_preemptible,
            all,
            over_min,
        } => {
            let (own, all) = (names.to_text(non_preemptible), names.to_text(all));
            let min = verdict("min", &limits.min, over_min);
            vec![
                format!("quota {quota}: non-preemptible usage would be {own}: {min}"),
                format!("quota {quota}: total usage would be {all}: {max}"),
            ]
        }
        CheckedUsage::Preemptible {
            non_preemptible_reserve: kept,
            all,
        } => {
            let (kept, all) = (names.to_text(kept), names.to_text(all));
            vec![format!(
                "quota {quota}: usage would be {all}, including {kept} reserved for non-preemptible pods: {max}"
            )]
        }
    }
}

/// A step as JSON.
pub(super) fn step_json(names: &NameLookup<'_>, tree: &QuotaTree, step: &JobStep) -> Value {
    let (pod, host) = (|it| names.pod(it), |it| names.host(it));
    match step {
        JobStep::Blocked(BlockedReason::Unfinished { victims }) => {
            json!({"step": "blocked", "why": "unfinished", "victims": victims})
        }
        JobStep::Blocked(BlockedReason::TooMany { rounds_max }) => {
            json!({"step": "blocked", "why": "tooMany", "roundsMax": rounds_max})
        }
        JobStep::Trigger { may } => json!({"step": "trigger", "may": may}),
        JobStep::QuotaGate(admission) => gate_json(names, tree, admission),
        JobStep::Placed { pod: it, host: on } => {
            json!({"step": "placed", "pod": pod(*it), "node": host(*on)})
        }
        JobStep::Excluded { host: it } => json!({"step": "excluded", "node": host(*it)}),
        JobStep::OverMax { quota, over } => json!({
            "step": "overMax",
            "quota": names.quotas.name(*quota),
            "over": names.resources(over),
        }),
        JobStep::PlacedWithoutVictims { fits } => json!({"step": "asItIs", "fits": fits}),
        JobStep::Removed {
            pod: it,
            host: on,
            reason,
        } => {
            let reason = match reason {
                RemovalReason::Node => "node",
                RemovalReason::Quota => "quota",
            };
            json!({"step": "removed", "pod": pod(*it), "node": host(*on), "for": reason})
        }
        JobStep::Nominated { pod: it, host: on } => {
            json!({"step": "nominated", "pod": pod(*it), "node": host(*on)})
        }
        JobStep::Unplaced { pod: it } => json!({"step": "unplaced", "pod": pod(*it)}),
        JobStep::AssignedBack { pod: it } => json!({"step": "assignedBack", "pod": pod(*it)}),
        JobStep::Victim {
            pod: it,
            reason: why,
        } => {
            let why = match why {
                AssignBackFailure::NodeFull { resource } => {
                    json!({"noRoom": names.cluster.resource_name(*resource)})
                }
                AssignBackFailure::QuotaFull { quota } => {
                    json!({"noQuota": names.quotas.name(*quota)})
                }
            };
            merge_fields(json!({"step": "victim", "pod": pod(*it)}), why)
        }
        _ => json!({"step": "other"}),
    }
}

/// A step as text, one or more lines.
pub(super) fn step_lines(names: &NameLookup<'_>, tree: &QuotaTree, step: &JobStep) -> Vec<String> {
    let (pod, host) = (|it| names.pod(it), |it| names.host(it));
    let line = match step {
        JobStep::QuotaGate(admission) => return gate_lines(names, tree, admission),
        JobStep::Blocked(blocked) => self::blocked_text(*blocked),
        JobStep::Trigger { may } => {
            format!("the job {} by its labels and policy", trigger_text(*may))
        }
        JobStep::Placed { pod: it, host: on } => {
            format!("{} is already placed on {}", pod(*it), host(*on))
        }
        JobStep::Excluded { host: it } => {
            format!(
                "node {} is excluded: no preemption makes it suitable",
                host(*it)
            )
        }
        JobStep::OverMax { quota, over } => format!(
            "quota {} would exceed its max ({}): every candidate that uses it is removed, on any node",
            names.quotas.name(*quota),
            names.resources(over).join(", ")
        ),
        JobStep::PlacedWithoutVictims { fits: true } => {
            "all its pods fit without victims".to_owned()
        }
        JobStep::PlacedWithoutVictims { fits: false } => {
            "not all its pods fit without preemption: every candidate is removed".to_owned()
        }
        JobStep::Removed {
            pod: it,
            host: on,
            reason: RemovalReason::Node,
        } => format!(
            "{} is removed from {} (node resources)",
            pod(*it),
            host(*on)
        ),
        JobStep::Removed {
            pod: it,
            host: on,
            reason: RemovalReason::Quota,
        } => format!("{} is removed from {} (quota)", pod(*it), host(*on)),
        JobStep::Nominated { pod: it, host: on } => {
            format!("{} is nominated to {}", pod(*it), host(*on))
        }
        JobStep::Unplaced { pod: it } => format!("{} fits on no node", pod(*it)),
        JobStep::AssignedBack { pod: it } => {
            format!(
                "{} is assigned back: the job fits without preempting it",
                pod(*it)
            )
        }
        JobStep::Victim {
            pod: it,
            reason: why,
        } => {
            let why = match why {
                AssignBackFailure::NodeFull { resource } => format!(
                    "insufficient {} for both it and the job",
                    names.cluster.resource_name(*resource)
                ),
                AssignBackFailure::QuotaFull { quota } => format!(
                    "quota {} would exceed its max with it",
                    names.quotas.name(*quota)
                ),
            };
            format!("{} is a victim: {why}", pod(*it))
        }
        _ => return Vec::new(),
    };
    vec![line]
}

fn blocked_text(blocked: BlockedReason) -> String {
    match blocked {
        BlockedReason::Unfinished { victims: 1 } => {
            "1 victim of the previous round has not terminated".to_owned()
        }
        BlockedReason::Unfinished { victims } => {
            format!("{victims} victims of the previous round have not terminated")
        }
        BlockedReason::TooMany { rounds_max } => {
            format!("{rounds_max} jobs wait for their victims, which is the limit")
        }
    }
}

/// Why a job is not placed: the value of `why` in the cases, and a text.
pub(super) fn rejection_reason(
    names: &NameLookup<'_>,
    rejection: &JobRejection,
) -> (&'static str, String) {
    match rejection {
        JobRejection::Blocked(blocked) => {
            ("previous round not finished", self::blocked_text(*blocked))
        }
        JobRejection::TriggerNotAllowed => (
            "job may not trigger preemption",
            "its labels or preemptionPolicy forbid preemption".to_owned(),
        ),
        JobRejection::Quota(admission) => {
            let mut levels = admission.levels.iter();
            let rejected = levels.find(|it| !it.is_within_min() || !it.is_within_max());
            let name = rejected.map_or("", |it| names.quotas.name(it.quota));
            ("quota gate", format!("quota {name} rejects it"))
        }
        JobRejection::OverMax { quota } => {
            let name = names.quotas.name(*quota);
            let text = format!(
                "quota {name} would exceed its max even after preempting every candidate that uses it"
            );
            ("quota max", text)
        }
        JobRejection::NoPlacement { pod } => (
            "not every pod of the job fits",
            format!(
                "{} fits on no node, even after preempting every candidate",
                names.pod(*pod)
            ),
        ),
        JobRejection::IncompleteGang { gang, pods } => (
            "job is not whole",
            format!(
                "minimum is {}, total is {}, and {pods} pods exist; the three must be equal",
                gang.minimum, gang.total
            ),
        ),
        JobRejection::MixedPods => (
            "pods of the job differ",
            "it has no pods, or they differ in quota, preemptibility or priority".to_owned(),
        ),
    }
}

/// The outcome of a round, in the field names of the cases.
pub(super) fn outcome_json(names: &NameLookup<'_>, outcome: &JobOutcome) -> Value {
    match outcome {
        JobOutcome::Rejected(rejected) => json!({
            "preempt": false,
            "why": rejection_reason(names, rejected).0,
            "victims": [],
            "nominations": {},
        }),
        JobOutcome::Preempt(plan) => {
            let pod_names = |pods: &[PodId]| -> Vec<String> {
                pods.iter().map(|it| names.pod(*it).to_owned()).collect()
            };
            let nominations = plan.nominations.iter();
            let nominations: serde_json::Map<String, Value> = nominations
                .map(|(pod, host)| (names.pod(*pod).to_owned(), names.host(*host).into()))
                .collect();
            let fields = json!({
                "preempt": true,
                "why": "ok",
                "victims": pod_names(&plan.victims),
                "nominations": nominations,
                "victim_action": plan.action.as_str(),
            });
            if plan.leaving.is_empty() {
                return fields;
            }
            merge_fields(fields, json!({"leaving": pod_names(&plan.leaving)}))
        }
    }
}

/// The outcome of a round as text.
pub(super) fn outcome_text(
    names: &NameLookup<'_>,
    cluster: &JobCluster,
    outcome: &JobOutcome,
    job: &str,
) -> String {
    let plan = match outcome {
        JobOutcome::Rejected(rejected) => {
            let why = rejection_reason(names, rejected).1;
            return format!("{job} is not placed, and there are no victims: {why}\n");
        }
        JobOutcome::Preempt(plan) => plan,
    };
    let verdict = match plan.victims.len() {
        0 => "fits without victims".to_owned(),
        1 => "fits after preempting 1 pod".to_owned(),
        more => format!("fits after preempting {more} pods"),
    };
    let mut text = format!("{job} {verdict}\n");
    for (pod, host) in &plan.nominations {
        let _ = writeln!(text, "  {} on {}", names.pod(*pod), names.host(*host));
    }
    if !plan.victims.is_empty() {
        let _ = writeln!(text, "\nVictims ({})", plan.action.as_str());
        for victim in &plan.victims {
            let pod = cluster.cluster().pod(*victim);
            let priority = pod.map_or(0, Pod::priority);
            let host = pod.and_then(Pod::host);
            let host = host.map_or("", |it| names.host(it));
            let name = names.pod(*victim);
            let _ = writeln!(text, "  {name} (node {host}, priority {priority})");
        }
    }
    for pod in &plan.leaving {
        let _ = writeln!(text, "  {} is already terminating", names.pod(*pod));
    }
    text
}
