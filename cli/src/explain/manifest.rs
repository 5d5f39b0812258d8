//! The Workload that a manifest becomes when it is submitted.

use crate::manifest_text::read_documents;
use anyhow::{Context, Error, anyhow};
use lockkeeper_api::foreign::kueue::convert;
use lockkeeper_api::labels;
use lockkeeper_controller::job_adapters::{KINDS, kind_name};
use lockkeeper_controller::{JobKey, manifest_of_job};
use serde_json::{Value, json};
use std::path::Path;

/// The uid of a job that does not exist yet.
const NEW_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Reads the only document of a file, and returns the manifest of the Workload for it. `namespace` is that of a document
/// without one.
pub(super) fn read_workload(file: &Path, namespace: Option<&str>) -> Result<Value, Error> {
    let shown = file.display();
    let documents = read_documents(file)?;
    let documents: Vec<Value> = documents.into_iter().filter(|it| !it.is_null()).collect();
    let count = documents.len();
    let [document] = <[Value; 1]>::try_from(documents)
        .map_err(|_| anyhow!("{shown}: expected one object, found {count}"))?;
    workload_of(document, namespace).with_context(|| shown.to_string())
}

fn workload_of(object: Value, namespace: Option<&str>) -> Result<Value, Error> {
    // Kueue's Workloads, and jobs with Kueue's labels.
    let converted = convert(&object).and_then(|it| it.object);
    let mut object = converted.unwrap_or(object);
    let text = |object: &Value, pointer: &str| {
        let value = object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let kind = text(&object, "/kind");
    let metadata = object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .ok_or_else(|| anyhow!("the object has no metadata"))?;
    metadata
        .entry("namespace")
        .or_insert_with(|| json!(namespace.unwrap_or("default")));
    let generated = metadata.get("generateName").and_then(Value::as_str);
    let generated = format!("{}new", generated.unwrap_or_default());
    metadata.entry("name").or_insert_with(|| json!(generated));
    if kind == "Workload" {
        return Ok(object);
    }
    metadata.insert("uid".to_owned(), json!(NEW_UID));
    let version = text(&object, "/apiVersion");
    let index = KINDS.iter().position(|it| {
        let resource = it.resource();
        resource.kind == kind && resource.api_version() == version && it.member_kind().is_none()
    });
    let index = index
        .filter(|it| kind_name(*it) != "Pod")
        .ok_or_else(|| anyhow!("{kind} of {version} is not a Job, a JobSet or a Workload"))?;
    let adapter = KINDS
        .get(index)
        .ok_or_else(|| anyhow!("the kind is not supported"))?;
    let job = adapter.parse(object).map_err(|error| anyhow!("{error}"))?;
    if job.queue.is_empty() {
        return Err(anyhow!(
            "{kind} {} names no queue; set its label {}",
            job.name,
            labels::QUEUE_NAME
        ));
    }
    let key = JobKey {
        kind: index,
        name: job.name.clone(),
    };
    manifest_of_job(&key, &job).ok_or_else(|| anyhow!("{kind} {} has no pods", job.name))
}
