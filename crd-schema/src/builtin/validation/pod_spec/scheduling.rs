//! Fields for the scheduler: affinity, tolerations, spread constraints.

use super::context::PodContext;
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    entries, integer, is_set, list, optional_text, set, text, texts, value,
};
use crate::builtin::validation::labels::{LabelValues, validate_selector};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Validates the affinity of a pod.
pub(super) fn validate_affinity(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let affinity = value(pod.spec, "affinity");
    let path = path.child("affinity");
    let node = value(affinity, "nodeAffinity");
    let node_path = path.child("nodeAffinity");
    if let Some(required) = set(node, REQUIRED) {
        let path = node_path.child(REQUIRED).field("nodeSelectorTerms");
        let terms = list(required, "nodeSelectorTerms");
        if terms.is_empty() {
            out.required(path.clone(), "must have at least one node selector term");
        }
        let values = if pod.accepts_invalid_node_affinity() {
            LabelValues::AnyAccepted
        } else {
            LabelValues::Validated
        };
        for (position, term) in terms.iter().enumerate() {
            node_term(term, values, &path.at(position), out);
        }
    }
    for (position, preferred) in list(node, PREFERRED).iter().enumerate() {
        let path = node_path.child(PREFERRED).at(position);
        weight(preferred, &path, out);
        let term = value(preferred, "preference");
        node_term(
            term,
            LabelValues::AnyAccepted,
            &path.child("preference"),
            out,
        );
    }
    let values = if pod.accepts_invalid_affinity() {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    for key in ["podAffinity", "podAntiAffinity"] {
        let (kind, path) = (value(affinity, key), path.child(key));
        for (position, term) in list(kind, REQUIRED).iter().enumerate() {
            pod_term(term, pod, values, &path.child(REQUIRED).at(position), out);
        }
        for (position, preferred) in list(kind, PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).at(position);
            weight(preferred, &path, out);
            let term = value(preferred, "podAffinityTerm");
            pod_term(term, pod, values, &path.child("podAffinityTerm"), out);
        }
    }
}

fn weight(term: &Value, path: &FieldPath, out: &mut Causes) {
    if !(1..=100).contains(&integer(term, "weight").unwrap_or(0)) {
        out.invalid(path.child("weight"), "must be in the range 1-100");
    }
}

fn node_term(term: &Value, values: LabelValues, path: &FieldPath, out: &mut Causes) {
    for (position, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").at(position);
        node_requirement(requirement, values, &path, out);
    }
    for (position, requirement) in list(term, "matchFields").iter().enumerate() {
        let path = path.child("matchFields").at(position);
        let all = texts(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if all.len() != 1 => out.required(
                path.child("values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ),
            "In" | "NotIn" => {}
            _ => out.invalid(path.child("operator"), "not a valid selector operator"),
        }
        if text(requirement, "key") == "metadata.name" {
            for (position, name) in all.iter().enumerate() {
                let path = path.child("values").at(position);
                out.reasons(&path, name, names::dns1123_subdomain(name));
            }
        } else {
            out.invalid(path.child("key"), "not a valid field selector key");
        }
    }
}

fn node_requirement(requirement: &Value, values: LabelValues, path: &FieldPath, out: &mut Causes) {
    let all = texts(requirement, "values");
    let field = path.child("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if all.is_empty() => {
            out.required(
                field,
                "must be specified when `operator` is 'In' or 'NotIn'",
            );
        }
        "Exists" | "DoesNotExist" if !all.is_empty() => out.forbidden(
            field,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "Gt" | "Lt" if all.len() != 1 => out.required(
            field,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => out.invalid(path.child("operator"), "not a valid selector operator"),
    }
    let key = text(requirement, "key");
    out.reasons(&path.child("key"), key, names::qualified_name(key));
    if values == LabelValues::Validated {
        for (position, value) in all.iter().enumerate() {
            let path = path.child("values").at(position);
            out.reasons(&path, value, names::label_value(value));
        }
    }
}

fn pod_term(
    term: &Value,
    pod: &PodContext<'_>,
    values: LabelValues,
    path: &FieldPath,
    out: &mut Causes,
) {
    for key in ["labelSelector", "namespaceSelector"] {
        validate_selector(value(term, key), values, &path.child(key), out);
    }
    for name in texts(term, "namespaces") {
        out.reasons(&path.child("namespace"), name, names::dns1123_label(name));
    }
    label_keys(term, pod, path, out);
    let key = text(term, "topologyKey");
    let field = path.child("topologyKey");
    if key.is_empty() {
        out.required(field.clone(), "can not be empty");
    }
    out.reasons(&field, key, names::qualified_name(key));
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`.
fn label_keys(term: &Value, pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = texts(term, field);
        let field = path.child(field);
        if keys.is_empty() {
            continue;
        }
        if !is_set(term, "labelSelector") {
            out.forbidden(field, "must not be specified when labelSelector is not set");
            continue;
        }
        for (position, key) in keys.iter().enumerate() {
            out.reasons(&field.at(position), key, names::qualified_name(key));
        }
    }
    let keys = texts(term, "matchLabelKeys");
    let selector = value(term, "labelSelector");
    let mut seen: Vec<&str> = entries(selector, "matchLabels").map(|it| it.0).collect();
    let expressions = list(selector, "matchExpressions").iter();
    let mut expressions: Vec<&str> = expressions.map(|it| text(it, "key")).collect();
    if pod.is_pod && !pod.has_old() {
        // The API server adds the keys that a new pod has labels for to its selectors.
        let labels = value(value(pod.owner, "metadata"), "labels");
        expressions.extend(keys.iter().filter(|it| is_set(labels, it)));
    }
    for key in expressions {
        let position = keys.iter().rposition(|it| *it == key);
        if let Some(position) = position.filter(|_| seen.contains(&key)) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            out.invalid(path.at(position), detail);
        }
        seen.push(key);
    }
    let mismatch = texts(term, "mismatchLabelKeys");
    for (position, key) in keys.iter().enumerate() {
        if mismatch.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            out.invalid(path.child("matchLabelKeys").at(position), detail);
        }
    }
}

/// Validates tolerations.
pub(super) fn validate_tolerations(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    for (position, toleration) in list(pod.spec, "tolerations").iter().enumerate() {
        let path = path.child("tolerations").at(position);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        let field = path.child("operator");
        if !key.is_empty() {
            out.reasons(&path.child("key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            out.invalid(field.clone(), "operator must be Exists when `key` is empty");
        }
        if is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            out.invalid(path.child("effect"), detail);
        }
        match operator {
            "Equal" | "" => out.reasons(&field, value, names::label_value(value)),
            "Exists" if !value.is_empty() => {
                out.invalid(field, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" if pod.accepts_comparison_operators() => {
                if value.parse::<i64>().is_err() {
                    out.invalid(path.child("value"), "must be a decimal integer");
                }
            }
            other => out.not_supported(field, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            out.one_of(path.child("effect"), effect, EFFECTS);
        }
    }
}

/// Validates spread constraints.
pub(super) fn validate_spread(pod: &PodContext<'_>, path: &FieldPath, out: &mut Causes) {
    let constraints = list(pod.spec, "topologySpreadConstraints");
    let accepts_selector = pod.accepts_invalid_spread_selector();
    for (position, constraint) in constraints.iter().enumerate() {
        let path = path.child("topologySpreadConstraints").at(position);
        if integer(constraint, "maxSkew").unwrap_or(0) <= 0 {
            out.invalid(path.child("maxSkew"), "must be greater than zero");
        }
        let (key, action) = (
            text(constraint, "topologyKey"),
            text(constraint, "whenUnsatisfiable"),
        );
        if key.is_empty() {
            out.required(path.child("topologyKey"), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        out.one_of(path.child("whenUnsatisfiable"), action, &actions);
        let mut later = constraints.iter().skip(position.saturating_add(1));
        if later.any(|it| text(it, "topologyKey") == key && text(it, "whenUnsatisfiable") == action)
        {
            let field = path.child("{topologyKey, whenUnsatisfiable}");
            out.duplicate(field, &format!("{{{key}, {action}}}"));
        }
        if let Some(domains) = integer(constraint, "minDomains") {
            let field = path.child("minDomains");
            if domains <= 0 {
                out.invalid(field.clone(), "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                out.invalid(
                    field,
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule",
                );
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = optional_text(constraint, key);
            out.optional(path.child(key), policy, &["Honor", "Ignore"]);
        }
        label_keys(constraint, pod, &path, out);
        if !accepts_selector {
            let selector = value(constraint, "labelSelector");
            let path = path.child("labelSelector");
            validate_selector(selector, LabelValues::Validated, &path, out);
        }
    }
}
