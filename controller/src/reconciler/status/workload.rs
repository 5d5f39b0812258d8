//! Builds the writes of workloads from their planned actions.

use super::conditions::{
    Conditions, NOMINATED, find, has_status, status_or_default, status_patch, timestamp,
    workload_conditions,
};
use super::pending_reason::{waiting_for_nodes, write_pending_reason};
use super::pod_priorities::write_pod_priorities;
use super::scheduling_stats::{count_eviction, is_first_eviction};
use super::stuck_eviction::write_stuck_eviction;
use crate::job_adapters::JobResult;
use crate::key::ObjectKey;
use crate::reconciler::adoption::adoption_write;
use crate::reconciler::counters::Eviction;
use crate::reconciler::job_sync::workload_spec;
use crate::reconciler::job_writes::read_job;
use crate::reconciler::model::{SuccessRecord, TrackedWorkload};
use crate::reconciler::output::WriteOp;
use crate::reconciler::pending_decision::{AdmissionDecision, PlacementStep, PreemptionDecision};
use crate::reconciler::plan::WorkloadAction;
use crate::reconciler::queue_store::admitting_cluster_queue;
use crate::reconciler::state::View;
use crate::reconciler::workload_owner::{is_orphan, job_to_read, owner};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::{RequeueState as StoredState, WorkloadStatus};
use lockkeeper_cluster_state::{
    ClusterState, EVICTION_STUCK, effective_priorities, preemption_conditions,
};
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictionReason, LifecycleStep, RequeueState,
};
use serde_json::{Value, json};

/// The reason of `QuotaReserved=False` after an eviction.
const PENDING_REASON: &str = "Pending";

/// The message of `DeactivationTarget` after the maximum execution time.
const EXECUTION_TIME_EXCEEDED_MESSAGE: &str = "exceeding the maximum execution time";

/// The message when quota is released without an eviction.
const QUOTA_WITHOUT_ADMISSION_MESSAGE: &str =
    "Quota released: the status was changed by another client";

/// The message of `Admitted` while the victims of a workload stop.
const NOMINATED_MESSAGE: &str =
    "Waiting until preempted pods have left the nodes in status.nominatedPlacement";

/// A write of a workload.
pub(crate) struct WorkloadWrite {
    pub(crate) op: WriteOp,
    pub(crate) event: EventOnSuccess,
}

/// What to record if a write succeeds. `Keep` leaves that of the write before: only status writes have one.
pub(crate) enum EventOnSuccess {
    Keep,
    Replace(Option<SuccessRecord>),
}

/// The write of a workload; `None` if nothing would change.
pub(crate) fn build_workload_write(
    view: View<'_>,
    workload: &TrackedWorkload,
    action: &WorkloadAction<'_>,
) -> Option<WorkloadWrite> {
    let op = match action {
        WorkloadAction::Delete => WriteOp::Delete {
            uid: workload.object.metadata.uid.clone()?,
        },
        WorkloadAction::ReadJob => {
            let job = job_to_read(view, workload)?;
            WriteOp::ReadJob {
                kind: job.kind,
                name: job.name,
                namespace: workload.key.namespace().to_owned(),
                uid: job.uid,
            }
        }
        WorkloadAction::Update(key, job) => {
            let source = view.model.template_text(key, job)?;
            update_patch(
                &workload.object,
                &workload_spec(&view.model.job_kinds, key, job, &source)?,
            )
        }
        WorkloadAction::ReadTemplates(key, job) => read_job(key, job),
        WorkloadAction::Adopt(step) => adoption_write(&workload.object, *step),
        WorkloadAction::Lifecycle(LifecycleStep::Deactivate) => {
            deactivation_patch(&workload.object)
        }
        _ => return build_status_write(view, workload, action),
    };
    Some(WorkloadWrite {
        op,
        event: EventOnSuccess::Keep,
    })
}

fn build_status_write(
    view: View<'_>,
    workload: &TrackedWorkload,
    action: &WorkloadAction<'_>,
) -> Option<WorkloadWrite> {
    let status = new_status(view, workload, action)?;
    let object = &workload.object;
    let version = object.metadata.resource_version.as_deref();
    let patch = status_patch(version, object.status.as_ref(), &status);
    // After a stale decision a patch that changes nothing probes the outcome of the earlier write: it
    // conflicts if that write was executed.
    let probe = || {
        workload
            .is_stale
            .then(|| json!({"metadata": {"resourceVersion": version}}))
    };
    let patch = patch.or_else(probe)?;
    let condition = match action {
        WorkloadAction::Preempt(_)
        | WorkloadAction::EvictForJobChange(_)
        | WorkloadAction::Lifecycle(LifecycleStep::Evict(_)) => find(&status.conditions, "Evicted"),
        WorkloadAction::ExceedExecutionTime
        | WorkloadAction::Lifecycle(LifecycleStep::SetDeactivationTarget(_)) => {
            find(&status.conditions, "DeactivationTarget")
        }
        WorkloadAction::ReportStuckEviction => find(&status.conditions, EVICTION_STUCK),
        _ => None,
    };
    let record = condition.map(|it| SuccessRecord {
        reason: it.reason.clone(),
        message: it.message.clone(),
        eviction: (it.type_ == "Evicted").then(|| eviction_of(object, &it.reason)),
    });
    Some(WorkloadWrite {
        op: WriteOp::PatchStatus(patch),
        event: EventOnSuccess::Replace(record),
    })
}

/// The eviction of a workload, as metrics count it.
fn eviction_of(workload: &Workload, reason: &str) -> Eviction {
    let reason = EvictionReason::from_reason(reason);
    Eviction {
        cluster_queue: admitting_cluster_queue(workload)
            .unwrap_or_default()
            .to_owned(),
        reason,
        is_first: is_first_eviction(workload.status.as_ref(), reason),
    }
}

fn new_status(
    view: View<'_>,
    tracked: &TrackedWorkload,
    action: &WorkloadAction<'_>,
) -> Option<WorkloadStatus> {
    let workload = &*tracked.object;
    let now_ms = view.now_ms;
    let mut status = status_or_default(workload);
    match action {
        WorkloadAction::Admit(decision) => {
            write_admission(workload, &mut status, decision, now_ms);
        }
        WorkloadAction::Place(step) => write_placement_step(tracked, &mut status, step, now_ms),
        WorkloadAction::Preempt(decision) => {
            write_preemption(workload, &mut status, decision, now_ms);
            count_eviction(&mut status);
            release_if_unowned(view, tracked, &mut status);
        }
        WorkloadAction::EvictForJobChange(detail) => {
            write_job_change(workload, &mut status, detail, now_ms);
            count_eviction(&mut status);
            release_if_unowned(view, tracked, &mut status);
        }
        WorkloadAction::Lifecycle(step) => {
            write_lifecycle_step(workload, &mut status, *step, now_ms)?;
            if matches!(step, LifecycleStep::Evict(_)) {
                count_eviction(&mut status);
                release_if_unowned(view, tracked, &mut status);
            }
        }
        WorkloadAction::ExceedExecutionTime => {
            write_execution_time_exceeded(workload, &mut status, now_ms);
        }
        WorkloadAction::ReleaseQuota => {
            write_quota_release(view.cluster, workload, &mut status, now_ms);
        }
        WorkloadAction::ReclaimPods(pods) => status.reclaimable_pods.clone_from(pods),
        WorkloadAction::PodsReady(is_ready) => {
            write_pods_ready(workload, &mut status, *is_ready, now_ms);
        }
        WorkloadAction::Finish(result) => write_finished(workload, &mut status, result, now_ms),
        WorkloadAction::PendingReason(reason) => {
            write_pending_reason(tracked, &mut status, reason, now_ms);
        }
        WorkloadAction::ReportStuckEviction => {
            write_stuck_eviction(view, workload, &mut status);
        }
        // Every write of a status has it.
        WorkloadAction::ReportPodPriority => {}
        WorkloadAction::Delete
        | WorkloadAction::Update(..)
        | WorkloadAction::Adopt(_)
        | WorkloadAction::ReadJob
        | WorkloadAction::ReadTemplates(..) => return None,
    }
    (status.priority, status.preemption_priority) =
        effective_priorities(view.cluster, workload, &status);
    write_pod_priorities(view, tracked, &mut status);
    Some(status)
}

pub(crate) fn write_admission(
    workload: &Workload,
    status: &mut WorkloadStatus,
    decision: &AdmissionDecision,
    now_ms: i64,
) {
    status.admission = Some(decision.admission.clone());
    status.nominated_placement = decision.nodes().cloned();
    status.reclaimable_pods = Vec::new();
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    // The transition times are new even if another client left the conditions true: the maximum execution
    // time and the timeout of PodsReady count from them.
    conditions.set_renewed("QuotaReserved", "QuotaReserved", &decision.message);
    let queue = &decision.admission.cluster_queue;
    if decision.is_nominated() {
        conditions.set("Admitted", false, NOMINATED, NOMINATED_MESSAGE);
    } else {
        set_admitted(&mut conditions, queue);
    }
    conditions.set_false("Evicted", "QuotaReserved");
    conditions.set_false("Preempted", "QuotaReserved");
    conditions.remove("PodsReady");
}

fn set_admitted(conditions: &mut Conditions<'_>, cluster_queue: &str) {
    let message = format!("Admitted by ClusterQueue {cluster_queue}");
    conditions.set_renewed("Admitted", "Admitted", &message);
}

/// Writes the next step of a workload with nominated nodes.
fn write_placement_step(
    tracked: &TrackedWorkload,
    status: &mut WorkloadStatus,
    step: &PlacementStep,
    now_ms: i64,
) {
    match step {
        PlacementStep::Admit(nodes) => {
            status.nominated_placement = Some(nodes.clone());
            let admission = status.admission.as_ref();
            let queue = admission.map_or("", |it| it.cluster_queue.as_str());
            let mut conditions =
                workload_conditions(&tracked.object, &mut status.conditions, now_ms);
            set_admitted(&mut conditions, queue);
        }
        PlacementStep::Nominate { nodes, message } => {
            status.nominated_placement = Some(nodes.clone());
            let message = format!("{NOMINATED_MESSAGE}. {message}");
            let mut conditions =
                workload_conditions(&tracked.object, &mut status.conditions, now_ms);
            conditions.set("Admitted", false, NOMINATED, message.trim_end_matches(". "));
        }
        PlacementStep::Withdraw(why) => {
            write_pending_reason(tracked, status, &waiting_for_nodes(why), now_ms);
        }
    }
}

fn write_preemption(
    workload: &Workload,
    status: &mut WorkloadStatus,
    decision: &PreemptionDecision,
    now_ms: i64,
) {
    let [evicted, preempted] = preemption_conditions(
        decision.cause,
        &decision.preemptor_uid,
        &decision.job_uid,
        &timestamp(now_ms),
        workload.metadata.generation,
    );
    // The paths complete the text of Kueue's `preemptionMessage`.
    let [from, to] = &decision.queue_paths;
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    // A name would reveal an object of another tenant.
    let preemptor = if decision.preemptor.namespace() == namespace {
        decision.preemptor.key()
    } else {
        &decision.preemptor_uid
    };
    let message = format!(
        "{}; preemptor: {preemptor}; preemptor path: {from}; preemptee path: {to}",
        evicted.message
    );
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    conditions.set_renewed(&evicted.type_, &evicted.reason, &message);
    conditions.set_renewed(&preempted.type_, &preempted.reason, &message);
}

fn write_job_change(workload: &Workload, status: &mut WorkloadStatus, detail: &str, now_ms: i64) {
    let reason = EvictionReason::JobChanged;
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    conditions.set_renewed("Evicted", reason.as_str(), &reason.message(detail));
}

/// A workload without a job has none to stop: its quota is released together with the eviction. An owner of an
/// unknown kind is no job.
fn release_if_unowned(view: View<'_>, workload: &TrackedWorkload, status: &mut WorkloadStatus) {
    let is_orphan = is_orphan(view, &workload.key, workload);
    if status.admission.is_some() && owner(view, workload).is_none() && !is_orphan {
        write_quota_release(view.cluster, &workload.object, status, view.now_ms);
    }
}

/// Releases the quota. Whether the workload is requeued at once depends on the reason of its eviction.
///
/// Source: Kueue `pkg/controller/jobframework`, the clearing of an admission.
fn write_quota_release(
    cluster: &ClusterState,
    workload: &Workload,
    status: &mut WorkloadStatus,
    now_ms: i64,
) {
    status.admission = None;
    status.nominated_placement = None;
    status.reclaimable_pods = Vec::new();
    let evicted = find(&status.conditions, "Evicted").cloned();
    let (reason, message) = evicted.map_or_else(
        || {
            (
                EvictionReason::Other.as_str().to_owned(),
                QUOTA_WITHOUT_ADMISSION_MESSAGE.to_owned(),
            )
        },
        |it| (it.reason, it.message),
    );
    let mut after = workload.clone();
    after.status = Some(status.clone());
    let mut state = cluster.lifecycle_state(&after);
    // Decides from the reason of the eviction whether `Requeued` becomes true.
    state.on_job_stopped();
    let is_requeued = state.not_requeued_reason.is_none();
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    conditions.remove(EVICTION_STUCK);
    conditions.set("QuotaReserved", false, PENDING_REASON, &message);
    conditions.set_not_admitted();
    conditions.set("Requeued", is_requeued, &reason, &message);
}

fn write_pods_ready(workload: &Workload, status: &mut WorkloadStatus, is_ready: bool, now_ms: i64) {
    let was_reported = find(&status.conditions, "PodsReady").is_some();
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    if is_ready {
        let reason = if was_reported { "Recovered" } else { "Started" };
        conditions.set("PodsReady", true, reason, "All pods are ready or succeeded");
    } else {
        let message = "Not all pods are ready or succeeded";
        conditions.set("PodsReady", false, "WaitForRecovery", message);
    }
}

fn write_finished(
    workload: &Workload,
    status: &mut WorkloadStatus,
    result: &JobResult,
    now_ms: i64,
) {
    let reason = if result.is_success {
        "Succeeded"
    } else {
        "Failed"
    };
    let message = if result.message.is_empty() {
        "The job has finished"
    } else {
        &result.message
    };
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    conditions.remove(EVICTION_STUCK);
    conditions.set("Finished", true, reason, message);
}

/// Sets the spec of the workload to `spec`, that of its job.
fn update_patch(workload: &Workload, spec: &Value) -> WriteOp {
    // An absent field becomes null, which removes it from the workload (RFC 7386).
    WriteOp::Patch(json!({
        "metadata": {"resourceVersion": workload.metadata.resource_version},
        "spec": {
            "queueName": spec.get("queueName"),
            "podSets": spec.get("podSets"),
            "podGroups": spec.get("podGroups"),
            "maximumExecutionTimeSeconds": spec.get("maximumExecutionTimeSeconds"),
        },
    }))
}

/// Marks the workload; deactivating it (`spec.active`) is a second write.
fn write_execution_time_exceeded(workload: &Workload, status: &mut WorkloadStatus, now_ms: i64) {
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    let reason = DeactivationCause::MaximumExecutionTimeExceeded.as_str();
    conditions.set(
        "DeactivationTarget",
        true,
        reason,
        EXECUTION_TIME_EXCEEDED_MESSAGE,
    );
}

fn deactivation_patch(workload: &Workload) -> WriteOp {
    WriteOp::Patch(json!({
        "metadata": {"resourceVersion": workload.metadata.resource_version},
        "spec": {"active": false},
    }))
}

/// Writes a lifecycle step into a status; `None` for the steps that change no status.
fn write_lifecycle_step(
    workload: &Workload,
    status: &mut WorkloadStatus,
    step: LifecycleStep,
    now_ms: i64,
) -> Option<()> {
    match step {
        LifecycleStep::Idle | LifecycleStep::Wait(_) | LifecycleStep::Deactivate => return None,
        LifecycleStep::SetRequeueState(state) => {
            status.requeue_state = state.map(stored_requeue_state).map(Box::new);
        }
        LifecycleStep::SetDeactivationTarget(target) => {
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            let message = target.message("");
            conditions.set(
                "DeactivationTarget",
                true,
                target.cause().as_str(),
                &message,
            );
        }
        LifecycleStep::Evict(eviction) => {
            let reason = eviction.reason;
            let message = reason.message(&eviction_detail(workload));
            status.requeue_state = eviction
                .requeue_state
                .map(stored_requeue_state)
                .map(Box::new);
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            conditions.set_renewed("Evicted", reason.as_str(), &message);
            // The message of `Evicted` has the cause from now on.
            if matches!(reason, EvictionReason::Deactivated(_)) {
                conditions.remove("DeactivationTarget");
            }
        }
        LifecycleStep::ClearRequeueState => {
            status.requeue_state = None;
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            conditions.remove("DeactivationTarget");
        }
        LifecycleStep::Requeue(requeue) => {
            status.requeue_state = requeue
                .requeue_state
                .map(stored_requeue_state)
                .map(Box::new);
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            let reason = requeue.reason;
            conditions.set("Requeued", true, reason.as_str(), reason.message());
        }
    }
    Some(())
}

/// The detail in the message of an eviction: the cause of the deactivation, or else the workload's name.
fn eviction_detail(workload: &Workload) -> String {
    let conditions = workload.status.as_ref().map(|it| it.conditions.as_slice());
    match find(conditions.unwrap_or_default(), "DeactivationTarget") {
        Some(target) if has_status(workload, "DeactivationTarget", "True") => {
            target.message.clone()
        }
        _ => ObjectKey::from_metadata(&workload.metadata).to_string(),
    }
}

fn stored_requeue_state(state: RequeueState) -> StoredState {
    let at = |second: i64| timestamp(second.saturating_mul(1000));
    StoredState {
        count: i32::try_from(state.requeue_count()).unwrap_or(i32::MAX),
        requeue_at: state.requeue_at_s.map(at),
        first_evicted_at: state.first_evicted_at_s.map(at),
    }
}
