//! What a round considered, told.

use super::door::{self, Quotas, joined};
use lockkeeper_preemption::job::{
    Admission, Blocked, InTheWay, Level, Outcome, QuotaTree, Refusal, Removal, Resources, Step,
    Sums, World,
};
use lockkeeper_preemption::placement::{Cluster, Pod};
use lockkeeper_preemption::{HostId, PodId, ResourceId};
use serde_json::{Value, json};
use std::fmt::Write;

/// Names for numbers.
pub(super) struct Naming<'a> {
    pub(super) names: &'a Cluster,
    pub(super) quotas: &'a Quotas,
}

impl Naming<'_> {
    fn pod(&self, pod: PodId) -> &str {
        self.names.pod(pod).map_or("", |it| it.name())
    }

    fn host(&self, host: HostId) -> &str {
        self.names.host_name(host)
    }

    fn resources(&self, all: &[ResourceId]) -> Vec<&str> {
        all.iter().map(|it| self.names.resource_name(*it)).collect()
    }

    fn told(&self, amounts: &Resources) -> Value {
        door::told(self.names, amounts)
    }

    fn shown(&self, amounts: &Resources) -> String {
        door::shown(self.names, amounts)
    }
}

pub(super) const fn trigger(may: bool) -> &'static str {
    if may {
        "may trigger preemption"
    } else {
        "may not trigger preemption"
    }
}

/// The sums of a job at its quota and those above.
pub(super) fn gate(naming: &Naming<'_>, tree: &QuotaTree, admission: &Admission) -> Value {
    let levels = admission.levels.iter().map(|level| {
        let limits = tree.limits(level.quota);
        let told = json!({
            "quota": naming.quotas.name(level.quota),
            "max": naming.told(&limits.max),
            "overMax": naming.resources(&level.over_max),
        });
        let sums = match &level.sums {
            Sums::NonPreemptible {
                non_preemptible,
                all,
                over_min,
            } => json!({
                "min": naming.told(&limits.min),
                "overMin": naming.resources(over_min),
                "nonPreemptible": naming.told(non_preemptible),
                "all": naming.told(all),
            }),
            Sums::Preemptible { kept, all } => {
                json!({"kept": naming.told(kept), "all": naming.told(all)})
            }
        };
        joined(told, sums)
    });
    json!({
        "step": "gate",
        "class": admission.class.as_str(),
        "job": naming.told(&admission.total),
        "admitted": admission.is_admitted(),
        "mayPreempt": admission.may_preempt(),
        "levels": levels.collect::<Vec<_>>(),
    })
}

pub(super) fn gate_lines(
    naming: &Naming<'_>,
    tree: &QuotaTree,
    admission: &Admission,
) -> Vec<String> {
    let levels = admission.levels.iter();
    levels
        .flat_map(|it| level_lines(naming, tree, it))
        .collect()
}

fn level_lines(naming: &Naming<'_>, tree: &QuotaTree, level: &Level) -> Vec<String> {
    let quota = naming.quotas.name(level.quota);
    let limits = tree.limits(level.quota);
    let verdict = |limit: &str, most: &Resources, over: &[ResourceId]| {
        let most = if most.is_empty() {
            "unlimited".to_owned()
        } else {
            naming.shown(most)
        };
        let over = naming.resources(over).join(", ");
        match over.as_str() {
            "" => format!("{limit} {most} holds"),
            over => format!("{limit} {most} is passed ({over})"),
        }
    };
    let max = verdict("max", &limits.max, &level.over_max);
    match &level.sums {
        Sums::NonPreemptible {
            non_preemptible,
            all,
            over_min,
        } => {
            let (own, all) = (naming.shown(non_preemptible), naming.shown(all));
            let min = verdict("min", &limits.min, over_min);
            vec![
                format!("quota {quota}: non-preemptible use would be {own}; {min}"),
                format!("quota {quota}: use of all would be {all}; {max}"),
            ]
        }
        Sums::Preemptible { kept, all } => {
            let (kept, all) = (naming.shown(kept), naming.shown(all));
            vec![format!(
                "quota {quota}: use would be {all}, {kept} of it kept for the non-preemptible; {max}"
            )]
        }
    }
}

/// A step for a program.
pub(super) fn told(naming: &Naming<'_>, tree: &QuotaTree, step: &Step) -> Value {
    let (pod, host) = (|it| naming.pod(it), |it| naming.host(it));
    match step {
        Step::Blocked(Blocked::Unfinished { victims }) => {
            json!({"step": "blocked", "why": "unfinished", "victims": victims})
        }
        Step::Blocked(Blocked::TooMany { rounds_max }) => {
            json!({"step": "blocked", "why": "tooMany", "roundsMax": rounds_max})
        }
        Step::Trigger { may } => json!({"step": "trigger", "may": may}),
        Step::Gate(admission) => gate(naming, tree, admission),
        Step::Placed { pod: it, host: on } => {
            json!({"step": "placed", "pod": pod(*it), "node": host(*on)})
        }
        Step::Excluded { host: it } => json!({"step": "excluded", "node": host(*it)}),
        Step::OverMax { quota, over } => json!({
            "step": "overMax",
            "quota": naming.quotas.name(*quota),
            "over": naming.resources(over),
        }),
        Step::AsItIs { fits } => json!({"step": "asItIs", "fits": fits}),
        Step::Removed {
            pod: it,
            host: on,
            reason,
        } => {
            let reason = match reason {
                Removal::Node => "node",
                Removal::Quota => "quota",
            };
            json!({"step": "removed", "pod": pod(*it), "node": host(*on), "for": reason})
        }
        Step::Nominated { pod: it, host: on } => {
            json!({"step": "nominated", "pod": pod(*it), "node": host(*on)})
        }
        Step::Unplaced { pod: it } => json!({"step": "unplaced", "pod": pod(*it)}),
        Step::AssignedBack { pod: it } => json!({"step": "assignedBack", "pod": pod(*it)}),
        Step::Victim { pod: it, why } => {
            let why = match why {
                InTheWay::NoRoom { resource } => {
                    json!({"noRoom": naming.names.resource_name(*resource)})
                }
                InTheWay::NoQuota { quota } => json!({"noQuota": naming.quotas.name(*quota)}),
            };
            joined(json!({"step": "victim", "pod": pod(*it)}), why)
        }
        _ => json!({"step": "other"}),
    }
}

/// A step for a person; one line or more.
pub(super) fn lines(naming: &Naming<'_>, tree: &QuotaTree, step: &Step) -> Vec<String> {
    let (pod, host) = (|it| naming.pod(it), |it| naming.host(it));
    let line = match step {
        Step::Gate(admission) => return gate_lines(naming, tree, admission),
        Step::Blocked(blocked) => self::blocked(*blocked),
        Step::Trigger { may } => format!("the job {} by its labels and policy", trigger(*may)),
        Step::Placed { pod: it, host: on } => {
            format!("{} has its place on {} already", pod(*it), host(*on))
        }
        Step::Excluded { host: it } => {
            format!(
                "node {} is out of the question, whoever leaves it",
                host(*it)
            )
        }
        Step::OverMax { quota, over } => format!(
            "quota {} would pass its max ({}): all that use it and may go are taken, on whatever node",
            naming.quotas.name(*quota),
            naming.resources(over).join(", ")
        ),
        Step::AsItIs { fits: true } => "all its pods fit without anybody going for room".to_owned(),
        Step::AsItIs { fits: false } => {
            "not all its pods fit as things are: all that may go are taken".to_owned()
        }
        Step::Removed {
            pod: it,
            host: on,
            reason: Removal::Node,
        } => format!("{} is taken from {}, for room", pod(*it), host(*on)),
        Step::Removed {
            pod: it,
            host: on,
            reason: Removal::Quota,
        } => format!("{} is taken from {}, for quota", pod(*it), host(*on)),
        Step::Nominated { pod: it, host: on } => format!("{} goes to {}", pod(*it), host(*on)),
        Step::Unplaced { pod: it } => format!("{} fits nowhere", pod(*it)),
        Step::AssignedBack { pod: it } => {
            format!("{} stays: it is not in the way", pod(*it))
        }
        Step::Victim { pod: it, why } => {
            let why = match why {
                InTheWay::NoRoom { resource } => format!(
                    "there is not enough {} left beside the job",
                    naming.names.resource_name(*resource)
                ),
                InTheWay::NoQuota { quota } => format!(
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

fn blocked(blocked: Blocked) -> String {
    match blocked {
        Blocked::Unfinished { victims: 1 } => {
            "1 victim of the last round has not gone yet".to_owned()
        }
        Blocked::Unfinished { victims } => {
            format!("{victims} victims of the last round have not gone yet")
        }
        Blocked::TooMany { rounds_max } => {
            format!("{rounds_max} jobs wait for their victims already, as many as may")
        }
    }
}

/// Why a job gets no places: in the words of the cases, and for a person.
pub(super) fn refusal(naming: &Naming<'_>, refusal: &Refusal) -> (&'static str, String) {
    match refusal {
        Refusal::Blocked(blocked) => ("previous round not finished", self::blocked(*blocked)),
        Refusal::MayNotTrigger => (
            "job may not trigger preemption",
            "its labels or its policy forbid it to trigger preemption".to_owned(),
        ),
        Refusal::Quota(admission) => {
            let mut levels = admission.levels.iter();
            let refused = levels.find(|it| !it.is_within_min() || !it.is_within_max());
            let name = refused.map_or("", |it| naming.quotas.name(it.quota));
            ("quota gate", format!("quota {name} forbids it"))
        }
        Refusal::OverMax { quota } => {
            let name = naming.quotas.name(*quota);
            let text =
                format!("quota {name} would pass its max even if all went that use it and may go");
            ("quota max", text)
        }
        Refusal::NoPlace { pod } => (
            "not every pod of the job fits",
            format!(
                "{} fits nowhere, even without all that may go",
                naming.pod(*pod)
            ),
        ),
        Refusal::NotWhole { gang, pods } => (
            "job is not whole",
            format!(
                "at least {} of {} pods must run, and {pods} are there; the three must be equal",
                gang.minimum, gang.total
            ),
        ),
        Refusal::Mixed => (
            "pods of the job differ",
            "it has no pods, or they differ in quota, class or priority".to_owned(),
        ),
    }
}

/// What comes of a round, in the field names of the cases.
pub(super) fn outcome(naming: &Naming<'_>, outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Refused(refused) => json!({
            "preempt": false,
            "why": refusal(naming, refused).0,
            "victims": [],
            "nominations": {},
        }),
        Outcome::Preempt(plan) => {
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
            joined(told, json!({"leaving": names(&plan.leaving)}))
        }
    }
}

/// The same for a person.
pub(super) fn outcome_text(
    naming: &Naming<'_>,
    world: &World,
    outcome: &Outcome,
    job: &str,
) -> String {
    let plan = match outcome {
        Outcome::Refused(refused) => {
            let why = refusal(naming, refused).1;
            return format!("{job} gets no places, and nothing happens to anybody: {why}\n");
        }
        Outcome::Preempt(plan) => plan,
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
