//! Admission policies and their bindings, as `k8s.io/kubernetes/pkg/apis/admissionregistration/validation`.

use super::causes::{Below, Causes};
use super::fields::{is_set, list, optional_text, set, text, texts, value};
use super::labels::{LabelValues, validate_selector};
use super::webhooks::{match_conditions, validate_rule};
use crate::admission_policy::{compile_mutating_policy, compile_validating_policy};
use crate::cel::reserved_words::RESERVED_WORDS;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: &[&str] = &["Deny", "Allow"];
const PATCH_TYPES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];

/// The operations that a mutating policy may match.
const MUTATED_OPERATIONS: &[&str] = &["CREATE", "UPDATE"];

/// The most audit annotations of a policy.
const ANNOTATIONS_MAX: usize = 20;

/// The longest expression of an audit annotation, in bytes.
const ANNOTATION_MAX_BYTES: usize = 5 * 1024;

/// Validates a `ValidatingAdmissionPolicy`.
pub(super) fn validate_validating(object: &Value, out: &mut Causes) {
    let (spec, path) = (value(object, "spec"), FieldPath::new("spec"));
    validate_policy(spec, &path, out);
    let validations = list(spec, "validations");
    let annotations = list(spec, "auditAnnotations");
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        out.required(path.child("validations"), detail);
        out.required(path.child("auditAnnotations"), detail);
    }
    for (position, validation) in validations.iter().enumerate() {
        validate_validation(validation, &path.child("validations").at(position), out);
    }
    let name = text(value(object, "metadata"), "name");
    validate_annotations(name, annotations, &path.child("auditAnnotations"), out);
    compile(object, compile_validating_policy(object), out);
}

/// Validates a `MutatingAdmissionPolicy`.
pub(super) fn validate_mutating(object: &Value, out: &mut Causes) {
    let (spec, path) = (value(object, "spec"), FieldPath::new("spec"));
    validate_policy(spec, &path, out);
    let rules = value(spec, "matchConstraints");
    mutated_operations(rules, &path.child("matchConstraints"), out);
    let mutations = list(spec, "mutations");
    if mutations.is_empty() {
        let detail = "mutations must contain at least one item";
        out.required(path.child("mutations"), detail);
    }
    for (position, mutation) in mutations.iter().enumerate() {
        validate_mutation(mutation, &path.child("mutations").at(position), out);
    }
    let field = path.child("reinvocationPolicy");
    match text(spec, "reinvocationPolicy") {
        "" => out.required(field, ""),
        policy => out.one_of(field, policy, REINVOCATION_POLICIES),
    }
    compile(object, compile_mutating_policy(object), out);
}

/// Validates a binding.
pub(super) fn validate_binding(object: &Value, is_mutating: bool, out: &mut Causes) {
    let (spec, path) = (value(object, "spec"), FieldPath::new("spec"));
    let policy = text(spec, "policyName");
    let field = path.child("policyName");
    if policy.is_empty() {
        out.required(field, "");
    } else {
        out.reasons(&field, policy, names::dns1123_subdomain(policy));
    }
    if let Some(reference) = set(spec, "paramRef") {
        validate_param_ref(reference, &path.child("paramRef"), out);
    }
    if let Some(resources) = set(spec, "matchResources") {
        let path = path.child("matchResources");
        validate_match_resources(resources, &path, out);
        if is_mutating {
            mutated_operations(resources, &path, out);
        }
    }
    if !is_mutating {
        let actions = texts(spec, "validationActions");
        validate_actions(&actions, &path.child("validationActions"), out);
    }
}

/// The parts that both kinds of policies have.
fn validate_policy(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let failure = optional_text(spec, "failurePolicy");
    out.optional(path.child("failurePolicy"), failure, FAILURE_POLICIES);
    if let Some(kind) = set(spec, "paramKind") {
        validate_param_kind(kind, &path.child("paramKind"), out);
    }
    let field = path.child("matchConstraints");
    match set(spec, "matchConstraints") {
        None => out.required(field, ""),
        Some(constraints) => {
            validate_match_resources(constraints, &field, out);
            if list(constraints, "resourceRules").is_empty() {
                out.required(field.child("resourceRules"), "");
            }
        }
    }
    // The expressions are compiled with the others of the policy.
    match_conditions(spec, |_| Ok(()), &path.child("matchConditions"), out);
    for (position, variable) in list(spec, "variables").iter().enumerate() {
        let path = path.child("variables").at(position);
        let name = text(variable, "name");
        if name.trim().is_empty() {
            out.required(path.child("name"), "name is not specified");
        } else if !is_identifier(name) {
            out.invalid(path.child("name"), "must be a valid CEL identifier");
        }
        required_expression(variable, "expression", &path, out);
    }
}

fn is_identifier(name: &str) -> bool {
    let mut signs = name.chars();
    signs
        .next()
        .is_some_and(|it| it == '_' || it.is_ascii_alphabetic())
        && signs.all(|it| it == '_' || it.is_ascii_alphanumeric())
        && !RESERVED_WORDS.contains(&name)
}

fn required_expression(object: &Value, key: &'static str, path: &FieldPath, out: &mut Causes) {
    if text(object, key).trim().is_empty() {
        out.required(path.child(key), format!("{key} is not specified"));
    }
}

/// Adds the expressions that do not compile. Those that are not specified are reported already.
fn compile(object: &Value, problems: Vec<(FieldPath, String)>, out: &mut Causes) {
    for (field, reason) in problems {
        let text = object.pointer(&field.pointer()).and_then(Value::as_str);
        if text.is_some_and(|it| !it.trim().is_empty()) {
            out.invalid(field, reason);
        }
    }
}

fn validate_param_kind(kind: &Value, path: &FieldPath, out: &mut Causes) {
    let field = path.child("apiVersion");
    let version = text(kind, "apiVersion");
    match names::parse_group_version(version) {
        _ if version.is_empty() => out.required(field, ""),
        None => out.invalid(field, "unexpected GroupVersion string"),
        Some((group, version)) => {
            if !group.is_empty() {
                out.reasons(&field, group, names::dns1123_subdomain(group));
            }
            if version.is_empty() {
                out.invalid(field, "version must be specified");
            } else {
                out.reasons(&field, version, names::dns1035_label(version));
            }
        }
    }
    let name = text(kind, "kind");
    let field = path.child("kind");
    if name.is_empty() {
        out.required(field, "");
    } else {
        out.reasons(&field, name, names::dns1035_label(&name.to_lowercase()));
    }
}

fn validate_match_resources(resources: &Value, path: &FieldPath, out: &mut Causes) {
    let policy = optional_text(resources, "matchPolicy");
    out.optional(path.child("matchPolicy"), policy, MATCH_POLICIES);
    for key in ["namespaceSelector", "objectSelector"] {
        let selector = value(resources, key);
        validate_selector(selector, LabelValues::Validated, &path.child(key), out);
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (position, rule) in list(resources, key).iter().enumerate() {
            let path = path.child(key).at(position);
            let mut seen = BTreeSet::new();
            for (position, name) in texts(rule, "resourceNames").into_iter().enumerate() {
                let field = path.child("resourceNames").at(position);
                out.reasons(&field, name, names::path_segment(name, false));
                if !seen.insert(name) {
                    out.duplicate(field, name);
                }
            }
            validate_rule(rule, &path, out);
        }
    }
}

/// A mutating policy matches only requests that create or update an object.
fn mutated_operations(resources: &Value, path: &FieldPath, out: &mut Causes) {
    for rule in list(resources, "resourceRules") {
        for operation in texts(rule, "operations") {
            if !MUTATED_OPERATIONS.contains(&operation) {
                let field = path.child("resourceRules.operations");
                out.not_supported(field, operation, MUTATED_OPERATIONS);
            }
        }
    }
}

fn validate_validation(validation: &Value, path: &FieldPath, out: &mut Causes) {
    required_expression(validation, "expression", path, out);
    for key in ["messageExpression", "message"] {
        let written = text(validation, key);
        if !written.is_empty() && written.trim().is_empty() {
            out.invalid(path.child(key), "must be non-empty if specified");
        }
    }
    if text(validation, "message").trim().contains(['\n', '\r']) {
        out.invalid(path.child("message"), "must not contain line breaks");
    }
    let reason = optional_text(validation, "reason");
    out.optional(path.child("reason"), reason, REASONS);
}

fn validate_annotations(name: &str, annotations: &[Value], path: &FieldPath, out: &mut Causes) {
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        out.invalid(path.clone(), detail);
    }
    let mut seen = BTreeSet::new();
    for (position, annotation) in annotations.iter().enumerate() {
        let path = path.at(position);
        let key = text(annotation, "key");
        let field = path.child("key");
        if name.is_empty() {
            out.invalid(field.clone(), "requires metadata.name be non-empty");
        } else {
            let full = format!("{name}/{key}");
            out.reasons(&field, &full, names::qualified_name(&full));
        }
        required_expression(annotation, "valueExpression", &path, out);
        if text(annotation, "valueExpression").trim().len() > ANNOTATION_MAX_BYTES {
            let detail = format!("must not exceed {ANNOTATION_MAX_BYTES} bytes in length");
            out.required(path.child("valueExpression"), detail);
        }
        if !seen.insert(key) {
            out.duplicate(field, key);
        }
    }
}

fn validate_mutation(mutation: &Value, path: &FieldPath, out: &mut Causes) {
    let field = path.child("patchType");
    let (own, other, kind) = match text(mutation, "patchType") {
        "" => return out.required(field, ""),
        "JSONPatch" => ("jsonPatch", "applyConfiguration", "JSONPatch"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", "ApplyConfiguration"),
        other => return out.not_supported(field, other, PATCH_TYPES),
    };
    match set(mutation, own) {
        None => {
            let detail = format!("must be specified when patchType is {kind}");
            out.required(path.child(own), detail);
        }
        Some(found) if text(found, "expression").trim().is_empty() => {
            out.required(path.child(own).child("expression"), "");
        }
        Some(_) => {}
    }
    if is_set(mutation, other) {
        let detail = format!("must not be specified when patchType is {kind}");
        out.invalid(path.child(other), detail);
    }
}

fn validate_param_ref(reference: &Value, path: &FieldPath, out: &mut Causes) {
    let name = text(reference, "name");
    let selector = set(reference, "selector");
    if !name.is_empty() {
        let field = path.child("name");
        out.reasons(&field, name, names::path_segment(name, false));
    }
    if let Some(selector) = selector {
        let field = path.child("selector");
        validate_selector(selector, LabelValues::Validated, &field, out);
    }
    match (name.is_empty(), selector.is_some()) {
        (false, true) => {
            for key in ["name", "selector"] {
                out.forbidden(path.child(key), "name and selector are mutually exclusive");
            }
        }
        (true, false) => {
            out.required(path.clone(), "one of name or selector must be specified");
        }
        _ => {}
    }
    let field = path.child("parameterNotFoundAction");
    match text(reference, "parameterNotFoundAction") {
        "" => out.required(field, ""),
        action => out.one_of(field, action, NOT_FOUND_ACTIONS),
    }
}

fn validate_actions(actions: &[&str], path: &FieldPath, out: &mut Causes) {
    let mut seen = BTreeSet::new();
    for (position, action) in actions.iter().enumerate() {
        out.one_of(path.at(position), action, ACTIONS);
        if !seen.insert(*action) {
            out.duplicate(path.at(position), action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        out.invalid(path.clone(), detail);
    }
    if seen.is_empty() {
        out.required(path.clone(), "at least one validation action is required");
    }
}
