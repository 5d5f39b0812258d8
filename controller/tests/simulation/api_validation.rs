//! Defaults and validation of the API server.

use crate::fields::{has, is_true, list, text};
use crate::queued_pods::{self, POD};
use lockkeeper_controller::Kind;
use serde_json::{Value, json};

/// Sets the defaults of our CRDs, and removes empty fields of Jobs.
pub fn apply_defaults(kind: Kind, object: &mut Value) {
    if matches!(kind, Kind::Job(_))
        && let Some(pod) = object["spec"]["template"]["spec"].as_object_mut()
    {
        pod.retain(|_, it| *it != json!({}) && *it != json!([]));
    }
    if kind != Kind::Workload {
        return;
    }
    let Some(spec) = object["spec"].as_object_mut() else {
        return;
    };
    spec.entry("active").or_insert(json!(true));
    for pod_set in spec["podSets"].as_array_mut().into_iter().flatten() {
        let pod_set = pod_set.as_object_mut().unwrap();
        pod_set.entry("name").or_insert(json!("main"));
        pod_set.entry("count").or_insert(json!(1));
    }
}

/// Validates a write. The API server does not know the start time of a job of a declared kind.
pub fn validate(
    kind: Kind,
    is_declared: bool,
    before: Option<&Value>,
    after: &Value,
) -> Result<(), String> {
    validate_conditions(after)?;
    match kind {
        Kind::Job(0) => validate_job(is_declared, before, after),
        POD => before.map_or(Ok(()), |it| queued_pods::validate_update(it, after)),
        Kind::Workload => validate_workload(before, after),
        _ => Ok(()),
    }
}

fn validate_conditions(object: &Value) -> Result<(), String> {
    let mut seen = Vec::new();
    for condition in list(object, "/status/conditions") {
        let of = text(condition, "/type");
        if seen.contains(&of) {
            return Err(format!("condition {of} is duplicated"));
        }
        seen.push(of);
        let reason = text(condition, "/reason");
        let is_word = |condition: char| condition.is_ascii_alphanumeric() || condition == '_';
        if reason.is_empty() || !reason.chars().all(is_word) {
            return Err(format!("condition {of}: reason {reason:?}"));
        }
        if !has(condition, "/lastTransitionTime")
            || !has(condition, "/message")
            || !has(condition, "/status")
        {
            return Err(format!("condition {of} is incomplete"));
        }
    }
    Ok(())
}

/// Source: Kubernetes `pkg/registry/batch/job/strategy.go` and `pkg/apis/batch/validation`.
fn validate_job(is_declared: bool, before: Option<&Value>, after: &Value) -> Result<(), String> {
    let Some(before) = before else {
        return Ok(());
    };
    let has_started = !is_declared && has(before, "/status/startTime");
    let was_suspended = is_true(before, "/spec/suspend");
    let mut kept = before["spec"]["template"].clone();
    if was_suspended && !has_started {
        for free in ["nodeSelector", "tolerations"] {
            let now = after["spec"]["template"]["spec"].get(free);
            let pod = kept["spec"].as_object_mut().unwrap();
            match now {
                Some(now) => drop(pod.insert(free.to_owned(), now.clone())),
                None => drop(pod.remove(free)),
            }
        }
    }
    if kept != after["spec"]["template"] {
        return Err("spec.template: field is immutable".to_owned());
    }
    let is_reset = has_started && !has(after, "/status/startTime");
    if is_reset && !is_true(after, "/spec/suspend") {
        return Err("status.startTime: cannot be removed from a running job".to_owned());
    }
    Ok(())
}

/// Validates a workload as its CRD does.
fn validate_workload(before: Option<&Value>, after: &Value) -> Result<(), String> {
    let pod_sets = list(after, "/spec/podSets");
    if pod_sets.is_empty() {
        return Err("spec.podSets: at least one".to_owned());
    }
    let Some(before) = before else {
        return Ok(());
    };
    for field in ["priorityClassName", "preemptionPriorityClassName"] {
        if before["spec"].get(field) != after["spec"].get(field) {
            return Err(format!("spec.{field}: is immutable"));
        }
    }
    Ok(())
}
