//! Builds the writes of jobs from their planned actions.

use super::job_sync::{original_placement, restored_placement, workload_manifest};
use super::model::TrackedWorkload;
use super::output::WriteOp;
use super::plan::{JobAction, PodGroupReport};
use super::soft_eviction::{soft_evicted_for, soft_eviction_patch};
use super::state::View;
use super::status::conditions::{find, timestamp};
use crate::job_adapters::{JobAdapter, JobView, PodPlacement, StopMethod, group_uid};
use crate::key::JobKey;
use lockkeeper_api::labels;
use serde_json::{Value, json};

/// The write of a job; `None` if the job is gone.
pub(super) fn build_job_write(view: View<'_>, key: &JobKey, action: &JobAction) -> Option<WriteOp> {
    let kinds = &view.model.job_kinds;
    let kind = kinds.get(key.kind)?;
    let job = &*view.model.jobs.get(key)?.view;
    let workload = view.model.workloads.get(&job.workload_name(key.kind));
    let workload = workload.map(Box::as_ref);
    let source = view.model.template_text(key, job);
    let source = source.as_deref();
    Some(match action {
        JobAction::CreateWorkload => WriteOp::Create(workload_manifest(kinds, key, job, source?)?),
        JobAction::ReadTemplates(_) | JobAction::ReadPod => read_job(key, job),
        JobAction::Suspend => suspend(kind, job, workload)?,
        JobAction::MarkDisrupted => mark_disrupted(view, job, workload)?,
        JobAction::Delete => WriteOp::Delete {
            uid: job.uid.clone(),
        },
        JobAction::SoftEvict => {
            let preemptor = soft_evicted_for(view.cluster, workload?)?;
            let namespace = job.name.namespace();
            WriteOp::Patch(soft_eviction_patch(
                view.model, namespace, &job.uid, preemptor,
            ))
        }
        JobAction::Start(placed) => start(kind, job, source, placed)?,
        JobAction::StartCovered => WriteOp::Patch(spec_patch(job, &kind.start_patch(job))),
        JobAction::StartMember(placed, pod_set) => start_member(kind, job, placed, pod_set)?,
        JobAction::ReportPodGroup(report) => report_pod_group(view, job, report)?,
        JobAction::NominateNode(node) => WriteOp::PatchStatus(json!({
            "metadata": {"resourceVersion": job.version.to_string()},
            "status": {"nominatedNodeName": node},
        })),
        JobAction::RestorePlacement => {
            let restored = restored_placement(job, workload);
            WriteOp::Patch(annotated_patch(
                job,
                &kind.placement_patch(job, source, &restored)?,
                &Value::Null,
            ))
        }
        JobAction::ResetStartTime => WriteOp::PatchStatus(json!({
            "metadata": {"resourceVersion": job.version.to_string()},
            "status": {"startTime": null},
        })),
    })
}

/// Reads a job, for the text of its templates or because it has left the watch.
pub(super) fn read_job(key: &JobKey, job: &JobView) -> WriteOp {
    WriteOp::ReadJob {
        kind: key.kind,
        name: Some(job.name.clone()),
        namespace: job.name.namespace().to_owned(),
        uid: job.uid.clone(),
    }
}

fn suspend(
    kind: &dyn JobAdapter,
    job: &JobView,
    workload: Option<&TrackedWorkload>,
) -> Option<WriteOp> {
    let spec = kind.suspend_patch();
    let restored = restored_placement(job, workload);
    if job
        .saved_placement
        .as_ref()
        .is_none_or(|it| *it == restored)
    {
        return Some(WriteOp::Patch(spec_patch(job, &spec)));
    }
    // The saved placement is corrected now: the workload, which has the admitted counts, may be gone when the
    // job has stopped, and a count that a user has changed must not be undone.
    let original = serde_json::to_string(&restored).ok()?;
    Some(WriteOp::Patch(annotated_patch(
        job,
        &spec,
        &json!(original),
    )))
}

/// The condition of Kubernetes for a pod that is deleted for a reason outside of it: a pod failure policy of a Job
/// reads it.
fn mark_disrupted(
    view: View<'_>,
    pod: &JobView,
    workload: Option<&TrackedWorkload>,
) -> Option<WriteOp> {
    let conditions = workload.and_then(|it| it.object.status.as_ref());
    let conditions = conditions.map(|it| it.conditions.as_slice());
    let evicted = find(conditions.unwrap_or_default(), "Evicted");
    let message = evicted.map_or("The pod has no quota", |it| it.message.as_str());
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictedByLockkeeper",
        "message": message,
    });
    pod_condition(view, pod, condition)
}

fn report_pod_group(view: View<'_>, pod: &JobView, report: &PodGroupReport) -> Option<WriteOp> {
    let condition = json!({
        "type": labels::POD_GROUP_CONDITION,
        "status": if report.is_member { "True" } else { "False" },
        "reason": report.reason,
        "message": report.message,
    });
    pod_condition(view, pod, condition)
}

fn pod_condition(view: View<'_>, pod: &JobView, mut condition: Value) -> Option<WriteOp> {
    condition.as_object_mut()?.insert(
        "lastTransitionTime".to_owned(),
        json!(timestamp(view.now_ms)),
    );
    Some(WriteOp::PatchPodConditions(json!({
        "metadata": {"uid": pod.uid},
        "status": {"conditions": [condition]},
    })))
}

/// The start of a pod of a group. It has the flavor's placement from now on, so its pod set is recorded. Its group is
/// recorded, too, so that the pod is found without its queue label.
fn start_member(
    kind: &dyn JobAdapter,
    pod: &JobView,
    placed: &PodPlacement,
    pod_set: &str,
) -> Option<WriteOp> {
    let group = &pod.group.as_ref()?.group;
    let mut spec = kind.placement_patch(pod, None, std::slice::from_ref(placed))?;
    spec.as_object_mut()?
        .append(kind.start_patch(pod).as_object_mut()?);
    Some(WriteOp::Patch(json!({
        "metadata": {
            "resourceVersion": pod.version.to_string(),
            "annotations": {labels::POD_SET: pod_set},
            "labels": {labels::JOB_UID: group_uid(group)},
        },
        "spec": spec,
    })))
}

fn start(
    kind: &dyn JobAdapter,
    job: &JobView,
    source: Option<&str>,
    placed: &[PodPlacement],
) -> Option<WriteOp> {
    let mut start = kind.start_patch(job);
    if job.has_placement(placed) {
        return Some(WriteOp::Patch(spec_patch(job, &start)));
    }
    let mut spec = kind.placement_patch(job, source, placed)?;
    spec.as_object_mut()?.append(start.as_object_mut()?);
    if kind.stop_method() == StopMethod::Delete {
        // It is not started again, so nothing is restored.
        return Some(WriteOp::Patch(spec_patch(job, &spec)));
    }
    let original = serde_json::to_string(&original_placement(job, placed)).ok()?;
    Some(WriteOp::Patch(annotated_patch(
        job,
        &spec,
        &json!(original),
    )))
}

fn spec_patch(job: &JobView, spec: &Value) -> Value {
    json!({"metadata": {"resourceVersion": job.version.to_string()}, "spec": spec})
}

/// A patch that also sets the annotation with the original placement; null removes it.
fn annotated_patch(job: &JobView, spec: &Value, original: &Value) -> Value {
    let annotations = json!({labels::ORIGINAL_PLACEMENT: original});
    json!({
        "metadata": {"resourceVersion": job.version.to_string(), "annotations": annotations},
        "spec": spec,
    })
}
