//! Decides cases of Koordinator's checks of single pods.

use super::answer::CaseAnswer;
use super::case::{
    CanPreemptCase, LabelledPod, PrefilterCase, PrefilterParentCase, QuotaStatus, SelectVictimsCase,
};
use super::resolve::{CaseError, NameResolver, parse_case};
use lockkeeper_api::foreign::koordinator::{DEFAULT_QUOTA, QUOTA_NAME};
use lockkeeper_api::labels::PREEMPTIBLE;
use lockkeeper_preemption::job::per_pod::{
    self, NodeAndQuota, NodeVictims, PodQuota, QuotaExceeded, QuotaPod, check_pod_quota,
};
use lockkeeper_preemption::job::{
    ElasticDefaults, LabelValue, Preemptibility, PreemptionLabels, ResourceList,
};
use lockkeeper_preemption::{Amount, ResourceId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn preemptibility(pod: &LabelledPod) -> Preemptibility {
    ElasticDefaults::default().preemptibility(PreemptionLabels {
        preemptible: LabelValue::from_value(pod.label(PREEMPTIBLE)),
        ..PreemptionLabels::default()
    })
}

fn pod_quota(
    resolver: &mut NameResolver,
    quota: &QuotaStatus,
    has_runtime: bool,
) -> Result<PodQuota, CaseError> {
    let runtime = resolver.limit(&quota.runtime, "quota.runtime")?;
    let max = quota.max.as_ref();
    let max = max.map(|it| resolver.limit(it, "quota.max")).transpose()?;
    Ok(PodQuota {
        limit: if has_runtime {
            runtime
        } else {
            max.unwrap_or_default()
        },
        used: resolver.resources(&quota.used, "quota.used")?,
        min: resolver.limit(&quota.min, "quota.min")?,
        non_preemptible_used: resolver
            .limit(&quota.non_preemptible_used, "quota.non_preemptible_used")?,
    })
}

pub(super) fn prefilter(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: PrefilterCase = parse_case(fields)?;
    let mut resolver = NameResolver::default();
    let quota = pod_quota(&mut resolver, &case.quota, case.args.enable_runtime_quota)?;
    let names = resolver.limit(
        case.quota.max.as_ref().unwrap_or(&case.quota.runtime),
        "quota.max",
    )?;
    let request = resolver.resources(&case.pod.requests, "pod.requests")?;
    let request = request.masked(&names);
    let rejected = check_pod_quota(
        &request,
        preemptibility(&case.pod),
        std::slice::from_ref(&quota),
    )
    .err();
    let message =
        rejected.map(|it| quota_message(&resolver, &request, &[(&case.quota.name, &quota)], &it));
    Ok(prefilter_answer(message))
}

pub(super) fn prefilter_parent(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: PrefilterParentCase = parse_case(fields)?;
    let mut resolver = NameResolver::default();
    let mut path = Vec::with_capacity(case.chain.len());
    for quota in &case.chain {
        path.push(pod_quota(&mut resolver, quota, true)?);
    }
    if !case.args.enable_check_parent_quota {
        path.truncate(1);
    }
    let mut request = resolver.resources(&case.pod.requests, "pod.requests")?;
    if let Some(max) = case.chain.first().and_then(|it| it.max.as_ref()) {
        request = request.masked(&resolver.limit(max, "chain[0].max")?);
    }
    let rejected = check_pod_quota(&request, preemptibility(&case.pod), &path).err();
    let seen = case.chain.iter().map(|it| &it.name).zip(&path);
    let seen: Vec<_> = seen.collect();
    let message = rejected.map(|it| quota_message(&resolver, &request, &seen, &it));
    Ok(prefilter_answer(message))
}

fn prefilter_answer(message: Option<String>) -> CaseAnswer {
    let code = match message {
        Some(_) => "Unschedulable",
        None => "Success",
    };
    let message = message.unwrap_or_default();
    let text = match message.as_str() {
        "" => format!("{code}: the pod has quota\n"),
        message => format!("{code}: {message}\n"),
    };
    CaseAnswer {
        decision: json!({"code": code, "message": message}),
        trace: Vec::new(),
        text,
    }
}

/// The message of Koordinator (`elasticquota/plugin.go`, `plugin_helper.go`).
fn quota_message(
    resolver: &NameResolver,
    request: &ResourceList,
    path: &[(&String, &PodQuota)],
    exceeded: &QuotaExceeded,
) -> String {
    let list = |it: &ResourceList| resource_list_text(resolver, it);
    let request_text = list(request);
    let over = |over: &[ResourceId]| {
        let mut names: Vec<&str> = over.iter().map(|it| resolver.name(*it)).collect();
        names.sort_unstable();
        names.join(" ")
    };
    let unknown = (&String::new(), &PodQuota::default());
    match exceeded {
        QuotaExceeded::Limit { level, over: of } => {
            let (name, quota) = path.get(*level).unwrap_or(&unknown);
            let place = if *level == 0 {
                format!("quotaName: {name}")
            } else {
                let up = path.iter().take(level.saturating_add(1)).rev();
                let names: Vec<&str> = up.map(|(name, _)| name.as_str()).collect();
                format!("quotaNameTopo: [{}]", names.join(" "))
            };
            format!(
                "Insufficient quotas, {place}, runtime: {}, used: {}, pod's request: {request_text}, \
                 exceedDimensions: [{}]",
                list(&quota.limit),
                list(&quota.used),
                over(of)
            )
        }
        QuotaExceeded::Min { over: of } => {
            let (name, quota) = path.first().unwrap_or(&unknown);
            format!(
                "Insufficient non-preemptible quotas, quotaName: {name}, min: {}, \
                 nonPreemptibleUsed: {}, pod's request: {request_text}, exceedDimensions: [{}]",
                list(&quota.min),
                list(&quota.non_preemptible_used),
                over(of)
            )
        }
    }
}

/// `cpu:1,memory:2`, by name; cpu in cores, or in milli-CPU if it is not a whole number.
fn resource_list_text(resolver: &NameResolver, amounts: &ResourceList) -> String {
    if amounts.is_empty() {
        return "<empty>".to_owned();
    }
    let quantity = |resource: &str, amount: Amount| {
        let number = amount.get();
        match (resource, number.checked_rem(1000)) {
            ("cpu", Some(0)) => number.checked_div(1000).unwrap_or_default().to_string(),
            ("cpu", _) => format!("{number}m"),
            _ => number.to_string(),
        }
    };
    let mut all: Vec<String> = amounts
        .iter()
        .map(|(it, amount)| {
            let name = resolver.name(it);
            format!("{name}:{}", quantity(name, amount))
        })
        .collect();
    all.sort();
    all.join(",")
}

/// Numbers quotas by name.
#[derive(Default)]
struct QuotaNumbers(BTreeMap<String, u32>);

impl QuotaNumbers {
    fn number_for(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

fn quota_pod(
    resolver: &mut NameResolver,
    pod: &LabelledPod,
    quota: u32,
    at: &str,
) -> Result<QuotaPod, CaseError> {
    Ok(QuotaPod {
        quota,
        preemptibility: preemptibility(pod),
        priority: pod.priority,
        started_at_s: 0,
        request: resolver.resources(&pod.requests, at)?,
        violates_budget: false,
    })
}

pub(super) fn can_preempt(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: CanPreemptCase = parse_case(fields)?;
    let (mut resolver, mut numbers) = (NameResolver::default(), QuotaNumbers::default());
    let [own, other] = [&case.preemptor_quota, &case.victim_quota].map(|it| numbers.number_for(it));
    let exempt = case.args.disable_default_quota_preemption;
    let exempt = exempt.then(|| numbers.number_for(DEFAULT_QUOTA));
    let preemptor = quota_pod(&mut resolver, &case.preemptor, own, "preemptor.requests")?;
    let victim = quota_pod(&mut resolver, &case.victim, other, "victim.requests")?;
    let may = per_pod::may_preempt_pod(&preemptor, &victim, exempt);
    let verb = if may { "may" } else { "may not" };
    let (preemptor_name, victim_name) = (&case.preemptor.name, &case.victim.name);
    Ok(CaseAnswer {
        decision: may.into(),
        trace: Vec::new(),
        text: format!("{preemptor_name} {verb} preempt {victim_name}\n"),
    })
}

pub(super) fn victims_on_node(fields: &Value) -> Result<CaseAnswer, CaseError> {
    let case: SelectVictimsCase = parse_case(fields)?;
    let (mut resolver, mut numbers) = (NameResolver::default(), QuotaNumbers::default());
    let mut number =
        |pod: &LabelledPod| numbers.number_for(pod.label(QUOTA_NAME).unwrap_or(DEFAULT_QUOTA));
    let mut pods = Vec::with_capacity(case.pods_on_node.len());
    for (at, pod) in case.pods_on_node.iter().enumerate() {
        let at = format!("pods_on_node[{at}].requests");
        pods.push(quota_pod(&mut resolver, pod, number(pod), &at)?);
    }
    let own = number(&case.preemptor);
    let preemptor = quota_pod(&mut resolver, &case.preemptor, own, "preemptor.requests")?;
    let on = NodeAndQuota {
        allocatable: &resolver.limit(&case.allocatable, "allocatable")?,
        pods: &pods,
        used: &resolver.limit(&case.quota.used, "quota.used")?,
        limit: &resolver.limit(&case.quota.used_limit, "quota.used_limit")?,
    };
    let found = per_pod::victims_on_node(on, &preemptor, None);
    let (code, victims, violations) = match &found {
        NodeVictims::Fits {
            victims,
            violations,
        } => ("Success", victims.as_slice(), *violations),
        NodeVictims::NoCandidates => ("UnschedulableAndUnresolvable", &[][..], 0),
        NodeVictims::DoesNotFit => ("Unschedulable", &[][..], 0),
        NodeVictims::RemovedTwice => ("Error", &[][..], 0),
    };
    let names = victims.iter().filter_map(|at| case.pods_on_node.get(*at));
    let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
    let text = if names.is_empty() {
        format!("{code}: no victims\n")
    } else {
        format!("{code}: victims {}\n", names.join(", "))
    };
    let decision = json!({
        "code": code, "victim_count": names.len(), "victims": names, "pdb_violations": violations,
    });
    Ok(CaseAnswer {
        decision,
        trace: Vec::new(),
        text,
    })
}
