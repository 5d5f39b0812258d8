//! One step, as recorded by Kueue's own tests: the object before and after.
//!
//! Three things are not in the recorded input. A stopped queue is detected by the eviction that it causes. The messages
//! of admission checks are in brackets in the texts, and are left out. Kueue sets the times of `Requeued` and
//! `DeactivationTarget` from the wall clock instead of the test's clock, so they may be in the next second.

use super::{differ, lifecycle_state, now_ms, requeue_state, second, settings};
use lockkeeper_preemption::requeue::{
    AdmissionCheckStates, DeactivationCause, DeactivationTarget, EvictionReason, Jitter,
    LifecycleState, LifecycleStep, StopPolicy, next_step,
};
use serde_json::{Value, json};

/// The workload in those tests.
const NAME: &str = "ns/wl";

pub fn check(value: &Value) -> Vec<String> {
    let (before, expected) = (&value["before"], &value["after"]);
    let now_ms = now_ms(value);
    let mut standing = lifecycle_state(before);
    standing.admission_checks = checks(before);
    set_stop_policy(&mut standing, expected);
    let step = next_step(&settings(&value["config"]), &standing, now_ms, Jitter::NONE);
    let mut after = standing.clone();
    after.apply(&step, now_ms);

    let mut problems = Vec::new();
    problems.extend(differ(
        "active",
        after.is_active,
        expected["active"] != false,
    ));
    // The admission is removed when the job has stopped, which is not part of this step.
    let admission = ["before", "after"].map(|it| &value[it]["has_admission"]);
    problems.extend(differ("admission", admission[0], admission[1]));
    let state = requeue_state(&expected["requeue_state"]);
    problems.extend(differ("state", after.requeue_state, state));
    let got = checks_after(before, &step, now_ms);
    problems.extend(differ("checks", &got, &expected["admission_checks"]));
    problems.extend(conditions(before, expected, &step, now_ms));
    let waits_s = match step {
        LifecycleStep::Wait(wait) => wait.as_secs_f64(),
        _ => 0.0,
    };
    let result = &value["result"];
    let wanted = result["requeue_after_s"].as_f64().unwrap();
    problems.extend(differ("waits", waits_s, wanted));
    let wanted = without_details(&result["events"]);
    problems.extend(differ("events", events(before, &step), wanted));
    problems
}

fn checks(before: &Value) -> AdmissionCheckStates {
    let all = before["admission_checks"].as_array().into_iter().flatten();
    let mut checks = AdmissionCheckStates::default();
    for check in all {
        checks.is_rejected |= check["state"] == "Rejected";
        if check["state"] == "Retry" {
            checks.is_retry = true;
            let since_s = second(&check["last_transition_s"]);
            let after_s = check["requeue_after_seconds"].as_i64();
            let at_s = since_s
                .zip(after_s)
                .map(|(since_s, after_s)| since_s + after_s);
            checks.retry_at_s = checks.retry_at_s.max(at_s);
        }
    }
    checks
}

/// Stops the queue if the expected result is an eviction for it.
fn set_stop_policy(standing: &mut LifecycleState, expected: &Value) {
    let conditions = expected["conditions"].as_array().unwrap();
    for condition in conditions {
        if condition["type"] == "Evicted" && condition["status"] == "True" {
            match EvictionReason::from_reason(condition["reason"].as_str().unwrap()) {
                EvictionReason::ClusterQueueStopped => {
                    standing.cluster_queue = StopPolicy::HoldAndDrain;
                }
                EvictionReason::LocalQueueStopped => {
                    standing.local_queue = StopPolicy::HoldAndDrain;
                }
                _ => {}
            }
        }
    }
}

/// An eviction resets all checks to Pending.
fn checks_after(before: &Value, step: &LifecycleStep, now_ms: i64) -> Value {
    let mut checks = before["admission_checks"].clone();
    if matches!(step, LifecycleStep::Evict(_)) {
        for check in checks.as_array_mut().unwrap() {
            if check["state"] != "Pending" {
                check["state"] = "Pending".into();
                check["last_transition_s"] = (now_ms / 1_000).into();
            }
        }
    }
    checks
}

/// The checks in a state, as Kueue lists them.
fn list(before: &Value, state: &str) -> String {
    let all = before["admission_checks"].as_array().unwrap().iter();
    let names = all.filter(|it| it["state"] == state);
    let names: Vec<String> = names.map(|it| it["name"].to_string()).collect();
    let noun = match names.len() {
        1 => "AdmissionCheck",
        _ => "AdmissionChecks",
    };
    format!("{noun} in {state} state: {}", names.join("; "))
}

fn message_argument(before: &Value, reason: EvictionReason) -> String {
    match reason {
        EvictionReason::AdmissionCheck => list(before, "Retry"),
        EvictionReason::Deactivated(_) => {
            let all = before["conditions"].as_array().unwrap();
            let target = all.iter().find(|it| it["type"] == "DeactivationTarget");
            let message = target.and_then(|it| it["message"].as_str());
            message.unwrap_or_default().to_owned()
        }
        _ => NAME.to_owned(),
    }
}

fn target_message_argument(before: &Value, target: DeactivationTarget) -> String {
    match target.cause() {
        DeactivationCause::AdmissionCheck => list(before, "Rejected"),
        _ => String::new(),
    }
}

/// The differences between the conditions after the step and the expected ones, by type.
fn conditions(before: &Value, expected: &Value, step: &LifecycleStep, now_ms: i64) -> Vec<String> {
    let (changed, removed) = changed_conditions(before, step);
    let mut got: Vec<Value> = before["conditions"].as_array().unwrap().clone();
    for condition in &mut got {
        if let Some(at_s) = second(&condition["last_transition_s"]) {
            condition["last_transition_s"] = at_s.into();
        }
    }
    got.retain(|it| Some(it["type"].as_str().unwrap()) != removed);
    let expected = without_details(&expected["conditions"]);
    let expected = expected.as_array().unwrap();
    if let Some((kind, status, reason, message)) = changed {
        let at_s = now_ms / 1_000;
        let recorded = expected.iter().find(|it| it["type"] == kind);
        let recorded = recorded.and_then(|it| second(&it["last_transition_s"]));
        let by_the_wall = kind != "Evicted" && recorded == Some(at_s + 1);
        got.retain(|it| it["type"] != kind);
        got.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "last_transition_s": at_s + i64::from(by_the_wall),
        }));
    }
    got.sort_by_key(|it| it["type"].to_string());
    Vec::from_iter(differ("conditions", got.as_slice(), expected.as_slice()))
}

/// Type, status, reason and message of a condition.
type Condition = (&'static str, &'static str, &'static str, String);

/// The condition that a step sets, and the type of the one it removes.
fn changed_conditions(
    before: &Value,
    step: &LifecycleStep,
) -> (Option<Condition>, Option<&'static str>) {
    let target = "DeactivationTarget";
    match step {
        LifecycleStep::Idle
        | LifecycleStep::Wait(_)
        | LifecycleStep::SetRequeueState(_)
        | LifecycleStep::Deactivate => (None, None),
        LifecycleStep::ClearRequeueState => (None, Some(target)),
        LifecycleStep::SetDeactivationTarget(it) => {
            let message = it.message(&target_message_argument(before, *it));
            (Some((target, "True", it.cause().as_str(), message)), None)
        }
        LifecycleStep::Evict(eviction) => {
            let reason = eviction.reason;
            let message = reason.message(&message_argument(before, reason));
            let is_final = matches!(reason, EvictionReason::Deactivated(_));
            let condition = ("Evicted", "True", reason.as_str(), message);
            (Some(condition), is_final.then_some(target))
        }
        LifecycleStep::Requeue(it) => {
            let message = it.reason.message().to_owned();
            (
                Some(("Requeued", "True", it.reason.as_str(), message)),
                None,
            )
        }
    }
}

fn events(before: &Value, step: &LifecycleStep) -> Value {
    let event = match step {
        LifecycleStep::Evict(eviction) if before["has_admission"] == true => {
            let reason = eviction.reason;
            let message = reason.message(&message_argument(before, reason));
            Some(("Normal", reason.event(), message))
        }
        LifecycleStep::SetDeactivationTarget(target) => target
            .event(&target_message_argument(before, *target))
            .map(|(reason, message)| ("Warning", reason.to_owned(), message)),
        _ => None,
    };
    let events = event.into_iter();
    events
        .map(|(kind, reason, message)| json!({"type": kind, "reason": reason, "message": message}))
        .collect()
}

/// Messages without the text in brackets after the name of a check.
fn without_details(list: &Value) -> Value {
    let mut list = list.clone();
    for item in list.as_array_mut().unwrap() {
        let mut text = item["message"].as_str().unwrap().to_owned();
        while let Some(start) = text.find("\" (")
            && let Some(length) = text[start..].find(')')
        {
            text.replace_range(start + 1..=start + length, "");
        }
        item["message"] = text.into();
    }
    list
}
