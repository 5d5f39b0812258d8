//! Kinds of the group `apps`.

use super::rollout::{int_or_percent, is_over_100_percent, number_of};
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{integer, is_equal, list, set, text, text_or, value};
use crate::builtin::validation::labels::{
    LabelValues, Matcher, has_invalid_value, is_empty, validate_selector,
};
use crate::builtin::validation::pod_spec::{claim_spec, validate_template};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value, json};

/// Validates that a field of an update is that of the stored object.
pub(super) fn immutable(
    new: &Value,
    old: &Value,
    key: &'static str,
    path: &FieldPath,
    out: &mut Causes,
) {
    if !is_equal(value(new, key), value(old, key)) {
        out.invalid(path.child(key), "field is immutable");
    }
}

/// Validates the selector. Returns the set of labels that it matches.
fn selector<'a>(spec: &'a Value, path: &FieldPath, out: &mut Causes) -> Option<Matcher<'a>> {
    let field = path.child("selector");
    match set(spec, "selector") {
        None => out.required(field.clone(), ""),
        Some(selector) => {
            validate_selector(selector, LabelValues::Validated, &field, out);
            if is_empty(selector) {
                out.invalid(field.clone(), "empty selector is invalid");
            }
        }
    }
    let matcher = Matcher::of(spec, "selector");
    if matcher.is_none() {
        out.invalid(field, "invalid label selector");
    }
    matcher
}

fn labels_match(matcher: Matcher<'_>, spec: &Value, path: &FieldPath, out: &mut Causes) {
    let metadata = value(value(spec, "template"), "metadata");
    if !matcher.is_empty() && !matcher.matches(metadata) {
        let field = path.child("template.metadata.labels");
        out.invalid(field, "`selector` does not match template `labels`");
    }
}

/// Validates that pods of a template restart and have no deadline.
fn always_restarts(spec: &Value, path: &FieldPath, out: &mut Causes) {
    let pod = value(value(spec, "template"), "spec");
    let path = path.child("template.spec");
    let policy = text_or(pod, "restartPolicy", "Always");
    out.one_of(path.child("restartPolicy"), policy, &["Always"]);
    if integer(pod, "activeDeadlineSeconds").is_some() {
        out.forbidden(path.child("activeDeadlineSeconds"), "is not supported");
    }
}

fn nonnegative(spec: &Value, keys: &[&'static str], path: &FieldPath, out: &mut Causes) {
    for key in keys {
        out.nonnegative(path.child(key), integer(spec, key));
    }
}

fn template<'a>(spec: &'a Value, old: Option<&'a Value>) -> (&'a Value, Option<&'a Value>) {
    (value(spec, "template"), old.map(|it| value(it, "template")))
}

/// Validates a `ReplicaSet`, or what a Deployment has in common with it.
pub(in super::super) fn validate_replica_set(
    object: &Value,
    old: Option<&Value>,
    out: &mut Causes,
) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    nonnegative(spec, &["replicas", "minReadySeconds"], &path, out);
    if let Some(matcher) = selector(spec, &path, out) {
        labels_match(matcher, spec, &path, out);
        let (template, old) = template(spec, old);
        validate_template(template, old, &path.child("template"), out);
        always_restarts(spec, &path, out);
    }
    if let Some(old) = old {
        immutable(spec, old, "selector", &path, out);
    }
}

/// Validates a Deployment.
pub(in super::super) fn validate_deployment(object: &Value, old: Option<&Value>, out: &mut Causes) {
    validate_replica_set(object, old, out);
    let spec = value(object, "spec");
    let path = FieldPath::new("spec");
    let limits = ["revisionHistoryLimit", "progressDeadlineSeconds"];
    nonnegative(spec, &limits, &path, out);
    let deadline = integer(spec, "progressDeadlineSeconds").unwrap_or(600);
    if deadline <= integer(spec, "minReadySeconds").unwrap_or(0) {
        let field = path.child("progressDeadlineSeconds");
        out.invalid(field, "must be greater than minReadySeconds");
    }
    let strategy = value(spec, "strategy");
    let path = path.child("strategy");
    let rolling = path.child("rollingUpdate");
    match text_or(strategy, "type", "RollingUpdate") {
        "Recreate" => {
            if set(strategy, "rollingUpdate").is_some() {
                out.forbidden(
                    rolling,
                    "may not be specified when strategy `type` is 'Recreate'",
                );
            }
        }
        "RollingUpdate" => {
            let default = json!("25%");
            let update = value(strategy, "rollingUpdate");
            let or_default = |key| set(update, key).unwrap_or(&default);
            let (unavailable, surge) = (or_default("maxUnavailable"), or_default("maxSurge"));
            int_or_percent(unavailable, &rolling.child("maxUnavailable"), out);
            int_or_percent(surge, &rolling.child("maxSurge"), out);
            if number_of(unavailable) == 0 && number_of(surge) == 0 {
                let field = rolling.child("maxUnavailable");
                out.invalid(field, "may not be 0 when `maxSurge` is 0");
            }
            is_over_100_percent(unavailable, &rolling.child("maxUnavailable"), out);
        }
        other => out.not_supported(path, other, &["Recreate", "RollingUpdate"]),
    }
}

/// Validates a `DaemonSet`.
pub(in super::super) fn validate_daemon_set(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    let accepts_values = old.is_some_and(|it| has_invalid_value(value(it, "selector")));
    let values = if accepts_values {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    let field = path.child("selector");
    validate_selector(value(spec, "selector"), values, &field, out);
    let metadata = value(value(spec, "template"), "metadata");
    if Matcher::of(spec, "selector").is_some_and(|it| !it.matches(metadata)) {
        let field = path.child("template.metadata.labels");
        out.invalid(field, "`selector` does not match template `labels`");
    }
    if set(spec, "selector").is_some_and(is_empty) {
        out.invalid(field, "empty selector is invalid for daemonset");
    }
    let (template, old_template) = template(spec, old);
    validate_template(template, old_template, &path.child("template"), out);
    always_restarts(spec, &path, out);
    nonnegative(
        spec,
        &["minReadySeconds", "revisionHistoryLimit"],
        &path,
        out,
    );
    if let Some(old) = old {
        immutable(spec, old, "selector", &path, out);
    }
    let strategy = value(spec, "updateStrategy");
    let path = path.child("updateStrategy");
    match text_or(strategy, "type", "RollingUpdate") {
        "OnDelete" => {}
        "RollingUpdate" => daemon_rollout(
            value(strategy, "rollingUpdate"),
            &path.child("rollingUpdate"),
            out,
        ),
        other => out.not_supported(path, other, &["RollingUpdate", "OnDelete"]),
    }
}

fn daemon_rollout(update: &Value, path: &FieldPath, out: &mut Causes) {
    let (one, zero) = (json!(1), json!(0));
    let unavailable = set(update, "maxUnavailable").unwrap_or(&one);
    let surge = set(update, "maxSurge").unwrap_or(&zero);
    for (key, number) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
        let field = path.child(key);
        int_or_percent(number, &field, out);
        is_over_100_percent(number, &field, out);
    }
    match (number_of(unavailable) != 0, number_of(surge) != 0) {
        (true, true) => {
            let field = path.child("maxSurge");
            out.invalid(field, "may not be set when maxUnavailable is non-zero");
        }
        (false, false) => {
            let field = path.child("maxUnavailable");
            out.required(field, "cannot be 0 when maxSurge is 0");
        }
        _ => {}
    }
}

/// The template with the volumes of the claims, and without names of hosts.
fn stateful_template(spec: &Value) -> Value {
    let mut template = value(spec, "template").clone();
    let claims = list(spec, "volumeClaimTemplates").iter();
    let claims: Vec<&str> = claims
        .map(|it| text(value(it, "metadata"), "name"))
        .collect();
    let Some(Value::Object(pod)) = template.get_mut("spec") else {
        return template;
    };
    pod.remove("hostname");
    pod.remove("subdomain");
    if !claims.is_empty() {
        let mut volumes: Vec<Value> = Vec::new();
        for name in &claims {
            let volume = json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
            if !volumes.contains(&volume) {
                volumes.push(volume);
            }
        }
        let own = list(value(value(spec, "template"), "spec"), "volumes");
        let own = own.iter().filter(|it| !claims.contains(&text(it, "name")));
        volumes.extend(own.cloned());
        pod.insert("volumes".to_owned(), Value::Array(volumes));
    }
    template
}

/// Validates a `StatefulSet`.
pub(in super::super) fn validate_stateful_set(
    object: &Value,
    old: Option<&Value>,
    out: &mut Causes,
) {
    let (spec, old) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let skips_template = old.is_some_and(|old| {
        let mut causes = Causes::default();
        stateful_spec(old, Some(old), false, &mut causes);
        causes.len() > 0
    });
    stateful_spec(spec, old, skips_template, out);
    let Some(old) = old else {
        return;
    };
    let path = FieldPath::new("spec");
    immutable(spec, old, "selector", &path, out);
    immutable(spec, old, "serviceName", &path, out);
    let claims = |it: &Value| {
        let claims = list(it, "volumeClaimTemplates").iter();
        Value::Array(claims.map(defaulted_claim).collect())
    };
    if !is_equal(&claims(spec), &claims(old)) {
        out.invalid(path.child("volumeClaimTemplates"), "field is immutable");
    }
    let policy = |it| text_or(it, "podManagementPolicy", "OrderedReady");
    if policy(spec) != policy(old) {
        out.invalid(path.child("podManagementPolicy"), "field is immutable");
    }
}

/// A claim with the fields that default.
fn defaulted_claim(claim: &Value) -> Value {
    let mut fields: Map<String, Value> = claim.as_object().cloned().unwrap_or_default();
    for key in ["apiVersion", "kind", "status"] {
        fields.remove(key);
    }
    if let Some(Value::Object(spec)) = fields.get_mut("spec") {
        spec.entry("volumeMode")
            .or_insert_with(|| "Filesystem".into());
    }
    Value::Object(fields)
}

fn stateful_spec(spec: &Value, old: Option<&Value>, skips_template: bool, out: &mut Causes) {
    let path = FieldPath::new("spec");
    if !matches!(
        text_or(spec, "podManagementPolicy", "OrderedReady"),
        "OrderedReady" | "Parallel"
    ) {
        let field = path.child("podManagementPolicy");
        out.invalid(field, "must be 'OrderedReady' or 'Parallel'");
    }
    stateful_strategy(
        value(spec, "updateStrategy"),
        &path.child("updateStrategy"),
        out,
    );
    let retention = value(spec, "persistentVolumeClaimRetentionPolicy");
    for key in ["whenDeleted", "whenScaled"] {
        let field = path
            .child("persistentVolumeClaimRetentionPolicy")
            .field(key);
        let policy = text_or(retention, key, "Retain");
        out.one_of(field, policy, &["Retain", "Delete"]);
    }
    if old.is_none() {
        for (position, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            let path = path
                .child("volumeClaimTemplates")
                .at(position)
                .field("spec");
            claim_spec(value(claim, "spec"), None, &path, out);
        }
        let service = text(spec, "serviceName");
        if !service.is_empty() {
            let field = path.child("serviceName");
            out.reasons(&field, service, names::dns1123_label(service));
        }
    }
    nonnegative(spec, &["replicas", "minReadySeconds"], &path, out);
    let start = integer(value(spec, "ordinals"), "start");
    out.nonnegative(path.child("ordinals.start"), start);
    let matcher = selector(spec, &path, out);
    if let Some(matcher) = matcher {
        labels_match(matcher, spec, &path, out);
        let template = stateful_template(spec);
        if !skips_template {
            let old = old.map(|it| value(it, "template"));
            validate_template(&template, old, &path.child("template"), out);
        }
    }
    always_restarts(spec, &path, out);
}

fn stateful_strategy(strategy: &Value, path: &FieldPath, out: &mut Causes) {
    let update = set(strategy, "rollingUpdate");
    let path_of_update = path.child("rollingUpdate");
    match text_or(strategy, "type", "RollingUpdate") {
        "OnDelete" if update.is_some() => {
            out.invalid(
                path_of_update,
                "only allowed for updateStrategy 'RollingUpdate'",
            );
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            let update = update.unwrap_or(&Value::Null);
            let partition = integer(update, "partition");
            out.nonnegative(path_of_update.child("partition"), partition);
            if let Some(unavailable) = set(update, "maxUnavailable") {
                let field = path_of_update.child("maxUnavailable");
                int_or_percent(unavailable, &field, out);
                if number_of(unavailable) == 0 {
                    out.invalid(field.clone(), "cannot be 0");
                }
                is_over_100_percent(unavailable, &field, out);
            }
        }
        _ => out.invalid(path.clone(), "must be 'RollingUpdate' or 'OnDelete'"),
    }
}
