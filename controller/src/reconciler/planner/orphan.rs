//! Plans workloads that belong to no job in the watch any more: the job was deleted, has lost its label, or the
//! workload has lost its owner reference. One that holds quota is deleted only when the pods are gone.

use super::adoption::is_abandoned;
use super::covered_job::is_started_first;
use crate::key::ObjectKey;
use crate::reconciler::job_stop::{JobStop, job_stop, may_have_unseen_pods};
use crate::reconciler::model::{JobSource, TrackedWorkload};
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::plan::{Action, Plan, WorkloadAction};
use crate::reconciler::state::View;
use crate::reconciler::status::stuck_eviction::plan_report;
use crate::reconciler::workload_owner::{is_orphan, job_to_stop};

/// The pause between two reads of a job that is not watched, in milliseconds.
pub(crate) const READ_PAUSE_MS: i64 = 1_000;

/// The plan of a workload without a job; `None` if it has one, or is managed by its creator.
pub(crate) fn plan_orphan<'a>(
    view: View<'a>,
    key: &ObjectKey,
    workload: &'a TrackedWorkload,
) -> Option<Plan<'a>> {
    if is_abandoned(view, workload) {
        return Some(write(WorkloadAction::Delete));
    }
    if !is_orphan(view, key, workload) {
        return None;
    }
    if is_started_first(view, workload) {
        return Some(Plan::NOTHING);
    }
    if !workload.holds_quota() {
        return Some(write(WorkloadAction::Delete));
    }
    if let Some(PendingDecision::Preempt(decision)) = workload.decision()
        && !workload.is_deleted
    {
        return Some(write(WorkloadAction::Preempt(decision)));
    }
    let next = plan_deletion(view, key, workload);
    if next.action.is_some() {
        return Some(next);
    }
    let mut report = plan_report(view, workload);
    report.replan_at_ms = [report.replan_at_ms, next.replan_at_ms]
        .into_iter()
        .flatten()
        .min();
    Some(report)
}

const fn write(action: WorkloadAction<'_>) -> Plan<'_> {
    Plan::write(Action::Workload(action))
}

/// Deletes the workload once its job has stopped.
fn plan_deletion<'a>(view: View<'a>, key: &ObjectKey, workload: &'a TrackedWorkload) -> Plan<'a> {
    let Some((job_key, job)) = job_to_stop(view, key, workload) else {
        return plan_without_job(view, workload);
    };
    if job.source == JobSource::Unread {
        return write(WorkloadAction::ReadJob);
    }
    let own = view.model.workload_of(job_key, &job.view);
    let is_covered = own.is_some_and(|it| it.key != *key && it.holds_quota())
        || view.model.is_covered_by_parent(job_key.kind, &job.view);
    let has_ended = job.view.result.is_some() && !may_have_unseen_pods(view, workload);
    if is_covered || has_ended {
        return write(WorkloadAction::Delete);
    }
    let at_ms = match job_stop(view, workload, job) {
        // Since the read the job may have been resumed: it is read again before a deletion is retried.
        JobStop::Stopped if is_outdated(view, job.source) => {
            return write(WorkloadAction::ReadJob);
        }
        JobStop::Stopped => return write(WorkloadAction::Delete),
        JobStop::At(at_ms) => at_ms,
        JobStop::Unread => return plan_without_job(view, workload),
        JobStop::Running => i64::MAX,
    };
    match job.source {
        JobSource::Read(read_at_ms) => {
            plan_read(view, read_at_ms.saturating_add(READ_PAUSE_MS).min(at_ms))
        }
        _ if at_ms < i64::MAX => Plan::at(at_ms),
        _ => Plan::NOTHING,
    }
}

fn is_outdated(view: View<'_>, source: JobSource) -> bool {
    matches!(source, JobSource::Read(at_ms) if at_ms.saturating_add(READ_PAUSE_MS) < view.now_ms)
}

/// The job is gone: its pods may run on if it was deleted without them.
fn plan_without_job<'a>(view: View<'a>, workload: &'a TrackedWorkload) -> Plan<'a> {
    plan_pods_read(view, workload).unwrap_or_else(|| write(WorkloadAction::Delete))
}

/// Reads which pods a job has left; `None` if it has left none.
pub(crate) fn plan_pods_read<'a>(
    view: View<'a>,
    workload: &'a TrackedWorkload,
) -> Option<Plan<'a>> {
    match workload.gone_job {
        None => Some(write(WorkloadAction::ReadJob)),
        Some(it) if it.has_pods => {
            let at_ms = it.read_at_ms.saturating_add(READ_PAUSE_MS);
            Some(plan_read(view, at_ms))
        }
        Some(_) => None,
    }
}

const fn plan_read(view: View<'_>, at_ms: i64) -> Plan<'_> {
    if at_ms <= view.now_ms {
        write(WorkloadAction::ReadJob)
    } else {
        Plan::at(at_ms)
    }
}
