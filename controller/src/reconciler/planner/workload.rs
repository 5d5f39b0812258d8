//! Plans workloads.

use super::adoption::adoption_step;
use super::orphan::{plan_orphan, plan_pods_read};
use crate::job_adapters::{JobResult, POD_GROUP, TemplateSource};
use crate::key::ObjectKey;
use crate::reconciler::adoption::adoption_end_ms;
use crate::reconciler::job_stop::{JobStop, job_stop, may_have_unseen_pods, termination_end_ms};
use crate::reconciler::job_sync::{
    SpecChange, admission_mismatch, can_start, more_reclaimable_pods, spec_change,
};
use crate::reconciler::model::{JobSource, TrackedJob, TrackedWorkload};
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::plan::{Action, Plan, WorkloadAction};
use crate::reconciler::state::View;
use crate::reconciler::status::conditions::{epoch_seconds, find, has_status};
use crate::reconciler::status::pending_reason::{is_reported, pending_reason};
use crate::reconciler::status::pod_priorities::pod_priority_report;
use crate::reconciler::status::stuck_eviction::plan_report;
use crate::reconciler::workload_owner::{is_orphan, owner};
use lockkeeper_cluster_state::WorkloadPhase;
use lockkeeper_preemption::requeue::{LifecycleStep, next_step};
use std::sync::LazyLock;

/// A pending workload of this age gets a pending reason even if no cycle has reached it, in milliseconds.
const PENDING_REASON_DELAY_MS: i64 = 3_000;

/// The result of a pod that was not removed within the bound after its deletion.
static OVERDUE: LazyLock<JobResult> = LazyLock::new(|| JobResult {
    is_success: false,
    message: "The pod was deleted, and its grace period is over".to_owned(),
});

/// Plans a workload: the first step that applies, the most urgent first.
pub(crate) fn plan_workload<'a>(view: View<'a>, key: &ObjectKey) -> Plan<'a> {
    let Some(tracked) = view.model.workloads.get(key) else {
        return Plan::NOTHING;
    };
    let tracked = &**tracked;
    let workload = &*tracked.object;
    let job = view.model.job_of(tracked);
    if has_status(workload, "Finished", "True") {
        // The API server deletes the workload of a job with it; a group is no object.
        let is_of_group = tracked.job.as_ref().is_some_and(|it| it.kind == POD_GROUP);
        return if is_of_group && is_orphan(view, key, tracked) {
            write(WorkloadAction::Delete)
        } else {
            plan_retention(view, tracked)
        };
    }
    if workload.metadata.deletion_timestamp.is_some() && !tracked.is_deleted {
        // A finalizer may keep it for ever, but not its quota.
        return plan_release(view, tracked, job);
    }
    if let Some(plan) = plan_orphan(view, key, tracked) {
        return plan;
    }
    if let Some(result) = job.and_then(|it| it.view.result.as_ref()) {
        let read = may_have_unseen_pods(view, tracked);
        let read = read.then(|| plan_pods_read(view, tracked)).flatten();
        return read.unwrap_or_else(|| write(WorkloadAction::Finish(result)));
    }
    let termination_end_ms = job.and_then(|it| termination_end_ms(view, it));
    if termination_end_ms.is_some_and(|end_ms| end_ms <= view.now_ms) {
        return write(WorkloadAction::Finish(&OVERDUE));
    }
    let state = view.cluster.lifecycle_state(workload);
    let step = next_step(&view.settings.requeue, &state, view.now_ms, view.jitter);
    let lifecycle_at_ms = match step {
        LifecycleStep::Idle => None,
        LifecycleStep::Wait(pause) => {
            let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            Some(view.now_ms.saturating_add(pause_ms.max(1)))
        }
        step => return write(WorkloadAction::Lifecycle(step)),
    };
    let mut plan = if tracked.holds_quota() && tracked.must_release_quota() {
        plan_release(view, tracked, job)
    } else {
        match plan_transition(view, tracked, job) {
            Some(action) => write(action),
            None => plan_follow_up(view, tracked, job),
        }
    };
    let times_ms = lifecycle_at_ms
        .into_iter()
        .chain(adoption_end_ms(tracked))
        .chain(view.adoption_holds.replan_at_ms(key, view.now_ms))
        .chain(termination_end_ms);
    plan.replan_at_ms = times_ms.chain(plan.replan_at_ms).min();
    plan
}

/// Deletes a finished workload when its retention ends.
fn plan_retention<'a>(view: View<'a>, tracked: &TrackedWorkload) -> Plan<'a> {
    let workload = &*tracked.object;
    let conditions = workload.status.as_ref().map(|it| it.conditions.as_slice());
    let (Some(retention_ms), Some(finished)) = (
        view.settings.finished_retention_ms,
        find(conditions.unwrap_or_default(), "Finished"),
    ) else {
        return Plan::NOTHING;
    };
    if tracked.is_deleted || workload.metadata.deletion_timestamp.is_some() {
        return Plan::NOTHING;
    }
    let finished_ms = epoch_seconds(&finished.last_transition_time).saturating_mul(1000);
    let end_ms = finished_ms.saturating_add(retention_ms);
    if end_ms > view.now_ms {
        return Plan::at(end_ms);
    }
    write(WorkloadAction::Delete)
}

const fn write(action: WorkloadAction<'_>) -> Plan<'_> {
    Plan::write(Action::Workload(action))
}

/// The step that decisions and the job require.
fn plan_transition<'a>(
    view: View<'a>,
    workload: &'a TrackedWorkload,
    job: Option<&'a TrackedJob>,
) -> Option<WorkloadAction<'a>> {
    let holds_quota = workload.holds_quota();
    if workload.decision().is_none()
        && let Some(step) = adoption_step(view, workload)
    {
        return Some(WorkloadAction::Adopt(step));
    }
    match workload.decision() {
        // The outcome of a stale admission is unknown. A write that only restates the pending reason shows
        // by its result whether the admission was written.
        Some(PendingDecision::Admit(_)) if !holds_quota && workload.is_stale => {
            return Some(WorkloadAction::PendingReason(pending_reason(
                view, workload,
            )));
        }
        // The job has changed since the cycle: the workload is updated first, and decided again.
        Some(PendingDecision::Admit(_)) if job.is_some_and(|it| !can_start(&it.view, workload)) => {
            return None;
        }
        Some(PendingDecision::Preempt(decision)) if holds_quota => {
            return Some(WorkloadAction::Preempt(decision));
        }
        Some(PendingDecision::Admit(decision)) if !holds_quota => {
            return Some(WorkloadAction::Admit(decision));
        }
        Some(PendingDecision::Place(step)) if workload.is_nominated() => {
            return Some(WorkloadAction::Place(step));
        }
        _ => {}
    }
    if !holds_quota {
        return None;
    }
    let mismatch = job
        .filter(|it| !it.view.is_deleted)
        .and_then(|it| admission_mismatch(&it.view, workload));
    if let Some(mismatch) = mismatch {
        return Some(WorkloadAction::EvictForJobChange(mismatch));
    }
    if execution_deadline_ms(workload).is_some_and(|at_ms| at_ms <= view.now_ms)
        && !has_status(&workload.object, "DeactivationTarget", "True")
    {
        return Some(WorkloadAction::ExceedExecutionTime);
    }
    let tracked_job = job?;
    let job = &*tracked_job.view;
    if !job.is_deleted
        && !can_start(job, workload)
        && matches!(job_stop(view, workload, tracked_job), JobStop::Stopped)
    {
        // The job has changed since it was admitted: it gets another workload.
        return Some(WorkloadAction::Delete);
    }
    if workload.should_run()
        && tracked_job.source == JobSource::Watch
        && let Some(pods) = more_reclaimable_pods(job, workload)
    {
        return Some(WorkloadAction::ReclaimPods(pods));
    }
    let was_ready = has_status(&workload.object, "PodsReady", "True");
    let is_started = !job.is_suspended;
    if is_started && job.is_ready != was_ready {
        return Some(WorkloadAction::PodsReady(job.is_ready));
    }
    pod_priority_report(view, workload)
}

/// The less urgent steps: follow the job, report the pending reason.
fn plan_follow_up<'a>(
    view: View<'a>,
    workload: &'a TrackedWorkload,
    job: Option<&'a TrackedJob>,
) -> Plan<'a> {
    if workload.holds_quota() {
        let changed_job = job.filter(|it| !it.view.is_deleted && !can_start(&it.view, workload));
        // A job that has changed gets another workload once its stop counts.
        let stop_at_ms = match changed_job.map(|it| job_stop(view, workload, it)) {
            Some(JobStop::At(at_ms)) => Some(at_ms),
            Some(JobStop::Unread) => {
                return plan_pods_read(view, workload).unwrap_or(Plan::NOTHING);
            }
            _ => None,
        };
        let deadline_ms = execution_deadline_ms(workload);
        let at_ms = deadline_ms.into_iter().chain(stop_at_ms).min();
        return at_ms.map_or(Plan::NOTHING, Plan::at);
    }
    if let (Some(key), Some(job)) = (&workload.job, job)
        && let Some(change) = spec_change(workload, &job.view)
    {
        return match change {
            SpecChange::Recreate => write(WorkloadAction::Delete),
            SpecChange::Update if view.model.has_template_text(key) => {
                write(WorkloadAction::Update(key, &job.view))
            }
            // The workload stays as it is, and the job does not start.
            SpecChange::Update if job.view.template_source == TemplateSource::TooLarge => {
                Plan::NOTHING
            }
            SpecChange::Update => write(WorkloadAction::ReadTemplates(key, &job.view)),
        };
    }
    let created = workload.object.metadata.creation_timestamp.as_ref();
    let created_ms = created.map_or(0, |it| epoch_seconds(it).saturating_mul(1000));
    let report_at_ms = created_ms.saturating_add(PENDING_REASON_DELAY_MS);
    // Most workloads are admitted soon after creation: without the delay each would cost one more write.
    if workload.pending_reason.is_none()
        && report_at_ms > view.now_ms
        && is_in_queue(view, workload)
    {
        return Plan::at(report_at_ms);
    }
    let reason = pending_reason(view, workload);
    if is_reported(view, workload, &reason) {
        Plan::NOTHING
    } else {
        write(WorkloadAction::PendingReason(reason))
    }
}

/// Releases the quota of a workload once its job has stopped, and reports a job that does not stop.
fn plan_release<'a>(
    view: View<'a>,
    workload: &'a TrackedWorkload,
    job: Option<&TrackedJob>,
) -> Plan<'a> {
    if !workload.holds_quota() {
        return Plan::NOTHING;
    }
    let stop = match (owner(view, workload), job) {
        // A workload without a job is run by its creator, which sees the condition.
        (None, _) => JobStop::Stopped,
        // Before the list is complete, a missing job may still be running; after it, the workload is an orphan.
        (Some(_), None) => JobStop::Running,
        (Some(_), Some(job)) => job_stop(view, workload, job),
    };
    let at_ms = match stop {
        JobStop::Stopped => return write(WorkloadAction::ReleaseQuota),
        JobStop::At(at_ms) => Some(at_ms),
        JobStop::Running => None,
        JobStop::Unread => match plan_pods_read(view, workload) {
            Some(Plan {
                action: None,
                replan_at_ms,
            }) => replan_at_ms,
            Some(read) => return read,
            None => None,
        },
    };
    let mut plan = plan_report(view, workload);
    plan.replan_at_ms = [plan.replan_at_ms, at_ms].into_iter().flatten().min();
    plan
}

/// Whether the core has it in a queue.
fn is_in_queue(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let phase = view.cluster.phase(workload.key.key());
    !matches!(phase, Some(Err(_) | Ok(WorkloadPhase::NotQueued(_))))
}

/// The end of its maximum execution time, counted from its admission.
fn execution_deadline_ms(workload: &TrackedWorkload) -> Option<i64> {
    let max_s = i64::from(workload.object.spec.maximum_execution_time_seconds?);
    let conditions = workload.object.status.as_ref()?.conditions.as_slice();
    let admitted = find(conditions, "Admitted").filter(|it| it.status == "True")?;
    let end_s = epoch_seconds(&admitted.last_transition_time).saturating_add(max_s);
    Some(end_s.saturating_mul(1000))
}
