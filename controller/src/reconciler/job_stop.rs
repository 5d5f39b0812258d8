//! When a job may be suspended, and when it has stopped.
//!
//! The controller of a job acknowledges a start in the job's status. Until then it may be creating pods that the
//! status does not count, and if the job is suspended meanwhile, it acknowledges nothing. So a start is waited
//! for before the job is suspended, and an unacknowledged stop counts only after a pause. Both pauses are limited:
//! a controller that does not respond must not keep quota for ever.

use super::model::{JobSource, Model, TrackedJob, TrackedWorkload};
use super::state::View;
use super::status::conditions::{epoch_seconds, find};
use crate::job_adapters::{JobView, POD_GROUP};
use crate::key::ObjectKey;

/// When a job may be suspended, in milliseconds since 1970.
pub(super) fn suspendable_at_ms(view: View<'_>, job: &TrackedJob) -> i64 {
    if !job.view.is_start_unconfirmed {
        return view.now_ms;
    }
    job.unconfirmed_since_ms.map_or(view.now_ms, |since_ms| {
        since_ms.saturating_add(view.settings.job_response_ms)
    })
}

/// Whether the pods of a covered job have no quota: it runs, and its parent, of a built-in kind, is suspended or has ended. The
/// controller of the parent may be unable to suspend it: its user can edit the labels by which that controller finds it.
pub(super) fn runs_without_parent(model: &Model, job: &JobView) -> bool {
    let parent = job.parent.as_ref();
    let parent = parent.and_then(|(key, _)| model.jobs.get(key));
    let parent = parent.filter(|it| it.view.declared.is_none());
    !job.is_suspended && parent.is_some_and(|it| it.view.is_suspended || it.view.result.is_some())
}

/// When a pod that is being deleted counts as ended, in milliseconds since 1970; `None` for other jobs. A kubelet deletes
/// it before; a pod on a dead node stays, and must not keep its quota for ever.
pub(super) fn termination_end_ms(view: View<'_>, job: &TrackedJob) -> Option<i64> {
    let end_ms = job.view.termination_end_s?.saturating_mul(1000);
    Some(end_ms.saturating_add(view.settings.job_response_ms))
}

/// Whether a job has stopped, so that its quota may be released, and when to check again if only time is missing.
pub(super) enum JobStop {
    Stopped,
    /// At this time, in milliseconds since 1970, unless its controller responds before.
    At(i64),
    /// Its status has to change.
    Running,
    /// Its pods that the watch does not show have to be read.
    Unread,
}

/// Whether no pod of the job of a workload is active, and none may appear.
pub(super) fn job_stop(view: View<'_>, workload: &TrackedWorkload, job: &TrackedJob) -> JobStop {
    if let Some(end_ms) = termination_end_ms(view, job) {
        return if end_ms <= view.now_ms {
            JobStop::Stopped
        } else {
            JobStop::At(end_ms)
        };
    }
    // A start may be in flight, or may have succeeded without a result.
    let is_group = is_of_group(view, workload);
    let is_settled = job.tracker.is_settled() && !job.tracker.outcome_unknown;
    let is_settled = is_settled && (!is_group || is_group_settled(view, &job.view.name));
    if !is_settled || !job.view.is_stopped() {
        return JobStop::Running;
    }
    if may_have_unseen_pods(view, workload) {
        return JobStop::Unread;
    }
    let Some(since_ms) = job.unconfirmed_since_ms else {
        return JobStop::Stopped;
    };
    let at_ms = since_ms.saturating_add(view.settings.job_response_ms);
    if at_ms <= view.now_ms || has_acknowledged_stop(workload, job) {
        JobStop::Stopped
    } else {
        JobStop::At(at_ms)
    }
}

/// Whether the controller of the job has acknowledged a suspension since the admission, and so also the start before.
/// The condition of a suspension before the admission is as old as that. A user may also have resumed the job after it had
/// stopped, and suspended it again.
fn has_acknowledged_stop(workload: &TrackedWorkload, job: &TrackedJob) -> bool {
    let status = workload.object.status.as_ref();
    let conditions = status.map(|it| it.conditions.as_slice());
    let admitted = find(conditions.unwrap_or_default(), "Admitted");
    let admitted_at_s = admitted.map(|it| epoch_seconds(&it.last_transition_time));
    let suspended_at_s = job.view.suspended_at_s;
    suspended_at_s
        .filter(|_| suspended_at_s != job.suspended_before_start_s)
        .zip(admitted_at_s)
        .is_some_and(|(suspended, admitted)| suspended > admitted)
}

/// Whether a pod of a group may run without its queue label: a watch that began after the label was removed does not show
/// it. The pods of each state of the workload are read once.
pub(super) fn may_have_unseen_pods(view: View<'_>, workload: &TrackedWorkload) -> bool {
    is_of_group(view, workload)
        && workload.holds_quota()
        && workload.gone_job.is_none_or(|it| it.has_pods)
}

/// Whether a workload was created for a group. Its owner reference may have been edited; its name has not.
fn is_of_group(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let of_name = view.model.job_by_workload(&workload.key);
    let owner = of_name.or(workload.job.as_ref());
    owner.is_some_and(|it| it.kind == POD_GROUP)
}

/// Whether all writes of the pods of a group are shown by the watch.
fn is_group_settled(view: View<'_>, group: &ObjectKey) -> bool {
    view.model.pod_groups.pods(group).all(|pod| {
        let job = view.model.pod(pod);
        job.is_none_or(|it| {
            it.source != JobSource::Watch || it.tracker.is_settled() && !it.tracker.outcome_unknown
        })
    })
}
