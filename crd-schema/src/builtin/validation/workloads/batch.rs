//! Jobs and `CronJob`s.

use super::apps::immutable;
use super::job_policies;
use super::schedule::{schedule_reasons, time_zone_reasons};
use crate::builtin::validation::causes::{Below, Causes};
use crate::builtin::validation::fields::{
    flag, integer, is_equal, list, optional_text, set, text, text_or, value,
};
use crate::builtin::validation::labels::{
    LabelValues, Matcher, has_invalid_value, validate_selector,
};
use crate::builtin::validation::pod_spec::validate_template;
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

/// The UID of a new Job. The API server generates it.
const UID: &str = "00000000-0000-0000-0000-000000000000";

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

fn object_at<'a>(
    fields: &'a mut Map<String, Value>,
    key: &str,
) -> Option<&'a mut Map<String, Value>> {
    let entry = fields.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut()
}

/// The name of a Job, also if it is generated.
fn name_of(object: &Value) -> String {
    let metadata = value(object, "metadata");
    match text(metadata, "name") {
        "" => {
            let prefix = text(metadata, "generateName").chars();
            format!("{}aaaaa", prefix.take(58).collect::<String>())
        }
        name => name.to_owned(),
    }
}

/// The UID of a Job; that of a new one is not known.
fn uid_of(object: &Value) -> &str {
    text_or(value(object, "metadata"), "uid", UID)
}

/// The spec of a new Job with its generated selector and labels.
fn with_selector(object: &Value) -> Option<Value> {
    let mut spec = match value(object, "spec") {
        Value::Null => Value::Object(Map::new()),
        spec => spec.clone(),
    };
    let fields = spec.as_object_mut()?;
    if fields.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return Some(spec);
    }
    let (name, uid) = (name_of(object), uid_of(object));
    let template = object_at(fields, "template")?;
    let metadata = object_at(template, "metadata")?;
    let labels = object_at(metadata, "labels")?;
    for key in NAME_LABELS {
        labels.entry(key).or_insert_with(|| name.clone().into());
    }
    for key in UID_LABELS {
        labels.entry(key).or_insert_with(|| uid.into());
    }
    let selector = object_at(fields, "selector")?;
    let labels = object_at(selector, "matchLabels")?;
    labels
        .entry("batch.kubernetes.io/controller-uid")
        .or_insert_with(|| uid.into());
    Some(spec)
}

/// Validates that labels and selector of a new Job are the generated ones.
fn generated_selector(object: &Value, spec: &Value, out: &mut Causes) {
    if flag(spec, "manualSelector") || set(spec, "selector").is_none() {
        return;
    }
    let (name, uid) = (name_of(object), uid_of(object));
    let path = FieldPath::new("spec.template.metadata.labels");
    let labels = value(value(value(spec, "template"), "metadata"), "labels");
    for (keys, expected) in [(UID_LABELS, uid), (NAME_LABELS, name.as_str())] {
        for key in keys {
            if optional_text(labels, key) != Some(expected) {
                out.invalid(path.entry(key), "must be that of the job");
            }
        }
    }
    let expected = serde_json::json!({"labels": {
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": name, "batch.kubernetes.io/job-name": name,
    }});
    let matcher = Matcher::of(spec, "selector");
    if matcher.is_some_and(|it| !it.matches(&expected)) {
        out.invalid(
            FieldPath::new("spec.selector"),
            "`selector` not auto-generated",
        );
    }
}

/// Validates a Job.
pub(in super::super) fn validate_job(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let path = FieldPath::new("spec");
    let spec = match old {
        None => with_selector(object).unwrap_or_default(),
        Some(_) => value(object, "spec").clone(),
    };
    let old_spec = old.map(|it| value(it, "spec"));
    if old.is_none() {
        generated_selector(object, &spec, out);
    }
    job_spec(&spec, old_spec, &path, out);
    let accepts_values = old_spec.is_some_and(|it| has_invalid_value(value(it, "selector")));
    let values = if accepts_values {
        LabelValues::AnyAccepted
    } else {
        LabelValues::Validated
    };
    match set(&spec, "selector") {
        None => out.required(path.child("selector"), ""),
        Some(selector) => validate_selector(selector, values, &path.child("selector"), out),
    }
    let metadata = value(value(&spec, "template"), "metadata");
    if Matcher::of(&spec, "selector").is_some_and(|it| !it.matches(metadata)) {
        let field = path.child("template.metadata.labels");
        out.invalid(field, "`selector` does not match template `labels`");
    }
    if let (Some(old), Some(old_spec)) = (old, old_spec) {
        job_update(&spec, old_spec, old, &path, out);
    }
    let completions = integer(&spec, "completions").filter(|it| *it > 0);
    if let Some(last) = completions
        .and_then(|it| it.checked_sub(1))
        .filter(|_| is_indexed(&spec))
    {
        let host = format!("{}-{last}", name_of(object));
        if !names::dns1123_label(&host).is_empty() {
            let field = FieldPath::new("metadata.name");
            out.invalid(
                field,
                format!("cannot create a pod with invalid DNS label: {host}"),
            );
        }
    }
}

fn is_indexed(spec: &Value) -> bool {
    text(spec, "completionMode") == "Indexed"
}

/// Validates what an update of a Job changes.
fn job_update(spec: &Value, old: &Value, stored: &Value, path: &FieldPath, out: &mut Causes) {
    let completions = |it| integer(it, "completions");
    if is_indexed(spec) {
        let is_changed = completions(spec) != completions(old);
        let parallelism = integer(spec, "parallelism").unwrap_or(1);
        if is_changed && completions(spec).is_some_and(|it| it != parallelism) {
            let field = path.child("completions");
            out.invalid(field, "can only be modified in tandem with parallelism");
        }
    } else {
        immutable(spec, old, "completions", path, out);
    }
    for key in [
        "selector",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        immutable(spec, old, key, path, out);
    }
    let mode = |it| text_or(it, "completionMode", "NonIndexed");
    if mode(spec) != mode(old) {
        out.invalid(path.child("completionMode"), "field is immutable");
    }
    let status = value(stored, "status");
    let conditions = list(status, "conditions").iter();
    let mut suspended = conditions.filter(|it| text(it, "status") == "True");
    let is_suspended = flag(old, "suspend");
    let may_change = is_suspended
        && (set(status, "startTime").is_none()
            || suspended.any(|it| text(it, "type") == "Suspended"))
        && integer(status, "active").unwrap_or(0) == 0;
    let (template, old_template) = (value(spec, "template"), value(old, "template"));
    let mut kept = old_template.clone();
    if may_change {
        copy_directives(template, &mut kept);
    }
    if is_suspended && may_change {
        copy_resources(template, &mut kept);
        if !is_equal(value(template, "spec"), value(&kept, "spec")) {
            out.invalid(path.child("template.spec"), "field is immutable");
        }
    } else if !is_equal(template, &kept) {
        out.invalid(path.child("template"), "field is immutable");
    }
}

/// Copies the scheduling directives that a suspended Job may change.
fn copy_directives(template: &Value, kept: &mut Value) {
    let Some(kept) = kept.as_object_mut() else {
        return;
    };
    let metadata = value(template, "metadata");
    if let Some(kept) = object_at(kept, "metadata") {
        for key in ["labels", "annotations"] {
            kept.insert(key.to_owned(), value(metadata, key).clone());
        }
    }
    let spec = value(template, "spec");
    if let Some(kept) = object_at(kept, "spec") {
        for key in ["nodeSelector", "tolerations", "schedulingGates"] {
            kept.insert(key.to_owned(), value(spec, key).clone());
        }
        copy_node_affinity(set(spec, "affinity"), kept);
    }
}

/// Copies the node affinity. Without any other affinity, absent and empty affinities are the same.
fn copy_node_affinity(affinity: Option<&Value>, kept: &mut Map<String, Value>) {
    let was_set = kept.get("affinity").is_some_and(|it| !it.is_null());
    if affinity.is_none() && !was_set {
        return;
    }
    let Some(fields) = object_at(kept, "affinity") else {
        return;
    };
    let node = affinity.and_then(|it| set(it, "nodeAffinity")).cloned();
    match node {
        Some(node) => fields.insert("nodeAffinity".to_owned(), node),
        None => fields.remove("nodeAffinity"),
    };
    if affinity.is_none() && fields.values().all(Value::is_null) {
        kept.remove("affinity");
    }
}

fn copy_resources(template: &Value, kept: &mut Value) {
    for key in ["containers", "initContainers"] {
        let new = list(value(template, "spec"), key);
        let kept = kept.get_mut("spec").and_then(|it| it.get_mut(key));
        let Some(kept) = kept.and_then(Value::as_array_mut) else {
            continue;
        };
        if kept.len() != new.len() {
            continue;
        }
        for (kept, new) in kept.iter_mut().zip(new) {
            if text(kept, "name") == text(new, "name")
                && let Some(kept) = kept.as_object_mut()
            {
                kept.insert("resources".to_owned(), value(new, "resources").clone());
            }
        }
    }
}

/// Validates the spec of a Job, or of the template of a Job.
fn job_spec(spec: &Value, old: Option<&Value>, path: &FieldPath, out: &mut Causes) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        out.nonnegative(path.child(key), integer(spec, key));
    }
    job_policies::validate(spec, path, out);
    let old = old.map(|it| value(it, "template"));
    validate_template(value(spec, "template"), old, &path.child("template"), out);
    let field = path.child("template.spec.restartPolicy");
    match text(value(value(spec, "template"), "spec"), "restartPolicy") {
        "" | "Always" => out.required(field, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if set(spec, "podFailurePolicy").is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            out.invalid(field, detail);
        }
        policy => out.one_of(field, policy, &["OnFailure", "Never"]),
    }
}

/// Validates a `CronJob`.
pub(in super::super) fn validate_cron_job(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let (spec, old_spec) = (value(object, "spec"), old.map(|it| value(it, "spec")));
    let path = FieldPath::new("spec");
    let schedule = text(spec, "schedule");
    let field = path.child("schedule");
    let zone = optional_text(spec, "timeZone");
    if schedule.is_empty() {
        out.required(field, "");
    } else {
        let accepts_zone = old_spec.is_some_and(|it| text(it, "schedule").contains("TZ"));
        out.reasons(&field, schedule, schedule_reasons(schedule));
        if schedule.contains("TZ") && (!accepts_zone || zone.is_some()) {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            out.invalid(field, detail);
        }
    }
    if let Some(zone) =
        zone.filter(|_| old_spec.is_none_or(|it| optional_text(it, "timeZone") != zone))
    {
        out.reasons(&path.child("timeZone"), zone, time_zone_reasons(zone));
    }
    let policy = text_or(spec, "concurrencyPolicy", "Allow");
    let policies = ["Allow", "Forbid", "Replace"];
    out.one_of(path.child("concurrencyPolicy"), policy, &policies);
    for key in [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ] {
        out.nonnegative(path.child(key), integer(spec, key));
    }
    let job = value(value(spec, "jobTemplate"), "spec");
    let old_job = old_spec.map(|it| value(value(it, "jobTemplate"), "spec"));
    let path = path.child("jobTemplate.spec");
    job_spec(job, old_job, &path, out);
    if set(job, "selector").is_some() {
        out.invalid(path.child("selector"), "`selector` will be auto-generated");
    }
    if flag(job, "manualSelector") {
        out.not_supported(path.child("manualSelector"), "true", &["nil", "false"]);
    }
    if old.is_none() && name_of(object).len() > 52 {
        out.invalid(
            FieldPath::new("metadata.name"),
            "must be no more than 52 bytes",
        );
    }
}
