//! Conditions, and patches that change a status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_api::workload::WorkloadStatus;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The reason of `Admitted=False` of a workload that has quota, and waits until its victims are gone from its nodes.
pub(crate) const NOMINATED: &str = "WaitingForVictims";

/// The longest message of a condition, in bytes.
const MESSAGE_MAX: usize = 32_768;

/// The time as Kubernetes writes it: whole seconds.
pub(crate) fn timestamp(now_ms: i64) -> Time {
    let second = now_ms.div_euclid(1000);
    Time(Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Seconds since 1970.
pub(crate) fn epoch_seconds(time: &Time) -> i64 {
    time.0.as_second()
}

/// The condition of a type, if it is set.
pub(crate) fn find<'a>(conditions: &'a [Condition], of: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.type_ == of)
}

/// Whether a workload has a condition with this status.
pub(crate) fn has_status(workload: &Workload, of: &str, status: &str) -> bool {
    let conditions = workload.status.as_ref().map(|it| it.conditions.as_slice());
    find(conditions.unwrap_or_default(), of).is_some_and(|it| it.status == status)
}

/// A list of conditions, with the time and the generation for its changes.
pub(crate) struct Conditions<'a> {
    pub(crate) list: &'a mut Vec<Condition>,
    pub(crate) now: Time,
    pub(crate) generation: Option<i64>,
}

/// The conditions of a workload, as of `now_ms`.
pub(crate) fn workload_conditions<'a>(
    workload: &Workload,
    list: &'a mut Vec<Condition>,
    now_ms: i64,
) -> Conditions<'a> {
    Conditions {
        list,
        now: timestamp(now_ms),
        generation: workload.metadata.generation,
    }
}

impl Conditions<'_> {
    /// Sets a condition. `lastTransitionTime` changes only with the status.
    pub(crate) fn set(&mut self, of: &str, is_true: bool, reason: &str, message: &str) {
        let status = if is_true { "True" } else { "False" };
        // The API server limits characters; a text never has more of them than bytes.
        let message = truncate_at_char(message, MESSAGE_MAX);
        let now = || self.now.clone();
        let existing = self.list.iter_mut().find(|it| it.type_ == of);
        let Some(existing) = existing else {
            self.list.push(Condition {
                type_: of.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                last_transition_time: now(),
                observed_generation: self.generation,
            });
            return;
        };
        if existing.status != status {
            existing.last_transition_time = now();
        }
        status.clone_into(&mut existing.status);
        reason.clone_into(&mut existing.reason);
        message.clone_into(&mut existing.message);
        existing.observed_generation = self.generation;
    }

    /// Sets a condition to true with a new `lastTransitionTime`, for instance for a second eviction.
    pub(crate) fn set_renewed(&mut self, of: &str, reason: &str, message: &str) {
        self.list.retain(|it| it.type_ != of);
        self.set(of, true, reason, message);
    }

    /// Sets a true condition to false and keeps its message after "Previously:".
    pub(crate) fn set_false(&mut self, of: &str, reason: &str) {
        let Some(known) = find(self.list, of).filter(|it| it.status == "True") else {
            return;
        };
        let message = format!("Previously: {}", known.message);
        self.set(of, false, reason, &message);
    }

    /// Sets `Admitted` to false, and removes `PodsReady`. A condition of an earlier eviction stays as it is.
    pub(crate) fn set_not_admitted(&mut self) {
        let is_outdated = |it: &Condition| it.status == "True" || it.reason == NOMINATED;
        if find(self.list, "Admitted").is_some_and(is_outdated) {
            let message = "The workload has no reservation";
            self.set("Admitted", false, "NoReservation", message);
        }
        self.remove("PodsReady");
    }

    pub(crate) fn remove(&mut self, of: &str) {
        self.list.retain(|it| it.type_ != of);
    }
}

/// The longest prefix of at most this many bytes that ends between characters.
pub(crate) fn truncate_at_char(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// The merge patch from one status to another, on condition of this resource version; `None` if they are
/// equal.
pub(crate) fn status_patch<T: Serialize>(
    version: Option<&str>,
    before: Option<&T>,
    after: &T,
) -> Option<Value> {
    let before = before.and_then(|it| serde_json::to_value(it).ok());
    let after = serde_json::to_value(after).ok()?;
    let changed = merge_diff(&before.unwrap_or(Value::Null), &after)?;
    // With a resource version, the API server rejects the patch of a changed object with 409.
    Some(json!({"metadata": {"resourceVersion": version}, "status": changed}))
}

pub(crate) fn status_or_default(workload: &Workload) -> WorkloadStatus {
    workload.status.clone().unwrap_or_default()
}

/// The merge patch (RFC 7386) from one value to another; `None` if they are equal.
fn merge_diff(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    // A merge patch replaces lists as a whole.
    let Some(after) = after.as_object() else {
        return Some(after.clone());
    };
    let none = Map::new();
    let before = before.as_object().unwrap_or(&none);
    let mut out = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        out.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        match before.get(key) {
            Some(known) => {
                if let Some(changed) = merge_diff(known, value) {
                    out.insert(key.clone(), changed);
                }
            }
            None => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    Some(Value::Object(out))
}

#[cfg(test)]
mod tests {
    use super::{merge_diff, truncate_at_char};
    use serde_json::json;

    #[test]
    fn merge_diff_removes_changes_and_adds() {
        let before = json!({"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2], "same": {"x": 1}});
        let after = json!({"b": {"c": 1, "e": 3}, "list": [1], "same": {"x": 1}, "new": 4});
        let expected = json!({
            "a": null, "b": {"d": null, "e": 3}, "list": [1], "new": 4,
        });
        assert_eq!(merge_diff(&before, &after), Some(expected));
        assert_eq!(merge_diff(&after, &after), None);
    }

    #[test]
    fn truncate_at_char_keeps_whole_characters() {
        assert_eq!(truncate_at_char("añb", 2), "a");
        assert_eq!(truncate_at_char("añb", 3), "añ");
        assert_eq!(truncate_at_char("añb", 9), "añb");
    }
}
