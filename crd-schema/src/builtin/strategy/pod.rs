//! What the API server sets in pods: status, label selectors, priority and tolerations.

use super::qos;
use crate::builtin::defaults::set_pod_level_resources;
use crate::builtin::fields::{below, default, ensure, is_empty, items, set, text};
use serde_json::{Map, Value, json};

/// The priorities of the classes that every cluster has.
const SYSTEM_PRIORITIES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// The taints of nodes that pods tolerate for a while.
const TOLERATED_TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// Seconds for which pods tolerate these taints.
const TOLERATION_SECONDS: i64 = 300;

/// The lists of terms of pod affinity, with the field of the term in an item.
const TERMS: [(&str, &[&str]); 2] = [
    (
        "preferredDuringSchedulingIgnoredDuringExecution",
        &["podAffinityTerm"],
    ),
    ("requiredDuringSchedulingIgnoredDuringExecution", &[]),
];

/// Prepares a pod.
pub(super) fn prepare(pod: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        set_status(pod);
        let labels = pod.pointer("/metadata/labels").cloned();
        let labels = labels.unwrap_or_else(|| json!({}));
        if let Some(spec) = ensure(pod, "spec") {
            set_priority(spec);
            merge_label_keys(spec, &labels);
            set_pod_level_resources(spec);
            let class = qos::class(spec);
            if let Some(status) = ensure(pod, "status") {
                set(status, "qosClass", class);
            }
        }
    }
    if let Some(spec) = ensure(pod, "spec") {
        add_tolerations(spec);
    }
}

fn set_status(pod: &mut Value) {
    let is_gated = pod
        .get("spec")
        .is_some_and(|it| !is_empty(it, "schedulingGates"));
    let Some(status) = ensure(pod, "status") else {
        return;
    };
    set(status, "phase", "Pending");
    if is_gated {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set(status, "conditions", json!([condition]));
    }
}

/// The admission plugin `Priority`. Classes other than those of the system are not known here.
fn set_priority(spec: &mut Value) {
    let class = text(spec, "priorityClassName");
    let known = SYSTEM_PRIORITIES.iter().find(|it| it.0 == class);
    let priority = known.map(|it| it.1);
    if let Some(priority) = priority.or_else(|| class.is_empty().then_some(0)) {
        set(spec, "priority", priority);
    }
    default(spec, "preemptionPolicy", "PreemptLowerPriority");
}

/// The admission plugin `DefaultTolerationSeconds`.
fn add_tolerations(spec: &mut Value) {
    let is_tolerated = |spec: &mut Value, taint: &str| {
        items(spec, "tolerations").any(|it| {
            let key = text(it, "key");
            (key == taint || key.is_empty()) && matches!(text(it, "effect"), "" | "NoExecute")
        })
    };
    let missing = TOLERATED_TAINTS.map(|taint| (taint, is_tolerated(spec, taint)));
    for (taint, is_tolerated) in missing {
        if is_tolerated {
            continue;
        }
        default(spec, "tolerations", json!([]));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
            tolerations.push(json!({
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
}

/// Adds the labels of a pod that `matchLabelKeys` and `mismatchLabelKeys` name to the selectors beside them.
fn merge_label_keys(spec: &mut Value, labels: &Value) {
    for affinity in ["podAffinity", "podAntiAffinity"] {
        if let Some(affinity) = below(spec, &["affinity", affinity]) {
            for (list, path) in TERMS {
                for item in items(affinity, list) {
                    if let Some(term) = below(item, path) {
                        add_expressions(term, "matchLabelKeys", "In", labels);
                        add_expressions(term, "mismatchLabelKeys", "NotIn", labels);
                    }
                }
            }
        }
    }
    for constraint in items(spec, "topologySpreadConstraints") {
        add_expressions(constraint, "matchLabelKeys", "In", labels);
    }
}

fn add_expressions(term: &mut Value, keys: &str, operator: &str, labels: &Value) {
    let keys = term.get(keys).and_then(Value::as_array).cloned();
    let keys = keys.unwrap_or_default();
    let Some(selector) = below(term, &["labelSelector"]) else {
        return;
    };
    for key in keys {
        let Some(label) = key.as_str().and_then(|it| labels.get(it)) else {
            continue;
        };
        default(selector, "matchExpressions", json!([]));
        if let Some(Value::Array(expressions)) = selector.get_mut("matchExpressions") {
            let mut expression = Map::new();
            expression.insert("key".to_owned(), key);
            expression.insert("operator".to_owned(), operator.into());
            expression.insert("values".to_owned(), json!([label]));
            expressions.push(Value::Object(expression));
        }
    }
}
