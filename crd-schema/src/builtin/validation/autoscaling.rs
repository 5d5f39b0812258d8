//! `HorizontalPodAutoscaler`s.

use super::causes::{Below, Causes};
use super::fields::{integer, is_set, list, optional_text, set, text, value};
use super::pod_spec::container_resource_name;
use super::quantities::nano;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// The longest windows and periods, in seconds.
const WINDOW_MAX: i64 = 3600;
const PERIOD_MAX: i64 = 1800;

/// The sources of metrics: the type and the field, in the order of their validation.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];

const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// The groups that a reference may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// A group is required.
    Required,
    /// The group may be empty.
    Optional,
    /// The version is not validated.
    AnyAccepted,
}

/// Validates a `HorizontalPodAutoscaler`.
pub(super) fn validate(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    let min = integer(spec, "minReplicas").unwrap_or(1);
    if min < 0 {
        let field = path.child("minReplicas");
        out.invalid(field, "must be greater than or equal to 0");
    }
    let max = integer(spec, "maxReplicas").unwrap_or(0);
    let field = path.child("maxReplicas");
    if max == 0 {
        out.required(field.clone(), "must be set and greater than 0");
    }
    if max < 0 || max < min {
        out.invalid(field, "must be greater than or equal to `minReplicas`");
    }
    let target = value(spec, "scaleTargetRef");
    let is_same = |old: &Value| {
        let old = value(old, "scaleTargetRef");
        ["apiVersion", "kind"]
            .iter()
            .all(|it| text(old, it) == text(target, it))
    };
    let group = if old.is_some_and(is_same) {
        Group::AnyAccepted
    } else if text(target, "kind") == "ReplicationController" {
        Group::Optional
    } else {
        Group::Required
    };
    reference(target, group, &path.child("scaleTargetRef"), out);
    metrics(spec, old, min, &path.child("metrics"), out);
    let behavior = value(spec, "behavior");
    for key in ["scaleUp", "scaleDown"] {
        if let Some(rules) = set(behavior, key) {
            scaling_rules(rules, &path.child("behavior").field(key), out);
        }
    }
}

fn is_api_version(version: &str, group: Group) -> bool {
    match names::parse_group_version(version) {
        _ if group == Group::AnyAccepted => true,
        None => false,
        Some((name, _)) => group == Group::Optional || !name.is_empty(),
    }
}

fn reference(reference: &Value, group: Group, path: &FieldPath, out: &mut Causes) {
    for key in ["kind", "name"] {
        let name = text(reference, key);
        if name.is_empty() {
            out.required(path.child(key), "");
        } else {
            out.reasons(&path.child(key), name, names::path_segment(name, false));
        }
    }
    if !is_api_version(text(reference, "apiVersion"), group) {
        out.invalid(
            path.child("apiVersion"),
            "apiVersion must specify API group",
        );
    }
}

fn metrics(spec: &Value, old: Option<&Value>, min: i64, path: &FieldPath, out: &mut Causes) {
    let described = |it: &Value| {
        let object = value(it, "object");
        text(value(object, "describedObject"), "apiVersion").to_owned()
    };
    let old_metrics = old.map_or(&[][..], |it| list(it, "metrics"));
    let mut old_objects = old_metrics
        .iter()
        .filter(|it| text(it, "type") == "Object" && is_set(it, "object"));
    let accepts = old_objects.any(|it| !is_api_version(&described(it), Group::Optional));
    let group = if accepts {
        Group::AnyAccepted
    } else {
        Group::Optional
    };
    let all = list(spec, "metrics");
    for (position, item) in all.iter().enumerate() {
        metric(item, group, &path.at(position), out);
    }
    let mut types = all.iter().map(|it| text(it, "type"));
    if min == 0 && !types.any(|it| matches!(it, "Object" | "External")) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        out.forbidden(path.clone(), detail);
    }
}

fn metric(metric: &Value, group: Group, path: &FieldPath, out: &mut Causes) {
    let kind = text(metric, "type");
    if kind.is_empty() {
        out.required(path.child("type"), "must specify a metric source type");
    }
    out.one_of(path.child("type"), kind, TYPES);
    let present: Vec<&'static str> = SOURCES
        .iter()
        .map(|it| it.1)
        .filter(|it| is_set(metric, it))
        .collect();
    if let Some(key) = present.first() {
        source(value(metric, key), key, group, &path.child(key), out);
    }
    let expected = SOURCES.iter().find(|it| it.0 == kind).map(|it| it.1);
    if let Some(key) = expected.filter(|it| !present.contains(it)) {
        let detail = "must populate information for the given metric source";
        out.required(path.child(key), detail);
    }
    if present.len() != 1 {
        for key in present.iter().filter(|it| Some(**it) != expected) {
            out.forbidden(
                path.child(key),
                "must populate the given metric source only",
            );
        }
    }
}

fn source(source: &Value, key: &str, group: Group, path: &FieldPath, out: &mut Causes) {
    let target = value(source, "target");
    let path_of_target = path.child("target");
    let has = |key: &str| is_set(target, key);
    match key {
        "object" => reference(
            value(source, "describedObject"),
            group,
            &path.child("describedObject"),
            out,
        ),
        "resource" | "containerResource" => {
            let name = text(source, "name");
            let field = path.child("name");
            if name.is_empty() {
                out.required(field, "must specify a resource name");
            } else if key == "containerResource" {
                container_resource_name(name, &field, out);
            }
        }
        _ => {}
    }
    if key == "containerResource" {
        let container = text(source, "container");
        let field = path.child("container");
        if container.is_empty() {
            out.required(field, "must specify a container");
        } else {
            out.reasons(&field, container, names::dns1123_label(container));
        }
    }
    if matches!(key, "object" | "external" | "pods") {
        let name = text(value(source, "metric"), "name");
        let field = path.child("metric.name");
        if name.is_empty() {
            out.required(field, "must specify a metric name");
        } else {
            out.reasons(&field, name, names::path_segment(name, false));
        }
    }
    metric_target(target, &path_of_target, out);
    let average = path_of_target.child("averageValue");
    match key {
        "object" | "external" if !has("value") && !has("averageValue") => {
            out.required(average, "must set either a target value or averageValue");
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            out.forbidden(path_of_target.child("value"), detail);
        }
        "pods" if !has("averageValue") => {
            out.required(average, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" => {
            match (has("averageUtilization"), has("averageValue")) {
                (false, false) => out.required(
                    path_of_target.child("averageUtilization"),
                    "must set either a target raw value or a target utilization",
                ),
                (true, true) => {
                    let detail = "may not set both a target raw value and a target utilization";
                    out.forbidden(average, detail);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn metric_target(target: &Value, path: &FieldPath, out: &mut Causes) {
    let kind = text(target, "type");
    let field = path.child("type");
    if kind.is_empty() {
        out.required(field.clone(), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        out.invalid(field, "must be either Utilization, Value, or AverageValue");
    }
    for key in ["value", "averageValue"] {
        if set(target, key).is_some_and(|it| nano(it) <= 0) {
            out.invalid(path.child(key), "must be positive");
        }
    }
    if integer(target, "averageUtilization").is_some_and(|it| it < 1) {
        out.invalid(path.child("averageUtilization"), "must be greater than 0");
    }
}

fn scaling_rules(rules: &Value, path: &FieldPath, out: &mut Causes) {
    let window = integer(rules, "stabilizationWindowSeconds");
    out.range(
        path.child("stabilizationWindowSeconds"),
        window,
        0,
        WINDOW_MAX,
    );
    let policy = optional_text(rules, "selectPolicy");
    out.optional(
        path.child("selectPolicy"),
        policy,
        &["Disabled", "Max", "Min"],
    );
    // Absent policies default, an empty list does not.
    if set(rules, "policies").is_some() && list(rules, "policies").is_empty() {
        out.required(path.child("policies"), "must specify at least one Policy");
    }
    for (position, policy) in list(rules, "policies").iter().enumerate() {
        let path = path.child("policies").at(position);
        out.one_of(
            path.child("type"),
            text(policy, "type"),
            &["Percent", "Pods"],
        );
        if integer(policy, "value").unwrap_or(0) <= 0 {
            out.invalid(path.child("value"), "must be greater than zero");
        }
        let period = integer(policy, "periodSeconds").unwrap_or(0);
        if !(1..=PERIOD_MAX).contains(&period) {
            let detail = format!("must be greater than zero and at most {PERIOD_MAX}");
            out.invalid(path.child("periodSeconds"), detail);
        }
    }
    if set(rules, "tolerance").is_some_and(|it| nano(it) < 0) {
        out.invalid(
            path.child("tolerance"),
            "must be greater than or equal to 0",
        );
    }
}
