//! Services: IP families, and values that an update keeps.

use crate::builtin::json::{has_items, is_unset, items_mut, object_at, object_mut, text};
use serde_json::{Map, Value, json};

/// The fields that an allocator sets, and that an update without them keeps.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

pub(super) fn prepare(fields: &mut Map<String, Value>, old: Option<&Value>) {
    let stored = old.and_then(|it| it.get("spec")).and_then(Value::as_object);
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    if let Some(stored) = stored {
        keep_allocated(spec, stored);
    }
    let address = text(spec, "clusterIP").to_owned();
    if !address.is_empty() && !has_items(spec, "clusterIPs") {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
    let is_headless = address == "None";
    let has_selector = object_at(spec, "selector").is_some_and(|it| !it.is_empty());
    if is_unset(spec, "ipFamilyPolicy") {
        let policy = if is_headless && !has_selector {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        spec.insert("ipFamilyPolicy".to_owned(), policy.into());
    }
    if !has_items(spec, "ipFamilies") {
        let families = if is_headless && text(spec, "ipFamilyPolicy") == "RequireDualStack" {
            json!(["IPv4", "IPv6"])
        } else if address.contains(':') {
            json!(["IPv6"])
        } else {
            json!(["IPv4"])
        };
        spec.insert("ipFamilies".to_owned(), families);
    }
}

/// Source: `patchAllocatedValues` in `pkg/registry/core/service/storage`.
fn keep_allocated(spec: &mut Map<String, Value>, stored: &Map<String, Value>) {
    for name in ALLOCATED {
        let is_empty = is_unset(spec, name) || spec.get(name) == Some(&json!([]));
        if is_empty && let Some(value) = stored.get(name) {
            spec.insert(name.to_owned(), value.clone());
        }
    }
    if !matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let before: Vec<(Value, Value, Value)> = stored
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|it| {
            (
                it["protocol"].clone(),
                it["port"].clone(),
                it["nodePort"].clone(),
            )
        })
        .collect();
    for port in items_mut(spec, "ports") {
        let same = before
            .iter()
            .find(|it| port.get("protocol") == Some(&it.0) && port.get("port") == Some(&it.1));
        if let Some((_, _, number)) = same.filter(|it| !it.2.is_null())
            && is_unset(port, "nodePort")
        {
            port.insert("nodePort".to_owned(), number.clone());
        }
    }
}
