//! The objects that `lockkeeper adopt` writes: the same that the controller would write for a queued job.

use super::adoption::{OBSERVED, REQUESTED};
use super::job_sync::workload_manifest;
use super::pending_decision::{AdmissionDecision, AdmittedNodes};
use super::status::conditions::{status_or_default, status_patch};
use super::status::workload::write_admission;
use crate::job_adapters::{JobKinds, JobView};
use crate::key::JobKey;
use lockkeeper_api::workload::Admission;
use lockkeeper_api::{Workload, labels};
use lockkeeper_cluster_state::{ClusterState, effective_priorities};
use serde_json::{Value, json};

/// The manifest of the workload that the controller creates for a job; `None` for a kind that is not among `kinds`, and without a pod
/// template.
#[must_use]
pub fn manifest_of_job(kinds: &JobKinds, key: &JobKey, job: &JobView) -> Option<Value> {
    workload_manifest(kinds, key, job, job.template_source.text()?)
}

/// The manifest of the workload of a running job that is adopted into the LocalQueue of its view; `None` for a kind that is not
/// among `kinds`, and without a pod template.
#[must_use]
pub fn adoption_manifest(kinds: &JobKinds, key: &JobKey, job: &JobView) -> Option<Value> {
    let mut manifest = manifest_of_job(kinds, key, job)?;
    let metadata = manifest.pointer_mut("/metadata")?.as_object_mut()?;
    metadata.insert(
        "annotations".to_owned(),
        json!({labels::ADOPTION: REQUESTED}),
    );
    Some(manifest)
}

/// The patch of a workload that an interrupted adoption has left: the controller confirms it again, and holds the quota of its
/// tree from then on.
#[must_use]
pub fn adoption_request_patch(workload: &Workload) -> Value {
    json!({"metadata": {
        "resourceVersion": workload.metadata.resource_version,
        "annotations": {labels::ADOPTION: REQUESTED},
    }})
}

/// How far the adoption of a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdoptionState {
    /// The controller does not know the workload yet.
    Requested,
    /// The controller knows the workload, and waits for the admission and the label of the job.
    Observed,
    /// No adoption: the workload is an ordinary one.
    None,
}

/// How far the adoption of a workload is.
#[must_use]
pub fn adoption_state(workload: &Workload) -> AdoptionState {
    let all = workload.metadata.annotations.as_ref();
    match all.and_then(|it| it.get(labels::ADOPTION)) {
        None => AdoptionState::None,
        Some(it) if it == OBSERVED => AdoptionState::Observed,
        Some(_) => AdoptionState::Requested,
    }
}

/// The patch of the status that admits the workload of a running job; `None` if nothing would change.
#[must_use]
pub fn adoption_admission_patch(
    cluster: &ClusterState,
    workload: &Workload,
    admission: Admission,
    now_ms: i64,
) -> Option<Value> {
    let mut status = status_or_default(workload);
    let queue = &admission.cluster_queue;
    let decision = AdmissionDecision {
        message: format!("Quota reserved in ClusterQueue {queue} for the running job"),
        admission,
        // The pods run already.
        nodes: AdmittedNodes::None,
    };
    write_admission(workload, &mut status, &decision, now_ms);
    (status.priority, status.preemption_priority) =
        effective_priorities(cluster, workload, &status);
    let version = workload.metadata.resource_version.as_deref();
    status_patch(version, workload.status.as_ref(), &status)
}

/// The patch of a running job that gives it its queue label, on condition of its uid and its version.
#[must_use]
pub fn adoption_label_patch(job: &JobView, local_queue: &str) -> Value {
    json!({"metadata": {
        "uid": job.uid,
        "resourceVersion": job.version.to_string(),
        "labels": {labels::QUEUE_NAME: local_queue},
        "annotations": {labels::ADOPTION: job.uid},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkeeper_api::workload::WorkloadSpec;

    #[test]
    fn adoption_state_follows_annotation() {
        let mut workload = Workload::new("a", WorkloadSpec::default());
        assert_eq!(adoption_state(&workload), AdoptionState::None);
        for (value, expected) in [
            (REQUESTED, AdoptionState::Requested),
            (OBSERVED, AdoptionState::Observed),
            ("other", AdoptionState::Requested),
        ] {
            let annotation = (labels::ADOPTION.to_owned(), value.to_owned());
            workload.metadata.annotations = Some([annotation].into());
            assert_eq!(adoption_state(&workload), expected, "{value}");
        }
    }
}
