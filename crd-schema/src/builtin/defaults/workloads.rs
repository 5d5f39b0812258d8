//! Computed defaults of objects that create pods.

use super::services::template_labels;
use crate::builtin::json::{has_items, is_unset, object_mut, text};
use serde_json::{Map, Value, json};

/// Sets a field that is not set.
fn set(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if is_unset(fields, name) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets the defaults of a rolling update, if the strategy is one.
fn set_rolling_update(strategy: &mut Map<String, Value>, defaults: &[(&str, Value)]) {
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), "RollingUpdate".into());
    }
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    set(strategy, "rollingUpdate", json!({}));
    if let Some(update) = object_mut(strategy, "rollingUpdate") {
        for (name, value) in defaults {
            set(update, name, value.clone());
        }
    }
}

/// Source: `SetDefaults_Deployment`.
pub(super) fn deployment(fields: &mut Map<String, Value>) {
    let spec = object_mut(fields, "spec");
    if let Some(strategy) = spec.and_then(|it| object_mut(it, "strategy")) {
        let defaults = [("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))];
        set_rolling_update(strategy, &defaults);
    }
}

/// Source: `SetDefaults_DaemonSet`.
pub(super) fn daemon_set(fields: &mut Map<String, Value>) {
    let spec = object_mut(fields, "spec");
    if let Some(strategy) = spec.and_then(|it| object_mut(it, "updateStrategy")) {
        let defaults = [("maxUnavailable", json!(1)), ("maxSurge", json!(0))];
        set_rolling_update(strategy, &defaults);
    }
}

/// Source: `SetDefaults_StatefulSet`. A strategy that is set without its fields stays without them.
pub(super) fn stateful_set(fields: &mut Map<String, Value>) {
    let spec = object_mut(fields, "spec");
    let Some(strategy) = spec.and_then(|it| object_mut(it, "updateStrategy")) else {
        return;
    };
    let is_given = !text(strategy, "type").is_empty();
    if is_given && is_unset(strategy, "rollingUpdate") {
        return;
    }
    let defaults = [("partition", json!(0)), ("maxUnavailable", json!(1))];
    set_rolling_update(strategy, &defaults);
}

/// Source: `SetDefaults_Job`.
pub(super) fn job(fields: &mut Map<String, Value>) {
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    if is_unset(spec, "completions") && is_unset(spec, "parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    set(spec, "parallelism", 1);
    let retries = if is_unset(spec, "backoffLimitPerIndex") {
        6
    } else {
        i32::MAX
    };
    set(spec, "backoffLimit", retries);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if is_unset(spec, "podFailurePolicy") {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    set(spec, "podReplacementPolicy", replacement);
    let labels = template_labels(spec).cloned();
    if let Some(metadata) = object_mut(fields, "metadata")
        && let Some(labels) = labels
        && is_unset(metadata, "labels")
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// Source: `SetDefaults_HorizontalPodAutoscaler`.
pub(super) fn autoscaler(fields: &mut Map<String, Value>) {
    let Some(spec) = object_mut(fields, "spec") else {
        return;
    };
    if !has_items(spec, "metrics") {
        let metric = json!([{
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }]);
        spec.insert("metrics".to_owned(), metric);
    }
    let Some(behavior) = object_mut(spec, "behavior") else {
        return;
    };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    set(behavior, "scaleUp", json!({}));
    if let Some(rules) = object_mut(behavior, "scaleUp") {
        set(rules, "stabilizationWindowSeconds", 0);
        set(rules, "selectPolicy", "Max");
        set(rules, "policies", json!([pods, percent]));
    }
    set(behavior, "scaleDown", json!({}));
    if let Some(rules) = object_mut(behavior, "scaleDown") {
        set(rules, "selectPolicy", "Max");
        set(rules, "policies", json!([percent]));
    }
}
