//! Amounts of resources.

use crate::builtin::fields::{below, default, is_empty, items, set};
use lockkeeper_api::quantity::Quantity;
use serde_json::{Map, Value};

/// Nano units of a thousandth.
const NANO_PER_MILLI: i128 = 1_000_000;

/// Rounds the amounts of a map up to thousandths, as `SetDefaults_ResourceList`.
pub(super) fn round(object: &mut Value, key: &str) {
    let Some(Value::Object(amounts)) = object.get_mut(key) else {
        return;
    };
    for amount in amounts.values_mut() {
        if let Some(quantity) = quantity(amount)
            && quantity.nano().checked_rem(NANO_PER_MILLI) != Some(0)
            && let Some(milli) = quantity.milli_ceil()
        {
            *amount = Quantity::from_milli(milli).to_string().into();
        }
    }
}

/// Rounds limits and requests.
pub(super) fn round_requirements(object: &mut Value, key: &str) {
    if let Some(resources) = below(object, &[key]) {
        for key in ["limits", "requests"] {
            round(resources, key);
        }
    }
}

fn quantity(amount: &Value) -> Option<Quantity> {
    amount.as_str()?.parse().ok()
}

/// Requests default to limits, for each resource of a container of a pod.
pub(super) fn default_requests(container: &mut Value) {
    let Some(resources) = below(container, &["resources"]) else {
        return;
    };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    default(resources, "requests", Map::new());
    for (name, limit) in limits {
        if let Some(requests) = below(resources, &["requests"]) {
            default(requests, &name, limit);
        }
    }
}

/// Whether pods can have an amount of a resource as a whole.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Sets the requests of a pod as a whole: those of its containers together, and else its limits, as
/// `podutil.DefaultPodLevelResources`.
pub(in crate::builtin) fn set_pod_level_resources(spec: &mut Value) {
    let Some(resources) = spec.get("resources") else {
        return;
    };
    if is_empty(resources, "limits") {
        return;
    }
    let limits = resources.get("limits").cloned().unwrap_or_default();
    let mut sums = sums_of_requests(spec);
    let Some(resources) = below(spec, &["resources"]) else {
        return;
    };
    default(resources, "requests", Map::new());
    let Some(requests) = below(resources, &["requests"]) else {
        return;
    };
    sums.retain(|name, _| matches!(name.as_str(), "cpu" | "memory"));
    for (name, sum) in sums {
        default(requests, &name, sum);
    }
    for (name, limit) in limits.as_object().into_iter().flatten() {
        if is_pod_level(name) {
            default(requests, name, limit.clone());
        }
    }
    if is_empty(resources, "requests") {
        set(resources, "requests", Value::Null);
    }
}

/// The requests of all containers: the sum of those that run at the same time, or the largest one of an init container.
fn sums_of_requests(spec: &mut Value) -> Map<String, Value> {
    let mut sums: Map<String, Value> = Map::new();
    let mut sidecars: Map<String, Value> = Map::new();
    for container in items(spec, "containers") {
        add(&mut sums, container);
    }
    let mut peaks: Vec<Map<String, Value>> = Vec::new();
    for container in items(spec, "initContainers") {
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut sums, container);
            add(&mut sidecars, container);
            peaks.push(sidecars.clone());
        } else {
            let mut peak = sidecars.clone();
            add(&mut peak, container);
            peaks.push(peak);
        }
    }
    for (name, amount) in peaks.into_iter().flatten() {
        let is_larger = sums
            .get(&name)
            .is_none_or(|it| quantity(&amount) > quantity(it));
        if is_larger {
            sums.insert(name, amount);
        }
    }
    sums
}

fn add(sums: &mut Map<String, Value>, container: &Value) {
    let requests = container.pointer("/resources/requests");
    for (name, amount) in requests.and_then(Value::as_object).into_iter().flatten() {
        let sum = match sums.get(name).and_then(quantity) {
            Some(sum) => quantity(amount).and_then(|it| sum.checked_add(it)),
            None => quantity(amount),
        };
        if let Some(sum) = sum {
            sums.insert(name.clone(), sum.to_string().into());
        }
    }
}
