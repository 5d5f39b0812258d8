//! One step, derived from Kueue's code: the expected changes, and that nothing else changes.

use super::{MAX_JITTER, differ, evicted, not_ready, now_ms, requeue_state, second, settings};
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictionReason, Jitter, LifecycleState, LifecycleStep, NotReadyReason,
    PodsReady, next_step,
};
use serde_json::Value;

pub fn check(value: &Value) -> Vec<String> {
    // The data gives ranges where jitter plays a part.
    let mut problems = with_jitter(value, Jitter::NONE);
    problems.extend(with_jitter(value, MAX_JITTER));
    problems
}

fn lifecycle_state(before: &Value) -> LifecycleState {
    let admitted_at_s = second(&before["admitted_at_s"]);
    let reason = |condition: &Value| condition["reason"].as_str().unwrap_or_default().to_owned();
    let at_s = |condition: &Value| second(&condition["at_s"]).unwrap_or_default();
    let is_false = |condition: &Value| condition["status"] == false;
    let conditions = ["evicted", "requeued", "deactivation_target", "pods_ready"];
    let [was_evicted, requeued, target, pods_ready] = conditions.map(|it| &before[it]);
    LifecycleState {
        is_active: before["active"] != false,
        has_quota: before["has_admission"]
            .as_bool()
            .unwrap_or(admitted_at_s.is_some()),
        admitted_at_s,
        pods_ready: match pods_ready {
            Value::Null => PodsReady::Unknown,
            it if is_false(it) => not_ready(&reason(it), second(&it["since_s"]).unwrap()),
            _ => PodsReady::Yes,
        },
        evicted: (!was_evicted.is_null() && !is_false(was_evicted))
            .then(|| evicted(&reason(was_evicted), at_s(was_evicted))),
        not_requeued_reason: is_false(requeued)
            .then(|| EvictionReason::from_reason(&reason(requeued))),
        deactivation_target: (!target.is_null())
            .then(|| DeactivationCause::from_reason(&reason(target))),
        requeue_state: requeue_state(&before["requeue_state"]),
        ..LifecycleState::default()
    }
}

fn with_jitter(value: &Value, jitter: Jitter) -> Vec<String> {
    let before = lifecycle_state(&value["before"]);
    let now_ms = now_ms(value);
    let mut after = before.clone();
    let mut step = LifecycleStep::Idle;
    match value["event"].as_str().unwrap_or_default() {
        event if event.contains("reserv") => after.on_quota_reserved(),
        event if event.contains("stop") => after.on_job_stopped(),
        _ => {
            step = next_step(&settings(&value["config"]), &before, now_ms, jitter);
            after.apply(&step, now_ms);
        }
    }
    let expected = &value["after"];
    let mut problems = Vec::new();
    let waits_s = match step {
        LifecycleStep::Wait(wait) => wait.as_secs_f64(),
        _ => 0.0,
    };
    if let Some(expected) = expected["requeue_after_s"].as_f64() {
        problems.extend(differ("waits", waits_s, expected));
    }
    problems.extend(conditions(value, &before, &after, &step));
    problems.extend(state(expected, &before, &after));
    let is_active = expected["active"].as_bool().unwrap_or(before.is_active);
    problems.extend(differ("active", after.is_active, is_active));
    if let Some(queued) = expected["queued"].as_bool() {
        let got = after.is_active && after.is_pending() && after.is_backoff_over(now_ms);
        problems.extend(differ("queued", got, queued));
    }
    problems
}

fn conditions(
    value: &Value,
    before: &LifecycleState,
    after: &LifecycleState,
    step: &LifecycleStep,
) -> Vec<String> {
    let mut problems = Vec::new();
    let expected = |key: &str| value["after"].as_object().unwrap().get(key).cloned();
    let wanted = match expected("evicted") {
        None => before.evicted,
        Some(it) if it.is_null() || it["status"] == false => None,
        Some(it) => {
            problems.extend(eviction(value, &it, step));
            let at_s = second(&it["at_s"]).or(before.evicted.map(|it| it.at_s));
            Some(evicted(it["reason"].as_str().unwrap(), at_s.unwrap()))
        }
    };
    problems.extend(differ("evicted", after.evicted, wanted));
    let wanted = match expected("deactivation_target") {
        None => before.deactivation_target,
        Some(Value::Null) => None,
        Some(it) => {
            if let (LifecycleStep::SetDeactivationTarget(target), Some(message)) =
                (step, it["message"].as_str())
            {
                problems.extend(differ("message", target.message("").as_str(), message));
            }
            Some(DeactivationCause::from_reason(
                it["reason"].as_str().unwrap(),
            ))
        }
    };
    problems.extend(differ(
        "deactivation target",
        after.deactivation_target,
        wanted,
    ));
    let wanted = match expected("requeued") {
        None => before.not_requeued_reason,
        Some(it) if it["status"] == false => {
            Some(EvictionReason::from_reason(it["reason"].as_str().unwrap()))
        }
        Some(it) => {
            let reasons = match step {
                LifecycleStep::Requeue(requeue) => {
                    (requeue.reason.as_str(), requeue.reason.message())
                }
                _ => ("", ""),
            };
            let reason = it["reason"].as_str().unwrap_or(reasons.0);
            let message = it["message"].as_str().unwrap_or(reasons.1);
            problems.extend(differ("requeued", reasons, (reason, message)));
            None
        }
    };
    problems.extend(differ("held for", after.not_requeued_reason, wanted));
    problems
}

/// The fields written by an eviction, apart from reason and time.
fn eviction(value: &Value, expected: &Value, step: &LifecycleStep) -> Vec<String> {
    let mut problems = Vec::new();
    let (message, cause) = match step {
        LifecycleStep::Evict(eviction) => {
            let about = value["before"]["deactivation_target"]["message"].as_str();
            let message = eviction.reason.message(about.unwrap_or_default());
            (
                message,
                eviction.underlying_cause.map(NotReadyReason::as_str),
            )
        }
        _ => (String::new(), None),
    };
    if let Some(expected) = expected["message"].as_str() {
        problems.extend(differ("message", message.as_str(), expected));
    }
    if let Some(expected) = expected["underlying_cause"].as_str() {
        problems.extend(differ("cause", cause, Some(expected)));
    }
    problems
}

fn state(expected: &Value, before: &LifecycleState, after: &LifecycleState) -> Vec<String> {
    let Some(wanted) = expected.as_object().unwrap().get("requeue_state") else {
        return Vec::from_iter(differ("state", after.requeue_state, before.requeue_state));
    };
    let Some(range) = wanted["requeue_at_s"].as_array() else {
        return Vec::from_iter(differ("state", after.requeue_state, requeue_state(wanted)));
    };
    let got = after.requeue_state.unwrap_or_default();
    let mut problems = Vec::from_iter(differ(
        "count",
        got.count.map(u64::from),
        wanted["count"].as_u64(),
    ));
    let ends: Vec<f64> = range.iter().map(|it| it.as_f64().unwrap()).collect();
    #[expect(clippy::cast_precision_loss, reason = "the data's seconds fit")]
    let at_s = got.requeue_at_s.map(|it| it as f64);
    if !at_s.is_some_and(|at_s| ends[0] <= at_s && at_s < ends[1]) {
        problems.push(format!("requeue at: got {at_s:?}, expected {range:?}"));
    }
    problems
}
