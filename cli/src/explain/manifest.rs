//! The Workload that a manifest becomes when it is submitted.

use crate::manifest_text::read_documents;
use crate::world_source::is_job_kind;
use anyhow::{Context, Error, anyhow};
use lockkeeper_api::foreign::kueue::convert;
use lockkeeper_api::{JobKind, labels};
use lockkeeper_controller::job_adapters::{JobKinds, POD};
use lockkeeper_controller::{JobKey, manifest_of_job};
use serde_json::{Value, json};
use std::path::Path;

/// The uid of a job that does not exist yet.
const NEW_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Reads the only document of a file that declares no kind of jobs, and returns the manifest of the Workload for it. `namespace` is
/// that of a document without one; `declared` has the declarations of the source.
pub(super) fn read_workload(
    file: &Path,
    namespace: Option<&str>,
    declared: &[Value],
) -> Result<Value, Error> {
    let shown = file.display();
    let documents = read_documents(file)?.into_iter();
    let documents = documents.filter(|it| !it.is_null());
    let (own, documents): (Vec<Value>, Vec<Value>) = documents.partition(is_job_kind);
    let count = documents.len();
    let [document] = <[Value; 1]>::try_from(documents)
        .map_err(|_| anyhow!("{shown}: expected one object, found {count}"))?;
    // Those of the file come last, and replace those of the source.
    let declared = declared.iter().chain(&own);
    workload_of(document, namespace, declared).with_context(|| shown.to_string())
}

fn workload_of<'a>(
    object: Value,
    namespace: Option<&str>,
    declared: impl Iterator<Item = &'a Value>,
) -> Result<Value, Error> {
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
    let kinds = job_kinds(declared, &kind)?;
    let index = (0..kinds.count()).find(|it| is_explained(&kinds, *it, &kind, &version));
    let index = index.ok_or_else(|| {
        anyhow!(
            "{kind} of {version} is not a Job, a JobSet or a Workload, and no JobKind declares it"
        )
    })?;
    let job = kinds
        .parse(index, object)
        .map_err(|error| anyhow!("{error}"))?;
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
    manifest_of_job(&kinds, &key, &job).ok_or_else(|| anyhow!("{kind} {} has no pods", job.name))
}

/// The kinds of jobs, with those that declare `kind`: a mistake in another declaration does not matter.
fn job_kinds<'a>(declared: impl Iterator<Item = &'a Value>, kind: &str) -> Result<JobKinds, Error> {
    let mut kinds = JobKinds::default();
    let text = |object: &'a Value, pointer| object.pointer(pointer).and_then(Value::as_str);
    for declaration in declared.filter(|it| text(it, "/spec/kind") == Some(kind)) {
        let name = text(declaration, "/metadata/name").unwrap_or_default();
        let read: JobKind = serde_json::from_value(declaration.clone())
            .with_context(|| format!("JobKind {name}"))?;
        let added = kinds.declare_object(&read);
        added.with_context(|| format!("JobKind {name}"))?;
    }
    Ok(kinds)
}

/// Whether a manifest of this kind becomes a Workload alone: a pod may be one of a group.
fn is_explained(kinds: &JobKinds, index: usize, kind: &str, version: &str) -> bool {
    let adapter = kinds.get(index).filter(|_| index != POD);
    adapter.is_some_and(|it| {
        let resource = it.resource();
        resource.kind == kind && resource.api_version() == version && it.member_kind().is_none()
    })
}
