//! The life cycle of a workload with pods that are not ready, step by step.
//!
//! `deviations.md` names the cases in which lockkeeper differs on purpose. Each of them must differ.

mod queue_order;
mod reconcile;
mod transition;

use crate::data::{Case, Tally};
use lockkeeper_preemption::Compatibility;
use lockkeeper_preemption::requeue::{
    Backoff, EvictedCondition, EvictionReason, Jitter, LifecycleState, NotReadyReason, PodsReady,
    QueueOrderTimestamp, RequeueSettings, RequeueState,
};
use serde_json::Value;
use std::time::Duration;

const MAX_JITTER: Jitter = Jitter::new(u32::MAX);

pub fn check(case: &mut Case, deviations: &[String], tally: &mut Tally) {
    let value = &case.value;
    let kind = value["kind"].as_str().unwrap().to_owned();
    let problems = match kind.as_str() {
        "reconcile" => reconcile::check(value),
        "transition" => transition::check(value),
        "queue_head" => queue_order::head(value),
        "queue_order" => queue_order::all(value),
        "queue_timestamp" => timestamp(value),
        "backoff_expired" => expired(value),
        "backoff_table" => table(value),
        "set_requeue_state" => set(value),
        kind => vec![format!("unknown kind {kind}")],
    };
    case.file = format!("{}/{kind}", case.file);
    if !deviations.contains(&case.id) {
        tally.count(case, &problems);
    } else if problems.is_empty() {
        tally.count(case, &["no longer deviates".to_owned()]);
    } else {
        tally.skip(case);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "most are made for the call")]
fn differ<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Option<String> {
    (got != expected).then(|| format!("{what}: got {got:?}, expected {expected:?}"))
}

/// The second of an instant of the data; `None` without one.
fn second(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the data's seconds fit")]
    value.as_f64().map(|seconds| seconds.floor() as i64)
}

fn now_ms(value: &Value) -> i64 {
    second(&value["now_s"]).unwrap() * 1_000
}

fn settings(config: &Value) -> RequeueSettings {
    let seconds = |key: &str| config[key].as_f64().map(Duration::from_secs_f64);
    let count = |key: &str| config[key].as_u64().map(|it| u32::try_from(it).unwrap());
    RequeueSettings {
        is_enabled: !config.is_null(),
        timeout: seconds("timeout_s").unwrap_or_default(),
        recovery_timeout: seconds("recovery_timeout_s"),
        timestamp: match config["timestamp"].as_str() {
            Some("Creation") => QueueOrderTimestamp::Creation,
            _ => QueueOrderTimestamp::Eviction,
        },
        backoff_limit_count: count("backoff_limit_count"),
        backoff: Backoff {
            base: seconds("backoff_base_seconds").unwrap_or_default(),
            // No cap in these tests; the API's default is an hour.
            cap: seconds("backoff_max_seconds").filter(|cap| !cap.is_zero()),
            ..Backoff::default()
        },
        priority_sorting_within_cohort: config["priority_sorting_within_cohort"] != false,
        compatibility: Compatibility::Kueue,
        ..RequeueSettings::default()
    }
}

fn requeue_state(value: &Value) -> Option<RequeueState> {
    let count = value["count"].as_u64();
    value.as_object().map(|_| RequeueState {
        count: count.map(|it| u32::try_from(it).unwrap()),
        requeue_at_s: second(&value["requeue_at_s"]),
        first_evicted_at_s: None,
    })
}

/// The lifecycle state of a workload with conditions in the form of the API.
fn lifecycle_state(workload: &Value) -> LifecycleState {
    let mut standing = LifecycleState {
        created_at_s: second(&workload["creation_s"]).unwrap_or_default(),
        is_active: workload["active"] != false,
        requeue_state: requeue_state(&workload["requeue_state"]),
        ..LifecycleState::default()
    };
    for condition in workload["conditions"].as_array().into_iter().flatten() {
        let reason = condition["reason"].as_str().unwrap();
        let at_s = second(&condition["last_transition_s"]).unwrap_or_default();
        match (condition["type"].as_str(), condition["status"].as_str()) {
            (Some("Finished"), Some("True")) => standing.is_finished = true,
            (Some("QuotaReserved"), Some("True")) => standing.has_quota = true,
            (Some("Admitted"), Some("True")) => standing.admitted_at_s = Some(at_s),
            (Some("Evicted"), Some("True")) => standing.evicted = Some(evicted(reason, at_s)),
            (Some("Preempted"), Some("True")) if reason == "InCohortReclaimWhileBorrowing" => {
                standing.reclaimed_while_borrowing_at_s = Some(at_s);
            }
            (Some("Requeued"), Some("False")) => {
                standing.not_requeued_reason = Some(EvictionReason::from_reason(reason));
            }
            (Some("DeactivationTarget"), Some("True")) => {
                let of = lockkeeper_preemption::requeue::DeactivationCause::from_reason;
                standing.deactivation_target = Some(of(reason));
            }
            (Some("PodsReady"), Some("True")) => standing.pods_ready = PodsReady::Yes,
            (Some("PodsReady"), Some("False")) => standing.pods_ready = not_ready(reason, at_s),
            _ => {}
        }
    }
    standing
}

fn evicted(reason: &str, at_s: i64) -> EvictedCondition {
    EvictedCondition {
        reason: EvictionReason::from_reason(reason),
        at_s,
    }
}

fn not_ready(reason: &str, since_s: i64) -> PodsReady {
    PodsReady::No {
        reason: NotReadyReason::from_reason(reason),
        since_s,
    }
}

fn timestamp(value: &Value) -> Vec<String> {
    let got = lifecycle_state(&value["workload"]).order_time_ms(&settings(&value["config"]));
    let expected = value["expected_s"].as_f64().unwrap() * 1_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "the data's seconds fit")]
    let expected = expected.round() as i64;
    Vec::from_iter(differ("milliseconds", got, expected))
}

fn expired(value: &Value) -> Vec<String> {
    let got = lifecycle_state(&value["workload"]).is_backoff_over(now_ms(value));
    Vec::from_iter(differ("over", got, value["expected"].as_bool().unwrap()))
}

fn set(value: &Value) -> Vec<String> {
    let mut got = requeue_state(&value["before"]).unwrap_or_default();
    let event = &value["event"];
    let until_s = second(&event["wait_until_s"]).unwrap();
    let updated = got.defer_until(until_s, event["increment_count"].as_bool().unwrap());
    let expected = value["expected_updated"].as_bool().unwrap();
    let mut problems = Vec::from_iter(differ("updated", updated, expected));
    let expected = requeue_state(&value["after"]);
    problems.extend(differ("state", Some(got), expected));
    problems
}

/// The delays of a table: the shortest to the nanosecond, the longest, and that all of Kueue's random delays are
/// between them.
fn table(value: &Value) -> Vec<String> {
    let backoff = settings(&value["config"]).backoff;
    let mut problems = Vec::new();
    for row in value["rows"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let mut state = RequeueState {
            count: row["count_before"]
                .as_u64()
                .map(|it| it.try_into().unwrap()),
            ..RequeueState::default()
        };
        state.defer_until(0, true);
        let count = state.requeue_count();
        problems.extend(differ(
            "count",
            Some(count.into()),
            row["count_after"].as_u64(),
        ));
        let delay = |jitter| backoff.delay(count, jitter, Compatibility::Kueue);
        let (least, most) = (delay(Jitter::NONE), delay(MAX_JITTER));
        let expected = Duration::from_secs_f64(number("delay_min_s"));
        problems.extend(differ("shortest delay", least, expected));
        let end = Duration::from_secs_f64(number("delay_max_s_exclusive"));
        // The largest possible delay is one step below the end of the range. The delays of the data are rounded to a
        // microsecond.
        let slack = Duration::from_micros(1);
        if most > end || (most == end && !end.is_zero()) || most + slack < end {
            problems.push(format!(
                "longest delay of {count}: got {most:?}, below {end:?}"
            ));
        }
        let draws = [number("observed_min_s"), number("observed_max_s")];
        let draws = draws.map(Duration::from_secs_f64);
        if draws
            .iter()
            .any(|it| *it + slack < least || *it > most + slack)
        {
            problems.push(format!("{draws:?} are not in {least:?}..={most:?}"));
        }
    }
    problems
}
