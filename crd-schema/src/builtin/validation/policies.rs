//! Roles, their bindings, priority classes and disruption budgets.

use super::causes::{Below, Causes};
use super::fields::{flag, integer, list, optional_text, set, text, text_or, value};
use super::labels::{LabelValues, has_invalid_value, is_valid_selector, validate_selector};
use super::workloads::{int_or_percent, is_over_100_percent};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The greatest value of a priority class that is not of the system.
const PRIORITY_MAX: i64 = 1_000_000_000;

/// The priority classes of the system.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Validates the rules of a Role or `ClusterRole`.
pub(super) fn validate_role(object: &Value, is_namespaced: bool, out: &mut Causes) {
    for (position, rule) in list(object, "rules").iter().enumerate() {
        let path = FieldPath::new("rules").at(position);
        let is_missing = |key: &str| list(rule, key).is_empty();
        if is_missing("verbs") {
            out.required(path.child("verbs"), "verbs must contain at least one value");
        }
        if !is_missing("nonResourceURLs") {
            let has_resources = ["apiGroups", "resources", "resourceNames"];
            if is_namespaced || has_resources.iter().any(|it| !is_missing(it)) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                out.invalid(path.child("nonResourceURLs"), detail);
            }
            continue;
        }
        for key in ["apiGroups", "resources"] {
            if is_missing(key) {
                out.required(path.child(key), "resource rules must supply at least one");
            }
        }
    }
}

/// Validates the aggregation rule of a `ClusterRole`.
pub(super) fn validate_aggregation(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let Some(rule) = set(object, "aggregationRule") else {
        return;
    };
    let path = FieldPath::new("aggregationRule.clusterRoleSelectors");
    let selectors = list(rule, "clusterRoleSelectors");
    if selectors.is_empty() {
        out.required(path.clone(), "at least one clusterRoleSelector is required");
    }
    let stored = old.map_or(&Value::Null, |it| value(it, "aggregationRule"));
    let mut stored = list(stored, "clusterRoleSelectors").iter();
    let values = if stored.any(has_invalid_value) {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    for (position, selector) in selectors.iter().enumerate() {
        let path = path.at(position);
        validate_selector(selector, values, &path, out);
        if !is_valid_selector(selector) {
            out.invalid(path, "invalid label selector");
        }
    }
}

/// Validates a `RoleBinding` or `ClusterRoleBinding`.
pub(super) fn validate_binding(
    object: &Value,
    old: Option<&Value>,
    is_namespaced: bool,
    out: &mut Causes,
) {
    let role = value(object, "roleRef");
    let path = FieldPath::new("roleRef");
    let group = text_or(role, "apiGroup", RBAC);
    out.one_of(path.child("apiGroup"), group, &[RBAC]);
    let kinds: &[&str] = if is_namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    out.one_of(path.child("kind"), text(role, "kind"), kinds);
    let name = text(role, "name");
    if name.is_empty() {
        out.required(path.child("name"), "");
    } else {
        out.reasons(&path.child("name"), name, names::path_segment(name, false));
    }
    if let Some(old) = old {
        let parts = |it: &Value| {
            let role = value(it, "roleRef");
            ["kind", "name"].map(|it| text(role, it).to_owned())
        };
        let groups = [object, old].map(|it| text_or(value(it, "roleRef"), "apiGroup", RBAC));
        let [new, stored] = groups;
        if parts(object) != parts(old) || new != stored {
            out.invalid(path, "field is immutable");
        }
    }
    for (position, subject) in list(object, "subjects").iter().enumerate() {
        let path = FieldPath::new("subjects").at(position);
        binding_subject(subject, is_namespaced, &path, out);
    }
}

fn binding_subject(subject: &Value, is_namespaced: bool, path: &FieldPath, out: &mut Causes) {
    let (kind, name) = (text(subject, "kind"), text(subject, "name"));
    out.not_empty(path.child("name"), name);
    let group = text(subject, "apiGroup");
    let field = path.child("apiGroup");
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                out.reasons(&path.child("name"), name, names::dns1123_subdomain(name));
            }
            out.one_of(field, group, &[""]);
            if !is_namespaced {
                out.not_empty(path.child("namespace"), text(subject, "namespace"));
            }
        }
        "User" | "Group" => {
            let group = if group.is_empty() { RBAC } else { group };
            out.one_of(field, group, &[RBAC]);
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            out.not_supported(path.child("kind"), other, &kinds);
        }
    }
}

/// Validates a `PriorityClass`.
pub(super) fn validate_priority_class(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let number = integer(object, "value").unwrap_or(0);
    let policy = |it| text_or(it, "preemptionPolicy", "PreemptLowerPriority");
    if let Some(old) = old {
        if number != integer(old, "value").unwrap_or(0) {
            out.forbidden(FieldPath::new("value"), "may not be changed in an update");
        }
        if policy(object) != policy(old) {
            out.invalid(FieldPath::new("preemptionPolicy"), "field is immutable");
        }
        return;
    }
    let name = text(value(object, "metadata"), "name");
    if name.starts_with("system-") {
        let is_known = SYSTEM_CLASSES.contains(&(name, number)) && !flag(object, "globalDefault");
        if !is_known {
            let detail =
                "priority class names with 'system-' prefix are reserved for system use only";
            out.forbidden(FieldPath::new("metadata.name"), detail);
        }
    } else if number > PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        out.forbidden(FieldPath::new("value"), detail);
    }
    let policies = ["PreemptLowerPriority", "Never"];
    out.one_of(
        FieldPath::new("preemptionPolicy"),
        policy(object),
        &policies,
    );
}

/// Validates a `PodDisruptionBudget`.
pub(super) fn validate_budget(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let spec = value(object, "spec");
    let path = FieldPath::new("spec");
    let keys = ["minAvailable", "maxUnavailable"];
    if keys.iter().all(|it| set(spec, it).is_some()) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        out.invalid(path.clone(), detail);
    }
    for key in keys {
        if let Some(number) = set(spec, key) {
            int_or_percent(number, &path.child(key), out);
            is_over_100_percent(number, &path.child(key), out);
        }
    }
    let stored = old.map_or(&Value::Null, |it| value(value(it, "spec"), "selector"));
    let values = if has_invalid_value(stored) {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    validate_selector(
        value(spec, "selector"),
        values,
        &path.child("selector"),
        out,
    );
    let policy = optional_text(spec, "unhealthyPodEvictionPolicy");
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    out.optional(path.child("unhealthyPodEvictionPolicy"), policy, &policies);
}
