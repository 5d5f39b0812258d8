//! The workload of an object that is being created.

use crate::job_adapters::JobKinds;
use crate::key::JobKey;
use crate::reconciler::manifest_of_job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::{GROUP, Workload};
use serde_json::Value;

/// The uid of a workload that does not exist yet: it sorts behind all others, as a new object does.
const NEW_UID: &str = "~";

/// The workload of a Workload, or of a job with a queue of one of these kinds, that is being created at `now_ms`, in milliseconds since 1970. `None`
/// for other objects, for those that a controller has created, for pods of a group and pods without the scheduling gate, and
/// for objects that cannot be decoded.
#[must_use]
pub fn submitted_workload(kinds: &JobKinds, object: Value, now_ms: i64) -> Option<Workload> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (text("/apiVersion")?.to_owned(), text("/kind")?.to_owned());
    let manifest = if kind == "Workload" && version.starts_with(GROUP) {
        object
    } else {
        job_manifest(kinds, object, &version, &kind)?
    };
    let mut workload: Workload = serde_json::from_value(manifest).ok()?;
    let owners = workload.metadata.owner_references.as_deref();
    // The controller's own workloads are those of jobs, which had their preview.
    if kind == "Workload" && owners.is_some_and(|it| it.iter().any(is_controller)) {
        return None;
    }
    workload.status = None;
    workload.metadata.uid = Some(NEW_UID.to_owned());
    workload.metadata.creation_timestamp = Timestamp::from_millisecond(now_ms).ok().map(Time);
    Some(workload)
}

fn is_controller(owner: &OwnerReference) -> bool {
    owner.controller == Some(true)
}

/// The manifest of the workload that the controller creates for a job; `None` if it creates none for this object alone.
fn job_manifest(kinds: &JobKinds, object: Value, version: &str, kind: &str) -> Option<Value> {
    let is_of_object = |index: &usize| {
        let adapter = kinds.get(*index).filter(|it| it.member_kind().is_none());
        adapter.is_some_and(|it| {
            let resource = it.resource();
            resource.kind == kind && resource.api_version() == version
        })
    };
    let index = (0..kinds.count()).find(is_of_object)?;
    let job = kinds.parse(index, object).ok()?;
    let is_queued = !job.queue.is_empty()
        && job.parent.is_none()
        && job.foreign_manager.is_none()
        && job.group.is_none()
        && job.is_suspended;
    if !is_queued {
        return None;
    }
    let key = JobKey {
        kind: index,
        name: job.name.clone(),
    };
    manifest_of_job(kinds, &key, &job)
}
