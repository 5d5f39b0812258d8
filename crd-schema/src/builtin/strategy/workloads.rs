//! Job selectors and generations of daemon sets.

use crate::builtin::fields::{ensure, set, set_entry, text};
use serde_json::{Map, Value};

/// The labels of pods with the name of their job.
const JOB_NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Adds the labels that the selector of a job needs. Those with the uid of the job are not known here.
pub(super) fn generate_selector(object: &mut Value) {
    let name = object
        .get("metadata")
        .map_or("", |it| text(it, "name"))
        .to_owned();
    let Some(spec) = ensure(object, "spec") else {
        return;
    };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    if let Some(template) = ensure(spec, "template")
        && let Some(metadata) = ensure(template, "metadata")
        && let Some(labels) = ensure(metadata, "labels")
    {
        for label in JOB_NAME_LABELS {
            if labels.get(label).is_none() {
                set(labels, label, name.clone());
            }
        }
    }
    if let Some(selector) = ensure(spec, "selector") {
        crate::builtin::fields::default(selector, "matchLabels", Map::new());
    }
}

/// Counts the changes of a pod template in an annotation.
pub(super) fn set_template_generation(object: &mut Value, old: Option<&Value>) {
    let generation = |object: &Value| {
        let annotations = object.get("metadata")?.get("annotations")?;
        text(annotations, TEMPLATE_GENERATION).parse::<i64>().ok()
    };
    let generation = match old {
        None => generation(object).unwrap_or_default().max(1),
        Some(old) => {
            let template = |it: &Value| it.pointer("/spec/template").cloned();
            let stored = generation(old).unwrap_or_default();
            if template(object) == template(old) {
                stored
            } else {
                stored.saturating_add(1)
            }
        }
    };
    if let Some(metadata) = ensure(object, "metadata") {
        let text = generation.to_string();
        set_entry(metadata, "annotations", TEMPLATE_GENERATION, &text);
    }
}
