//! Completion, failure and success of Jobs.

use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    integer, integer_of, list, optional_text, set, text, value,
};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const INDEXES_MAX: i64 = 100_000;
const MANY_INDEXES_MAX: i64 = 10_000;
const INDEXES_MAX_BYTES: usize = 64 * 1024;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

/// Validates the policies of a Job.
pub(super) fn validate(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let per_index = integer(spec, "backoffLimitPerIndex");
    let max_failed = integer(spec, "maxFailedIndexes");
    if max_failed.is_some() && per_index.is_none() {
        let field = path.child("backoffLimitPerIndex");
        out.required(field, "when maxFailedIndexes is specified");
    }
    if let Some(manager) = optional_text(spec, "managedBy") {
        managed_by(manager, &path.child("managedBy"), out);
    }
    let mode = optional_text(spec, "completionMode");
    out.optional(
        path.child("completionMode"),
        mode,
        &["NonIndexed", "Indexed"],
    );
    let is_indexed = mode == Some("Indexed");
    if is_indexed {
        indexed(spec, path, out);
    } else if matches!(mode, None | Some("NonIndexed")) {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if integer(spec, key).is_some() {
                out.invalid(path.child(key), "requires indexed completion mode");
            }
        }
    }
    if let Some(policy) = set(spec, "podFailurePolicy") {
        failure_policy(spec, policy, &path.child("podFailurePolicy.rules"), out);
    }
    if let Some(policy) = set(spec, "successPolicy") {
        let path = path.child("successPolicy");
        if is_indexed {
            success_policy(spec, policy, &path.child("rules"), out);
        } else {
            out.invalid(path, "requires indexed completion mode");
        }
    }
    let replacement = optional_text(spec, "podReplacementPolicy");
    let field = path.child("podReplacementPolicy");
    if set(spec, "podFailurePolicy").is_some() {
        out.optional(field, replacement, &["Failed"]);
    } else {
        out.optional(field, replacement, &["Failed", "TerminatingOrFailed"]);
    }
}

fn managed_by(manager: &str, field: &FieldPath, out: &mut Causes) {
    if manager.len() > 63 {
        out.too_long(field.clone(), 63);
    }
    if manager.is_empty() {
        out.required(field.clone(), "");
        return;
    }
    match manager.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            out.reasons(field, domain, names::dns1123_subdomain(domain));
            let is_allowed =
                |it: char| it.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(it);
            if !rest.chars().all(is_allowed) {
                out.invalid(field.clone(), "must be a path");
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            out.invalid(field.clone(), detail);
        }
    }
}

fn indexed(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let completions = integer(spec, "completions");
    let parallelism = integer(spec, "parallelism").unwrap_or(1);
    let max_failed = integer(spec, "maxFailedIndexes");
    if completions.is_none() {
        out.required(path.child("completions"), "when completion mode is Indexed");
    }
    let is_many = completions.is_some_and(|it| it > INDEXES_MAX)
        && integer(spec, "backoffLimitPerIndex").is_some();
    let limit = if is_many {
        MANY_INDEXES_MAX
    } else {
        INDEXES_MAX
    };
    if parallelism > limit {
        let detail = format!("must be less than or equal to {limit}");
        out.invalid(path.child("parallelism"), detail);
    }
    match max_failed {
        Some(max) if max > limit || completions.is_some_and(|it| max > it) => {
            let detail = format!("must be less than or equal to completions and {limit}");
            out.invalid(path.child("maxFailedIndexes"), detail);
        }
        None if is_many => {
            let detail = "must be specified when completions is above 100000";
            out.required(path.child("maxFailedIndexes"), detail);
        }
        _ => {}
    }
}

fn failure_policy(spec: &Value, policy: &Value, path: &FieldPath, out: &mut Causes) {
    let rules = list(policy, "rules");
    if rules.len() > 20 {
        out.too_many(path.clone(), rules.len(), 20);
    }
    let pod = value(value(spec, "template"), "spec");
    let containers = ["containers", "initContainers"]
        .iter()
        .flat_map(|it| list(pod, it));
    let containers: BTreeSet<&str> = containers.map(|it| text(it, "name")).collect();
    for (position, rule) in rules.iter().enumerate() {
        let path = path.at(position);
        let action = text(rule, "action");
        let field = path.child("action");
        if action == "FailIndex" && integer(spec, "backoffLimitPerIndex").is_none() {
            out.invalid(field, "requires the backoffLimitPerIndex to be set");
        } else {
            out.choice(field, action, ACTIONS);
        }
        let codes = set(rule, "onExitCodes");
        if let Some(codes) = codes {
            exit_codes(codes, &containers, &path.child("onExitCodes"), out);
        }
        let conditions = list(rule, "onPodConditions");
        pod_conditions(conditions, &path.child("onPodConditions"), out);
        if codes.is_some() != conditions.is_empty() {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            out.invalid(path, detail);
        }
    }
}

fn pod_conditions(conditions: &[Value], path: &FieldPath, out: &mut Causes) {
    if conditions.len() > 20 {
        out.too_many(path.clone(), conditions.len(), 20);
    }
    for (position, condition) in conditions.iter().enumerate() {
        let path = path.at(position);
        let kind = text(condition, "type");
        out.reasons(&path.child("type"), kind, names::qualified_name(kind));
        if let Some(status) = optional_text(condition, "status").filter(|it| !it.is_empty()) {
            out.one_of(path.child("status"), status, &["False", "True", "Unknown"]);
        }
    }
}

fn exit_codes(codes: &Value, containers: &BTreeSet<&str>, path: &FieldPath, out: &mut Causes) {
    let operator = text(codes, "operator");
    out.choice(path.child("operator"), operator, &["In", "NotIn"]);
    if optional_text(codes, "containerName").is_some_and(|it| !containers.contains(it)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        out.invalid(path.child("containerName"), detail);
    }
    let path = path.child("values");
    let values = list(codes, "values").iter();
    let values: Vec<i64> = values.map(|it| integer_of(it).unwrap_or(0)).collect();
    if values.is_empty() {
        out.invalid(path.clone(), "at least one value is required");
    } else if values.len() > 255 {
        out.too_many(path.clone(), values.len(), 255);
    }
    let mut seen = BTreeSet::new();
    for (position, code) in values.iter().enumerate() {
        if operator == "In" && *code == 0 {
            out.invalid(path.at(position), "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            out.duplicate(path.at(position), &code.to_string());
        }
    }
    if !values.is_sorted() {
        out.invalid(path, "must be ordered");
    }
}

fn success_policy(spec: &Value, policy: &Value, path: &FieldPath, out: &mut Causes) {
    let rules = list(policy, "rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        out.required(path.clone(), detail);
    }
    if rules.len() > 20 {
        out.too_many(path.clone(), rules.len(), 20);
    }
    let completions = integer(spec, "completions").unwrap_or(0);
    for (position, rule) in rules.iter().enumerate() {
        let path = path.at(position);
        let (count, indexes) = (
            integer(rule, "succeededCount"),
            optional_text(rule, "succeededIndexes"),
        );
        if count.is_none() && indexes.is_none() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            out.required(path.clone(), detail);
        }
        let mut total = 0;
        if let Some(indexes) = indexes {
            let field = path.child("succeededIndexes");
            if indexes.len() > INDEXES_MAX_BYTES {
                out.too_long(field.clone(), INDEXES_MAX_BYTES);
            }
            match count_indexes(indexes, completions) {
                Some(count) => total = count,
                None => out.invalid(field, "must be increasing indexes and intervals"),
            }
        }
        if let Some(count) = count {
            let is_over = count > completions || indexes.is_some() && count > total;
            if count < 0 || is_over {
                let detail = "must not be negative, and at most the number of indexes";
                out.invalid(path.child("succeededCount"), detail);
            }
        }
    }
}

/// The number of indexes in a list of intervals. `None` if it is not valid.
fn count_indexes(text: &str, completions: i64) -> Option<i64> {
    let mut last: Option<i64> = None;
    let mut total: i64 = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval.split_once('-').unwrap_or((interval, interval));
        let is_interval = interval.contains('-');
        let (first, end): (i64, i64) = (first.parse().ok()?, end.parse().ok()?);
        let is_ordered = !is_interval || first < end;
        if !is_ordered || end >= completions || last.is_some_and(|it| it >= first) {
            return None;
        }
        total = total.checked_add(end.checked_sub(first)?.checked_add(1)?)?;
        last = Some(end);
    }
    Some(total)
}
