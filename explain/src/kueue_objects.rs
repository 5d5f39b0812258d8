//! Kueue's objects as lockkeeper's, with the state that a decision needs.

use lockkeeper_api::foreign::kueue::{convert, upgrade};
use lockkeeper_api::workload::SchedulingStats;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields of `metadata` that the conversion of manifests drops, and that decisions read.
const METADATA: [&str; 4] = [
    "creationTimestamp",
    "deletionTimestamp",
    "resourceVersion",
    "uid",
];

/// A converted object, and the fields that decisions here do not know.
pub(crate) struct FromKueue {
    pub(crate) object: Value,
    /// As `Kind.field`.
    pub(crate) not_modelled: Vec<String>,
}

/// Converts an object of Kueue's API group. `Err` is the reason why that is not possible.
pub(crate) fn from_kueue(mut object: Value) -> Result<FromKueue, String> {
    upgrade(&mut object);
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let status = object.get_mut("status").map(Value::take);
    let priority = object.pointer_mut("/spec/priority").map(Value::take);
    let metadata = object.get("metadata");
    let metadata = METADATA.map(|key| (key, metadata.and_then(|it| it.get(key)).cloned()));
    let Some(converted) = convert(&object) else {
        return Err("it is not an object of Kueue".to_owned());
    };
    let Some(mut object) = converted.object else {
        let advice = converted.dropped.first().map_or("", |it| it.advice);
        return Err(advice.to_owned());
    };
    if let Some(target) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for (key, value) in metadata {
            if let Some(value) = value {
                target.insert(key.to_owned(), value);
            }
        }
    }
    if let Some(fields) = object.as_object_mut() {
        let status = status.unwrap_or(Value::Null);
        let mut status = if let Value::Object(status) = status {
            status
        } else {
            Map::new()
        };
        if let Some(priority) = priority.filter(Value::is_number) {
            status.insert("priority".to_owned(), priority);
        }
        if kind == "Workload" {
            keep_valid_stats(&mut status);
            fields.insert("status".to_owned(), Value::Object(status));
        }
    }
    let fields = converted.dropped.iter().map(|it| it.field.to_string());
    let fields = fields.filter(|it| it.starts_with("spec."));
    Ok(FromKueue {
        object,
        not_modelled: fields
            .map(|it| format!("{kind}.{}", without_indices(&it)))
            .collect(),
    })
}

/// Removes statistics that cannot be decoded: no decision depends on them.
fn keep_valid_stats(status: &mut Map<String, Value>) {
    let is_valid = |it: &Value| SchedulingStats::deserialize(it).is_ok();
    if status
        .get("schedulingStats")
        .is_some_and(|it| !is_valid(it))
    {
        status.remove("schedulingStats");
    }
}

/// A field path without the indices of lists.
fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for character in path.chars() {
        match character {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(character),
            _ => {}
        }
    }
    out
}
