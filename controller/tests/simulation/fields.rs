//! Reads fields of objects.

use lockkeeper_controller::ObjectKey;
use serde_json::Value;

pub fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object
        .pointer(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub fn number(object: &Value, at: &str) -> i64 {
    object
        .pointer(at)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

pub fn is_true(object: &Value, at: &str) -> bool {
    object.pointer(at).and_then(Value::as_bool) == Some(true)
}

pub fn has(object: &Value, at: &str) -> bool {
    object.pointer(at).is_some_and(|it| !it.is_null())
}

pub fn object_key(object: &Value) -> ObjectKey {
    ObjectKey::new(
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub fn list<'a>(object: &'a Value, at: &str) -> &'a [Value] {
    let list = object.pointer(at).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

pub fn condition<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|it| it["type"] == of)
}

/// Whether a condition is `True`.
pub fn condition_is_true(object: &Value, of: &str) -> bool {
    condition(object, of).is_some_and(|it| it["status"] == "True")
}

pub fn condition_is_false(object: &Value, of: &str) -> bool {
    condition(object, of).is_some_and(|it| it["status"] == "False")
}

pub fn is_deleted(object: &Value) -> bool {
    has(object, "/metadata/deletionTimestamp")
}

/// Whether a workload at the API server uses quota.
pub fn holds_quota(workload: &Value) -> bool {
    has(workload, "/status/admission")
        && condition_is_true(workload, "QuotaReserved")
        && !condition_is_true(workload, "Finished")
}

/// Whether the job of a workload may run.
pub fn may_run(workload: &Value) -> bool {
    holds_quota(workload)
        && condition_is_true(workload, "Admitted")
        && !condition_is_true(workload, "Evicted")
}

/// Name and uid of the Job or pod in the owner reference.
pub fn job_owner(object: &Value) -> Option<(&str, &str)> {
    let owner = list(object, "/metadata/ownerReferences").first()?;
    if !["Job", "Pod", "SimRun"].contains(&text(owner, "/kind")) {
        return None;
    }
    Some((text(owner, "/name"), text(owner, "/uid")))
}

/// Thousandths of a quantity of CPU.
pub fn milli_cpu(quantity: &Value) -> i64 {
    match quantity {
        Value::Number(number) => number.as_i64().unwrap_or_default() * 1000,
        Value::String(text) => match text.strip_suffix('m') {
            Some(milli) => milli.parse().unwrap_or_default(),
            None => text.parse::<i64>().unwrap_or_default() * 1000,
        },
        _ => 0,
    }
}

/// The time as Kubernetes writes it.
pub fn time(now_ms: i64) -> String {
    let at = k8s_openapi::jiff::Timestamp::from_second(now_ms.div_euclid(1000)).unwrap();
    at.to_string()
}
