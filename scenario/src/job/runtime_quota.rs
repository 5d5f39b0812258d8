//! Runtime quota and its revocation.

use super::answer::CaseAnswer;
use super::case::{RevokeCase, RuntimeQuotaCase};
use super::resolve::{CaseError, NameResolver, parse_case};
use lockkeeper_api::labels::PREEMPTIBLE;
use lockkeeper_preemption::job::runtime_quota::{ChildQuota, runtime_quotas};
use lockkeeper_preemption::job::{ElasticDefaults, LabelValue, PreemptionLabels, revoke};
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub(super) fn runtime(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let mut case: RuntimeQuotaCase = parse_case(asked)?;
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
    let mut text = format!("the runtime quota of each, of {} in all\n", case.total);
    let mut told = Map::new();
    for (quota, runtime) in case.quotas.iter().zip(runtimes) {
        let (name, asked) = (&quota.name, quota.limited_request);
        let least = quota.min.max(quota.guarantee);
        told.insert(name.clone(), runtime.into());
        let _ = writeln!(
            text,
            "  {name}: {runtime} (guaranteed {least}, asks for {asked}, weight {})",
            quota.shared_weight
        );
    }
    Ok(CaseAnswer {
        decision: json!({"runtime": told}),
        trace: Vec::new(),
        text,
    })
}

pub(super) fn revoke(asked: &Value) -> Result<CaseAnswer, CaseError> {
    let case: RevokeCase = parse_case(asked)?;
    let mut door = NameResolver::default();
    let runtime = door.limit(&case.quota.runtime, "quota.runtime")?;
    let used = door.limit(&case.quota.used, "quota.used")?;
    let mut pods = Vec::with_capacity(case.pods.len());
    for (at, pod) in case.pods.iter().enumerate() {
        let says = PreemptionLabels {
            preemptible: LabelValue::from_value(pod.label(PREEMPTIBLE)),
            ..PreemptionLabels::default()
        };
        pods.push(revoke::AssignedPod {
            priority: pod.priority,
            started_at_s: 0,
            preemptibility: ElasticDefaults::default().preemptibility(says),
            request: door.resources(&pod.requests, &format!("pods[{at}].requests"))?,
        });
    }
    let revoked = revoke::pods_to_revoke(&used, &runtime, &pods);
    let names = revoked.into_iter().filter_map(|at| case.pods.get(at));
    let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
    let (used, runtime) = (door.to_text(&used), door.to_text(&runtime));
    let listed = if names.is_empty() {
        "nobody goes".to_owned()
    } else {
        format!("{} go, in this order", names.join(", "))
    };
    Ok(CaseAnswer {
        decision: json!({"revoke_in_order": names}),
        trace: Vec::new(),
        text: format!("uses {used} of {runtime}: {listed}\n"),
    })
}
