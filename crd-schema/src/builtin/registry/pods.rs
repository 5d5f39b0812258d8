//! Pods: their status, and what admission plugins add.

use crate::builtin::json::{is_unset, object_at, object_mut, text};
use lockkeeper_api::quantity::Quantity;
use serde_json::{Map, Value, json};

/// The seconds after which pods leave a node that is not ready.
const TOLERATION_SECONDS: i32 = 300;

/// The priority classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

pub(super) fn prepare(fields: &mut Map<String, Value>, old: Option<&Value>) {
    if let Some(spec) = object_mut(fields, "spec") {
        add_tolerations(spec);
        if old.is_none() {
            add_priority(spec);
        }
    }
    if old.is_none() {
        let status = status(fields);
        fields.insert("status".to_owned(), status);
    }
}

/// Source: the admission plugin `Priority`.
fn add_priority(spec: &mut Map<String, Value>) {
    let class = text(spec, "priorityClassName");
    let system = SYSTEM_CLASSES.iter().find(|it| it.0 == class);
    if is_unset(spec, "priority") {
        match system {
            Some((_, priority)) => drop(spec.insert("priority".to_owned(), (*priority).into())),
            None if class.is_empty() => drop(spec.insert("priority".to_owned(), 0.into())),
            // The class may exist in the cluster.
            None => return,
        }
    }
    if is_unset(spec, "preemptionPolicy") {
        spec.insert("preemptionPolicy".to_owned(), "PreemptLowerPriority".into());
    }
}

/// Source: the admission plugin `DefaultTolerationSeconds`.
fn add_tolerations(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else {
        return;
    };
    let keys = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    let missing = keys.map(|key| {
        let is_tolerated = tolerations
            .iter()
            .filter_map(Value::as_object)
            .any(|it| tolerates(it, key));
        (!is_tolerated).then_some(key)
    });
    for key in missing.into_iter().flatten() {
        tolerations.push(json!({
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATION_SECONDS,
        }));
    }
}

/// Whether a toleration is for a taint of this key with the effect `NoExecute`.
fn tolerates(toleration: &Map<String, Value>, key: &str) -> bool {
    let own_key = text(toleration, "key");
    let effect = text(toleration, "effect");
    (own_key == key || own_key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
}

fn status(fields: &Map<String, Value>) -> Value {
    let spec = object_at(fields, "spec");
    let mut status = json!({"phase": "Pending", "qosClass": spec.map_or("BestEffort", qos_class)});
    let gates = spec.and_then(|it| it.get("schedulingGates"));
    if gates
        .and_then(Value::as_array)
        .is_some_and(|it| !it.is_empty())
    {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    status
}

const GUARANTEED: &str = "Guaranteed";
const BURSTABLE: &str = "Burstable";
const BEST_EFFORT: &str = "BestEffort";

/// Source: `ComputePodQOS` in `pkg/apis/core/helper/qos`.
fn qos_class(spec: &Map<String, Value>) -> &'static str {
    if let Some(resources) = object_at(spec, "resources")
        && (!is_unset(resources, "requests") || !is_unset(resources, "limits"))
    {
        return class_of(Some(resources));
    }
    let lists = ["initContainers", "containers"];
    let containers = lists.iter().filter_map(|it| spec.get(*it)?.as_array());
    let classes = containers.flatten().map(|it| {
        let resources = it.get("resources").and_then(Value::as_object);
        class_of(resources)
    });
    combined(classes).unwrap_or(BEST_EFFORT)
}

/// The common class; `Burstable` if the classes differ.
fn combined(mut classes: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let first = classes.next()?;
    Some(if classes.all(|it| it == first) {
        first
    } else {
        BURSTABLE
    })
}

fn class_of(resources: Option<&Map<String, Value>>) -> &'static str {
    let amount = |list: &str, resource: &str| -> Quantity {
        let list = resources.and_then(|it| object_at(it, list));
        let amount = list.map_or("", |it| text(it, resource));
        amount.parse().unwrap_or_else(|_| Quantity::from(0))
    };
    let is_empty = |list| {
        resources
            .and_then(|it| object_at(it, list))
            .is_none_or(Map::is_empty)
    };
    if is_empty("requests") && is_empty("limits") {
        return BEST_EFFORT;
    }
    let classes = ["cpu", "memory"].map(|resource| {
        let request = amount("requests", resource);
        if request != amount("limits", resource) {
            BURSTABLE
        } else if request.is_zero() {
            BEST_EFFORT
        } else {
            GUARANTEED
        }
    });
    combined(classes.into_iter()).unwrap_or(BEST_EFFORT)
}
