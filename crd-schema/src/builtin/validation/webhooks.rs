//! Configurations of admission webhooks.

use super::causes::{Below, Causes};
use super::fields::{integer, is_equal, list, optional_text, text, text_or, texts, value};
use super::labels::{LabelValues, is_valid_selector, validate_selector};
use super::webhook_clients::validate_client;
use crate::crd::{compile_condition, names};
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun", "Some", "Unknown"];

/// The names of configurations that are read from files.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// The stored webhooks, which permit values that are not valid.
#[derive(Clone, Copy)]
struct Stored<'a>(Option<&'a [Value]>);

impl Stored<'_> {
    fn all(self, check: impl Fn(&Value) -> bool) -> bool {
        self.0.is_none_or(|it| it.iter().all(check))
    }

    fn has_no_side_effects(self) -> bool {
        self.all(|it| NO_SIDE_EFFECTS.contains(&text(it, "sideEffects")))
    }

    fn has_known_versions(self) -> bool {
        self.all(|it| {
            let versions = texts(it, "admissionReviewVersions");
            versions.is_empty() || versions.iter().any(|it| REVIEW_VERSIONS.contains(it))
        })
    }

    fn has_unique_names(self) -> bool {
        let mut seen = BTreeSet::new();
        let hooks = self.0.unwrap_or_default().iter();
        hooks.map(|it| text(it, "name")).all(|it| seen.insert(it))
    }

    fn has_valid_selectors(self) -> bool {
        self.all(|it| {
            let mut selectors = ["namespaceSelector", "objectSelector"].iter();
            selectors.all(|key| is_valid_selector(value(it, key)))
        })
    }

    fn has_conditions_of(self, hooks: &[Value]) -> bool {
        let conditions = |it: &Value| value(it, "matchConditions").clone();
        self.0.is_some_and(|old| {
            old.len() == hooks.len()
                && old
                    .iter()
                    .zip(hooks)
                    .all(|(old, new)| is_equal(&conditions(old), &conditions(new)))
        })
    }
}

/// Validates the webhooks of a configuration.
pub(super) fn validate(object: &Value, old: Option<&Value>, is_mutating: bool, out: &mut Causes) {
    let stored = Stored(old.map(|it| list(it, "webhooks")));
    let hooks = list(object, "webhooks");
    let side_effects = if stored.has_no_side_effects() {
        NO_SIDE_EFFECTS
    } else {
        SIDE_EFFECTS
    };
    let values = if stored.has_valid_selectors() {
        LabelValues::Validated
    } else {
        LabelValues::AnyAccepted
    };
    let requires_unique = stored.has_unique_names();
    let mut seen = BTreeSet::new();
    for (position, hook) in hooks.iter().enumerate() {
        let path = FieldPath::new("webhooks").at(position);
        let name = text(hook, "name");
        qualified_name(name, &path.child("name"), out);
        for (position, rule) in list(hook, "rules").iter().enumerate() {
            validate_rule(rule, &path.child("rules").at(position), out);
        }
        policies(hook, side_effects, is_mutating, &path, out);
        for key in ["namespaceSelector", "objectSelector"] {
            validate_selector(value(hook, key), values, &path.child(key), out);
        }
        validate_client(
            value(hook, "clientConfig"),
            &path.child("clientConfig"),
            out,
        );
        if !stored.has_conditions_of(hooks) {
            match_conditions(hook, compile_condition, &path.child("matchConditions"), out);
        }
        review_versions(hook, stored.has_known_versions(), &path, out);
        if requires_unique && !name.is_empty() && !seen.insert(name) {
            out.duplicate(path.child("name"), name);
        }
    }
    if old.is_none() && text(value(object, "metadata"), "name").ends_with(STATIC_SUFFIX) {
        out.invalid(FieldPath::new("metadata.name"), "the suffix is reserved");
    }
}

fn qualified_name(name: &str, path: &FieldPath, out: &mut Causes) {
    if name.is_empty() {
        out.required(path.clone(), "");
    } else if !names::dns1123_subdomain(name).is_empty() || name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        out.invalid(path.clone(), detail);
    }
}

fn policies(
    hook: &Value,
    side_effects: &[&str],
    is_mutating: bool,
    path: &FieldPath,
    out: &mut Causes,
) {
    let failure = optional_text(hook, "failurePolicy");
    out.optional(path.child("failurePolicy"), failure, &["Fail", "Ignore"]);
    let matching = optional_text(hook, "matchPolicy");
    out.optional(
        path.child("matchPolicy"),
        matching,
        &["Equivalent", "Exact"],
    );
    let field = path.child("sideEffects");
    match optional_text(hook, "sideEffects") {
        None => out.required(
            field,
            format!("must specify one of {}", side_effects.join(", ")),
        ),
        Some(effects) => out.one_of(field, effects, side_effects),
    }
    let timeout = integer(hook, "timeoutSeconds");
    if timeout.is_some_and(|it| !(1..=30).contains(&it)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        out.invalid(path.child("timeoutSeconds"), detail);
    }
    if is_mutating {
        let policy = optional_text(hook, "reinvocationPolicy");
        let field = path.child("reinvocationPolicy");
        out.optional(field, policy, &["IfNeeded", "Never"]);
    }
}

/// Validates a rule with operations.
pub(super) fn validate_rule(rule: &Value, path: &FieldPath, out: &mut Causes) {
    for key in ["operations", "apiGroups", "apiVersions"] {
        let all = texts(rule, key);
        let path = path.child(key);
        if all.is_empty() {
            out.required(path.clone(), "");
        }
        if all.len() > 1 && all.contains(&"*") {
            out.invalid(path, "if '*' is present, must not specify others");
        }
    }
    for (position, operation) in texts(rule, "operations").iter().enumerate() {
        out.one_of(path.child("operations").at(position), operation, OPERATIONS);
    }
    for (position, version) in texts(rule, "apiVersions").iter().enumerate() {
        out.not_empty(path.child("apiVersions").at(position), version);
    }
    resources(&texts(rule, "resources"), &path.child("resources"), out);
    let scope = text_or(rule, "scope", "*");
    let scopes = ["*", "Cluster", "Namespaced"];
    match optional_text(rule, "scope") {
        Some("") => out.not_supported(path.child("scope"), "", &scopes),
        _ => out.one_of(path.child("scope"), scope, &scopes),
    }
}

fn resources(all: &[&str], path: &FieldPath, out: &mut Causes) {
    if all.is_empty() {
        out.required(path.clone(), "");
    }
    let (mut whole, mut every) = (BTreeSet::new(), BTreeSet::new());
    // As in the API server, only the last resource without a subresource counts.
    let mut has_plain = false;
    for (position, resource) in all.iter().enumerate() {
        if resource.is_empty() {
            out.required(path.at(position), "");
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            has_plain = *resource != "*";
            continue;
        };
        if whole.contains(name) || every.contains(sub) {
            let detail = "must not be specified beside a wildcard that has it";
            out.invalid(path.at(position), detail);
        }
        if sub == "*" {
            whole.insert(name);
        }
        if name == "*" {
            every.insert(sub);
        }
    }
    let is_mixed = all.len() > 1 && all.contains(&"*/*") || all.contains(&"*") && has_plain;
    if is_mixed {
        let detail = "if '*' or '*/*' is present, must not specify other resources";
        out.invalid(path.clone(), detail);
    }
}

fn review_versions(hook: &Value, requires_known: bool, path: &FieldPath, out: &mut Causes) {
    let path = path.child("admissionReviewVersions");
    let versions = texts(hook, "admissionReviewVersions");
    if versions.is_empty() {
        out.required(path, "must specify one of v1, v1beta1");
        return;
    }
    for (position, version) in versions.iter().enumerate() {
        if versions.iter().take(position).any(|it| it == version) {
            out.invalid(path.at(position), "duplicate version");
        } else {
            out.reasons(&path.at(position), version, names::dns1035_label(version));
        }
    }
    if requires_known && !versions.iter().any(|it| REVIEW_VERSIONS.contains(it)) {
        out.invalid(path, "must include at least one of v1, v1beta1");
    }
}

/// Validates the match conditions of a webhook or a policy.
pub(super) fn match_conditions(
    hook: &Value,
    compile: fn(&str) -> Result<(), String>,
    path: &FieldPath,
    out: &mut Causes,
) {
    let conditions = list(hook, "matchConditions");
    if conditions.len() > 64 {
        out.too_many(path.clone(), conditions.len(), 64);
    }
    let mut seen = BTreeSet::new();
    for (position, condition) in conditions.iter().enumerate() {
        let path = path.at(position);
        let expression = text(condition, "expression").trim();
        let field = path.child("expression");
        if expression.is_empty() {
            out.required(field, "");
        } else if let Err(reason) = compile(expression) {
            out.invalid(field, reason);
        }
        let name = text(condition, "name");
        if name.is_empty() {
            out.required(path.child("name"), "");
        } else {
            out.reasons(&path.child("name"), name, names::qualified_name(name));
            if !seen.insert(name) {
                out.duplicate(path.child("name"), name);
            }
        }
    }
}
