//! What a round considered, told.

use super::resolve::{self, QuotaIds, merge_fields};
use lockkeeper_preemption::job::{
    AssignBackFailure, BlockedReason, CheckedUsage, JobCluster, JobOutcome, JobRejection, JobStep,
    QuotaCheck, QuotaCheckLevel, QuotaTree, RemovalReason, ResourceList,
};
use lockkeeper_preemption::placement::{Cluster, Pod};
use lockkeeper_preemption::{HostId, PodId, ResourceId};
use serde_json::{Value, json};
use std::fmt::Write;

/// Names for numbers.
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

/// The sums of a job at its quota and those above.
pub(super) fn gate_json(
    naming: &NameLookup<'_>,
    tree: &QuotaTree,
    admission: &QuotaCheck,
) -> Value {
    let levels = admission.levels.iter().map(|level| {
        let limits = tree.limits(level.quota);
        let told = json!({
            "quota": naming.quotas.name(level.quota),
            "max": naming.to_json(&limits.max),
            "overMax": naming.resources(&level.over_max),
        });
        let sums = match &level.usage {
            CheckedUsage::NonPreemptible {
                non_preemptible,
                all,
                over_min,
            } => json!({
                "min": naming.to_json(&limits.min),
                "overMin": naming.resources(over_min),
                "nonPreemptible": naming.to_json(non_preemptible),
                "all": naming.to_json(all),
            }),
            CheckedUsage::Preemptible {
                non_preemptible_reserve: kept,
                all,
            } => {
                json!({"kept": naming.to_json(kept), "all": naming.to_json(all)})
            }
        };
        merge_fields(told, sums)
    });
    json!({
        "step": "gate",
        "class": admission.preemptibility.as_str(),
        "job": naming.to_json(&admission.total),
        "admitted": admission.has_quota(),
        "mayPreempt": admission.may_preempt(),
        "levels": levels.collect::<Vec<_>>(),
    })
}

pub(super) fn gate_lines(
    naming: &NameLookup<'_>,
    tree: &QuotaTree,
    admission: &QuotaCheck,
) -> Vec<String> {
    let levels = admission.levels.iter();
    levels
        .flat_map(|it| level_lines(naming, tree, it))
        .collect()
}

fn level_lines(naming: &NameLookup<'_>, tree: &QuotaTree, level: &QuotaCheckLevel) -> Vec<String> {
    let quota = naming.quotas.name(level.quota);
    let limits = tree.limits(level.quota);
    let verdict = |limit: &str, most: &ResourceList, over: &[ResourceId]| {
        let most = if most.is_empty() {
            "unlimited".to_owned()
        } else {
            naming.to_text(most)
        };
        let over = naming.resources(over).join(", ");
        match over.as_str() {
            "" => format!("{limit} {most} holds"),
            over => format!("{limit} {most} is passed ({over})"),
        }
    };
    let max = verdict("max", &limits.max, &level.over_max);
    match &level.usage {
        CheckedUsage::NonPreemptible {
            non_preemptible,
            all,
            over_min,
        } => {
            let (own, all) = (naming.to_text(non_preemptible), naming.to_text(all));
            let min = verdict("min", &limits.min, over_min);
            vec![
                format!("quota {quota}: non-preemptible use would be {own}; {min}"),
                format!("quota {quota}: use of all would be {all}; {max}"),
            ]
        }
        CheckedUsage::Preemptible {
            non_preemptible_reserve: kept,
            all,
        } => {
            let (kept, all) = (naming.to_text(kept), naming.to_text(all));
            vec![format!(
                "quota {quota}: use would be {all}, {kept} of it kept for the non-preemptible; {max}"
            )]
        }
    }
}

/// A step for a program.
pub(super) fn step_json(naming: &NameLookup<'_>, tree: &QuotaTree, step: &JobStep) -> Value {
    let (pod, host) = (|it| naming.pod(it), |it| naming.host(it));
    match step {
        JobStep::Blocked(BlockedReason::Unfinished { victims }) => {
            json!({"step": "blocked", "why": "unfinished", "victims": victims})
        }
        JobStep::Blocked(BlockedReason::TooMany { rounds_max }) => {
            json!({"step": "blocked", "why": "tooMany", "roundsMax": rounds_max})
        }
        JobStep::Trigger { may } => json!({"step": "trigger", "may": may}),
        JobStep::QuotaGate(admission) => gate_json(naming, tree, admission),
        JobStep::Placed { pod: it, host: on } => {
            json!({"step": "placed", "pod": pod(*it), "node": host(*on)})
        }
        JobStep::Excluded { host: it } => json!({"step": "excluded", "node": host(*it)}),
        JobStep::OverMax { quota, over } => json!({
            "step": "overMax",
            "quota": naming.quotas.name(*quota),
            "over": naming.resources(over),
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
                    json!({"noRoom": naming.cluster.resource_name(*resource)})
                }
                AssignBackFailure::QuotaFull { quota } => {
                    json!({"noQuota": naming.quotas.name(*quota)})
                }
            };
            merge_fields(json!({"step": "victim", "pod": pod(*it)}), why)
        }
        _ => json!({"step": "other"}),
    }
}

/// A step for a person; one line or more.
pub(super) fn step_lines(naming: &NameLookup<'_>, tree: &QuotaTree, step: &JobStep) -> Vec<String> {
    let (pod, host) = (|it| naming.pod(it), |it| naming.host(it));
    let line = match step {
        JobStep::QuotaGate(admission) => return gate_lines(naming, tree, admission),
        JobStep::Blocked(blocked) => self::blocked_text(*blocked),
        JobStep::Trigger { may } => {
            format!("the job {} by its labels and policy", trigger_text(*may))
        }
        JobStep::Placed { pod: it, host: on } => {
            format!("{} has its place on {} already", pod(*it), host(*on))
        }
        JobStep::Excluded { host: it } => {
            format!(
                "node {} is out of the question, whoever leaves it",
                host(*it)
            )
        }
        JobStep::OverMax { quota, over } => format!(
            "quota {} would pass its max ({}): all that use it and may go are taken, on whatever node",
            naming.quotas.name(*quota),
            naming.resources(over).join(", ")
        ),
        JobStep::PlacedWithoutVictims { fits: true } => {
            "all its pods fit without anybody going for room".to_owned()
        }
        JobStep::PlacedWithoutVictims { fits: false } => {
            "not all its pods fit as things are: all that may go are taken".to_owned()
        }
        JobStep::Removed {
            pod: it,
            host: on,
            reason: RemovalReason::Node,
        } => format!("{} is taken from {}, for room", pod(*it), host(*on)),
        JobStep::Removed {
            pod: it,
            host: on,
            reason: RemovalReason::Quota,
        } => format!("{} is taken from {}, for quota", pod(*it), host(*on)),
        JobStep::Nominated { pod: it, host: on } => format!("{} goes to {}", pod(*it), host(*on)),
        JobStep::Unplaced { pod: it } => format!("{} fits nowhere", pod(*it)),
        JobStep::AssignedBack { pod: it } => {
            format!("{} stays: it is not in the way", pod(*it))
        }
        JobStep::Victim {
            pod: it,
            reason: why,
        } => {
            let why = match why {
                AssignBackFailure::NodeFull { resource } => format!(
                    "there is not enough {} left beside the job",
                    naming.cluster.resource_name(*resource)
                ),
                AssignBackFailure::QuotaFull { quota } => format!(
                    "quota {} would pass its max with it",
                    naming.quotas.name(*quota)
                ),
            };
            format!("{} goes: {why}", pod(*it))
        }
        _ => return Vec::new(),
    };
    vec![line]
}

fn blocked_text(blocked: BlockedReason) -> String {
    match blocked {
        BlockedReason::Unfinished { victims: 1 } => {
            "1 victim of the last round has not gone yet".to_owned()
        }
        BlockedReason::Unfinished { victims } => {
            format!("{victims} victims of the last round have not gone yet")
        }
        BlockedReason::TooMany { rounds_max } => {
            format!("{rounds_max} jobs wait for their victims already, as many as may")
        }
    }
}

/// Why a job gets no places: in the words of the cases, and for a person.
pub(super) fn rejection_reason(
    naming: &NameLookup<'_>,
    refusal: &JobRejection,
) -> (&'static str, String) {
    match refusal {
        JobRejection::Blocked(blocked) => {
            ("previous round not finished", self::blocked_text(*blocked))
        }
        JobRejection::TriggerNotAllowed => (
            "job may not trigger preemption",
            "its labels or its policy forbid it to trigger preemption".to_owned(),
        ),
        JobRejection::Quota(admission) => {
            let mut levels = admission.levels.iter();
            let refused = levels.find(|it| !it.is_within_min() || !it.is_within_max());
            let name = refused.map_or("", |it| naming.quotas.name(it.quota));
            ("quota gate", format!("quota {name} forbids it"))
        }
        JobRejection::OverMax { quota } => {
            let name = naming.quotas.name(*quota);
            let text =
                format!("quota {name} would pass its max even if all went that use it and may go");
            ("quota max", text)
        }
        JobRejection::NoPlacement { pod } => (
            "not every pod of the job fits",
            format!(
                "{} fits nowhere, even without all that may go",
                naming.pod(*pod)
            ),
        ),
        JobRejection::IncompleteGang { gang, pods } => (
            "job is not whole",
            format!(
                "at least {} of {} pods must run, and {pods} are there; the three must be equal",
                gang.minimum, gang.total
            ),
        ),
        JobRejection::MixedPods => (
            "pods of the job differ",
            "it has no pods, or they differ in quota, class or priority".to_owned(),
        ),
    }
}

/// What comes of a round, in the field names of the cases.
pub(super) fn outcome_json(naming: &NameLookup<'_>, outcome: &JobOutcome) -> Value {
    match outcome {
        JobOutcome::Rejected(refused) => json!({
            "preempt": false,
            "why": rejection_reason(naming, refused).0,
            "victims": [],
            "nominations": {},
        }),
        JobOutcome::Preempt(plan) => {
            let names = |pods: &[PodId]| -> Vec<String> {
                pods.iter().map(|it| naming.pod(*it).to_owned()).collect()
            };
            let nominations = plan.nominations.iter();
            let nominations: serde_json::Map<String, Value> = nominations
                .map(|(pod, host)| (naming.pod(*pod).to_owned(), naming.host(*host).into()))
                .collect();
            let told = json!({
                "preempt": true,
                "why": "ok",
                "victims": names(&plan.victims),
                "nominations": nominations,
                "victim_action": plan.action.as_str(),
            });
            if plan.leaving.is_empty() {
                return told;
            }
            merge_fields(told, json!({"leaving": names(&plan.leaving)}))
        }
    }
}

/// The same for a person.
pub(super) fn outcome_text(
    naming: &NameLookup<'_>,
    world: &JobCluster,
    outcome: &JobOutcome,
    job: &str,
) -> String {
    let plan = match outcome {
        JobOutcome::Rejected(refused) => {
            let why = rejection_reason(naming, refused).1;
            return format!("{job} gets no places, and nothing happens to anybody: {why}\n");
        }
        JobOutcome::Preempt(plan) => plan,
    };
    let verdict = match plan.victims.len() {
        0 => "gets its places, and nobody has to go".to_owned(),
        1 => "gets its places once 1 pod is gone".to_owned(),
        more => format!("gets its places once {more} pods are gone"),
    };
    let mut text = format!("{job} {verdict}\n");
    for (pod, host) in &plan.nominations {
        let _ = writeln!(text, "  {} on {}", naming.pod(*pod), naming.host(*host));
    }
    if !plan.victims.is_empty() {
        let _ = writeln!(text, "\nWho has to go ({})", plan.action.as_str());
        for victim in &plan.victims {
            let pod = world.cluster().pod(*victim);
            let priority = pod.map_or(0, Pod::priority);
            let host = pod.and_then(Pod::host);
            let host = host.map_or("", |it| naming.host(it));
            let name = naming.pod(*victim);
            let _ = writeln!(text, "  {name} (node {host}, priority {priority})");
        }
    }
    for pod in &plan.leaving {
        let _ = writeln!(text, "  {} leaves anyway", naming.pod(*pod));
    }
    text
}
