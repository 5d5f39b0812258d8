//! Decides cases of runtime quota: its calculation, and the pods to revoke when usage exceeds it.

use super::answer::CaseAnswer;
use super::case::{RevokeCase, RuntimeQuotaCase};
use super::resolve::{CaseError, NameResolver, parse_case};
use lockkeeper_api::labels::PREEMPTIBLE;
use lockkeeper_preemption::job::runtime_quota::{ChildQuota, runtime_quotas};
use lockkeeper_preemption::job::{ElasticDefaults, LabelValue, PreemptionLabels, revoke};
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub(super) fn runtime(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let mut case: RuntimeQuotaCase = parse_case(fields)?;
    case.quotas.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in case.quotas.windows(2) {
        if let [a, b] = pair
            && a.name == b.name
        {
            return Err(CaseError::Duplicate {
                at: "quotas".to_owned(),
                name: a.name.clone(),
            });
        }
    }
    let children = case.quotas.iter().map(|it| ChildQuota {
        min: it.min,
        guarantee: it.guarantee,
        limited_request: it.limited_request,
        shared_weight: it.shared_weight,
        may_lend: it.allow_lent_resource,
    });
    let runtimes = runtime_quotas(case.total, &children.collect::<Vec<_>>());
    let mut text = format!("runtime quotas of {} in total\n", case.total);
    let mut runtimes_by_name = Map::new();
    for (quota, runtime) in case.quotas.iter().zip(runtimes) {
        let (name, request) = (&quota.name, quota.limited_request);
        let least = quota.min.max(quota.guarantee);
        runtimes_by_name.insert(name.clone(), runtime.into());
        let _ = writeln!(
            text,
            "  {name}: {runtime} (guaranteed {least}, requests {request}, weight {})",
            quota.shared_weight
        );
    }
    Ok(CaseAnswer {
        decision: json!({"runtime": runtimes_by_name}),
        trace: Vec::new(),
        text,
    })
}

pub(super) fn revoke(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: RevokeCase = parse_case(fields)?;
    let mut resolver = NameResolver::default();
    let runtime = resolver.limit(&case.quota.runtime, "quota.runtime")?;
    let used = resolver.limit(&case.quota.used, "quota.used")?;
    let mut pods = Vec::with_capacity(case.pods.len());
    for (at, pod) in case.pods.iter().enumerate() {
        let labels = PreemptionLabels {
            preemptible: LabelValue::from_value(pod.label(PREEMPTIBLE)),
            ..PreemptionLabels::default()
        };
        pods.push(revoke::AssignedPod {
            priority: pod.priority,
            started_at_s: 0,
            preemptibility: ElasticDefaults::default().preemptibility(labels),
            request: resolver.resources(&pod.requests, &format!("pods[{at}].requests"))?,
        });
    }
    let revoked = revoke::pods_to_revoke(&used, &runtime, &pods);
    let names = revoked.into_iter().filter_map(|at| case.pods.get(at));
    let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
    let (used, runtime) = (resolver.to_text(&used), resolver.to_text(&runtime));
    let listed = if names.is_empty() {
        "no pods to revoke".to_owned()
    } else {
        format!("revoke in order: {}", names.join(", "))
    };
    Ok(CaseAnswer {
        decision: json!({"revoke_in_order": names}),
        trace: Vec::new(),
        text: format!("usage {used}, runtime quota {runtime}; {listed}\n"),
    })
}
