//! Decides cases of the quota check of a job, without nodes.

use super::answer::CaseAnswer;
use super::case::{JobAdmissionCase, TriggerCase, preemption_labels};
use super::explanation;
use super::resolve::{CaseError, NameResolver, QuotaIds, merge_fields, parse_case, quota_tree};
use lockkeeper_preemption::job::{self, CheckedUsage, ElasticDefaults, PodStage, ResourceList};
use serde_json::{Value, json};

/// The result of the quota check of a job.
struct QuotaCheck {
    resolver: NameResolver,
    quotas: QuotaIds,
    tree: job::QuotaTree,
    admission: job::QuotaCheck,
    job: String,
}

fn check_quota(fields: &Value) -> Result<QuotaCheck, CaseError> {
    let case: JobAdmissionCase = parse_case(fields)?;
    let defaults = case.args.elastic_defaults();
    let mut resolver = NameResolver::default();
    let (mut tree, mut quotas) = quota_tree(&mut resolver, &case.quota, &case.quotas)?;
    for (at, pod) in case.pods.iter().enumerate() {
        let request = resolver.resources(&pod.req, &format!("pods[{at}].req"))?;
        let class =
            defaults.preemptibility(preemption_labels(pod.preemptible.as_deref(), None, None));
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
        total.add(&resolver.resources(&pod.req, &format!("job.pods[{at}].req"))?);
    }
    let class = defaults.preemptibility(case.job.preemption_labels());
    let quota = quotas.id(&case.quota.name, || {
        tree.add(None, job::QuotaLimits::default())
    });
    let admission = job::check_quota(&tree, quota, class, total);
    Ok(QuotaCheck {
        resolver,
        quotas,
        tree,
        admission,
        job: case.job.name,
    })
}

impl QuotaCheck {
    /// The sums at the job's own quota.
    fn to_json(&self) -> Value {
        let admission = &self.admission;
        let value = json!({
            "admit": admission.has_quota(),
            "class": admission.preemptibility.as_str(),
            "job_total": self.resolver.to_json(&admission.total),
        });
        let Some(level) = admission.levels.first() else {
            return value;
        };
        let sums = match &level.usage {
            CheckedUsage::NonPreemptible {
                non_preemptible,
                all,
                ..
            } => json!({
                "min_ok": level.is_within_min(),
                "max_ok": level.is_within_max(),
                "non_preemptible_used_plus_job": self.resolver.to_json(non_preemptible),
                "used_plus_job": self.resolver.to_json(all),
            }),
            CheckedUsage::Preemptible {
                non_preemptible_reserve: kept,
                all,
            } => json!({
                "max_ok": level.is_within_max(),
                "min_of_min_and_np_request": self.resolver.to_json(kept),
                "checked_sum": self.resolver.to_json(all),
            }),
        };
        merge_fields(value, sums)
    }

    fn into_answer(self, decision: Value, verdict: &str) -> CaseAnswer {
        let names = explanation::NameLookup {
            cluster: self.resolver.job_cluster.cluster(),
            quotas: &self.quotas,
        };
        let (class, job) = (self.admission.preemptibility.as_str(), &self.job);
        let mut text = format!("job {job} ({class}) {verdict}\n");
        for line in explanation::gate_lines(&names, &self.tree, &self.admission) {
            text.push_str("  ");
            text.push_str(&line);
            text.push('\n');
        }
        CaseAnswer {
            decision,
            trace: vec![explanation::gate_json(&names, &self.tree, &self.admission)],
            text,
        }
    }
}

pub(super) fn admission(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let check = check_quota(fields)?;
    let decision = check.to_json();
    let verdict = if check.admission.has_quota() {
        "is admitted"
    } else {
        "is not admitted"
    };
    Ok(check.into_answer(decision, verdict))
}

pub(super) fn gate(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let check = check_quota(fields)?;
    let (admit, may) = (check.admission.has_quota(), check.admission.may_preempt());
    let decision = json!({"prefilter_admit": admit, "may_preempt": may});
    let verdict = match (admit, may) {
        (true, _) => "has quota, and may preempt for node resources",
        (false, true) => "has no quota, and may preempt to get it",
        (false, false) => "has no quota, and may not preempt",
    };
    Ok(check.into_answer(decision, verdict))
}

pub(super) fn trigger(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: TriggerCase = parse_case(fields)?;
    let defaults: ElasticDefaults = case.args.elastic_defaults();
    let labels = preemption_labels(None, case.pod.can_preempt.as_deref(), case.pod.policy);
    let may = defaults.may_trigger_preemption(labels);
    let text = explanation::trigger_text(may);
    Ok(CaseAnswer {
        decision: json!({"may_trigger": may}),
        trace: Vec::new(),
        text: format!("the pod {text}\n"),
    })
}
