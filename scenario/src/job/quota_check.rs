//! Jobs against their quota, without nodes.

use super::answer::CaseAnswer;
use super::case::{JobAdmissionCase, TriggerCase, preemption_labels};
use super::explanation;
use super::resolve::{CaseError, NameResolver, QuotaIds, merge_fields, parse_case, quota_tree};
use lockkeeper_preemption::job::{self, CheckedUsage, ElasticDefaults, PodStage, ResourceList};
use serde_json::{Value, json};

/// A job held against its quota.
struct QuotaCheck {
    door: NameResolver,
    quotas: QuotaIds,
    tree: job::QuotaTree,
    admission: job::QuotaCheck,
    job: String,
}

fn check_quota(asked: &Value) -> Result<QuotaCheck, CaseError> {
    let case: JobAdmissionCase = parse_case(asked)?;
    let switches = case.args.elastic_defaults();
    let mut door = NameResolver::default();
    let (mut tree, mut quotas) = quota_tree(&mut door, &case.quota, &case.quotas)?;
    for (at, pod) in case.pods.iter().enumerate() {
        let request = door.resources(&pod.req, &format!("pods[{at}].req"))?;
        let class =
            switches.preemptibility(preemption_labels(pod.preemptible.as_deref(), None, None));
        let stage = if pod.running {
            PodStage::Placed
        } else {
            PodStage::Pending
        };
        let name = pod.quota.as_deref().unwrap_or(&case.quota.name);
        let quota = quotas.id(name, || tree.add(None, job::QuotaLimits::default()));
        tree.add_pod(quota, class, &request, stage);
    }
    let mut total = ResourceList::default();
    for (at, pod) in case.job.pods.iter().enumerate() {
        total.add(&door.resources(&pod.req, &format!("job.pods[{at}].req"))?);
    }
    let class = switches.preemptibility(case.job.preemption_labels());
    let quota = quotas.id(&case.quota.name, || {
        tree.add(None, job::QuotaLimits::default())
    });
    let admission = job::check_quota(&tree, quota, class, total);
    Ok(QuotaCheck {
        door,
        quotas,
        tree,
        admission,
        job: case.job.name,
    })
}

impl QuotaCheck {
    /// The sums of the job's own quota.
    fn to_json(&self) -> Value {
        let admission = &self.admission;
        let told = json!({
            "admit": admission.has_quota(),
            "class": admission.preemptibility.as_str(),
            "job_total": self.door.to_json(&admission.total),
        });
        let Some(level) = admission.levels.first() else {
            return told;
        };
        let sums = match &level.usage {
            CheckedUsage::NonPreemptible {
                non_preemptible,
                all,
                ..
            } => json!({
                "min_ok": level.is_within_min(),
                "max_ok": level.is_within_max(),
                "non_preemptible_used_plus_job": self.door.to_json(non_preemptible),
                "used_plus_job": self.door.to_json(all),
            }),
            CheckedUsage::Preemptible {
                non_preemptible_reserve: kept,
                all,
            } => json!({
                "max_ok": level.is_within_max(),
                "min_of_min_and_np_request": self.door.to_json(kept),
                "checked_sum": self.door.to_json(all),
            }),
        };
        merge_fields(told, sums)
    }

    fn into_answer(self, decision: Value, verdict: &str) -> CaseAnswer {
        let naming = explanation::NameLookup {
            cluster: self.door.job_cluster.cluster(),
            quotas: &self.quotas,
        };
        let (class, job) = (self.admission.preemptibility.as_str(), &self.job);
        let mut text = format!("job {job} ({class}) {verdict}\n");
        for line in explanation::gate_lines(&naming, &self.tree, &self.admission) {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
        CaseAnswer {
            decision,
            trace: vec![explanation::gate_json(&naming, &self.tree, &self.admission)],
            text,
        }
    }
}

pub(super) fn admission(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let held = check_quota(asked)?;
    let decision = held.to_json();
    let verdict = if held.admission.has_quota() {
        "is admitted"
    } else {
        "is not admitted"
    };
    Ok(held.into_answer(decision, verdict))
}

pub(super) fn gate(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let held = check_quota(asked)?;
    let (admit, may) = (held.admission.has_quota(), held.admission.may_preempt());
    let decision = json!({"prefilter_admit": admit, "may_preempt": may});
    let verdict = match (admit, may) {
        (true, _) => "has quota, and may preempt where there is no room",
        (false, true) => "has no quota, and may preempt to get it",
        (false, false) => "has no quota, and may not preempt",
    };
    Ok(held.into_answer(decision, verdict))
}

pub(super) fn trigger(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let case: TriggerCase = parse_case(asked)?;
    let switches: ElasticDefaults = case.args.elastic_defaults();
    let says = preemption_labels(None, case.pod.can_preempt.as_deref(), case.pod.policy);
    let may = switches.may_trigger_preemption(says);
    let text = explanation::trigger_text(may);
    Ok(CaseAnswer {
        decision: json!({"may_trigger": may}),
        trace: Vec::new(),
        text: format!("the pod {text}\n"),
    })
}
