//! Jobs against their quota, without nodes.

use super::case::{Admission, Trigger, says};
use super::door::{CaseError, Door, Quotas, joined, read, tree};
use super::{Told, story};
use lockkeeper_preemption::job::{self, Resources, Stage, Sums, Switches};
use serde_json::{Value, json};

/// A job held against its quota.
struct Held {
    door: Door,
    quotas: Quotas,
    tree: job::QuotaTree,
    admission: job::Admission,
    job: String,
}

fn held(asked: &Value) -> Result<Held, CaseError> {
    let case: Admission = read(asked)?;
    let switches = case.args.switches();
    let mut door = Door::default();
    let (mut tree, mut quotas) = tree(&mut door, &case.quota, &case.quotas)?;
    for (at, pod) in case.pods.iter().enumerate() {
        let request = door.resources(&pod.req, &format!("pods[{at}].req"))?;
        let class = switches.class(says(pod.preemptible.as_deref(), None, None));
        let stage = if pod.running {
            Stage::Placed
        } else {
            Stage::Pending
        };
        let name = pod.quota.as_deref().unwrap_or(&case.quota.name);
        let quota = quotas.id(name, || tree.add(None, job::Limits::default()));
        tree.count(quota, class, &request, stage);
    }
    let mut total = Resources::default();
    for (at, pod) in case.job.pods.iter().enumerate() {
        total.add(&door.resources(&pod.req, &format!("job.pods[{at}].req"))?);
    }
    let class = switches.class(case.job.says());
    let quota = quotas.id(&case.quota.name, || tree.add(None, job::Limits::default()));
    let admission = job::admission(&tree, quota, class, total);
    Ok(Held {
        door,
        quotas,
        tree,
        admission,
        job: case.job.name,
    })
}

impl Held {
    /// The sums of the job's own quota.
    fn told(&self) -> Value {
        let admission = &self.admission;
        let told = json!({
            "admit": admission.is_admitted(),
            "class": admission.class.as_str(),
            "job_total": self.door.told(&admission.total),
        });
        let Some(level) = admission.levels.first() else {
            return told;
        };
        let sums = match &level.sums {
            Sums::NonPreemptible {
                non_preemptible,
                all,
                ..
            } => json!({
                "min_ok": level.is_within_min(),
                "max_ok": level.is_within_max(),
                "non_preemptible_used_plus_job": self.door.told(non_preemptible),
                "used_plus_job": self.door.told(all),
            }),
            Sums::Preemptible { kept, all } => json!({
                "max_ok": level.is_within_max(),
                "min_of_min_and_np_request": self.door.told(kept),
                "checked_sum": self.door.told(all),
            }),
        };
        joined(told, sums)
    }

    fn tell(self, decision: Value, verdict: &str) -> Told {
        let naming = story::Naming {
            names: self.door.world.cluster(),
            quotas: &self.quotas,
        };
        let (class, job) = (self.admission.class.as_str(), &self.job);
        let mut text = format!("job {job} ({class}) {verdict}\n");
        for line in story::gate_lines(&naming, &self.tree, &self.admission) {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
        Told {
            decision,
            trace: vec![story::gate(&naming, &self.tree, &self.admission)],
            text,
        }
    }
}

pub(super) fn admission(asked: &Value) -> Result<Told, CaseError> {
    let held = held(asked)?;
    let decision = held.told();
    let verdict = if held.admission.is_admitted() {
        "is admitted"
    } else {
        "is not admitted"
    };
    Ok(held.tell(decision, verdict))
}

pub(super) fn gate(asked: &Value) -> Result<Told, CaseError> {
    let held = held(asked)?;
    let (admit, may) = (held.admission.is_admitted(), held.admission.may_preempt());
    let decision = json!({"prefilter_admit": admit, "may_preempt": may});
    let verdict = match (admit, may) {
        (true, _) => "has quota, and may preempt where there is no room",
        (false, true) => "has no quota, and may preempt to get it",
        (false, false) => "has no quota, and may not preempt",
    };
    Ok(held.tell(decision, verdict))
}

pub(super) fn trigger(asked: &Value) -> Result<Told, CaseError> {
    let case: Trigger = read(asked)?;
    let switches: Switches = case.args.switches();
    let says = says(None, case.pod.can_preempt.as_deref(), case.pod.policy);
    let may = switches.may_trigger(says);
    let text = story::trigger(may);
    Ok(Told {
        decision: json!({"may_trigger": may}),
        trace: Vec::new(),
        text: format!("the pod {text}\n"),
    })
}
