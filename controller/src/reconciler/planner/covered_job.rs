//! Plans a job that its parent has created, and whose pods the workload of the parent has. The controller has suspended it if it
//! saw the job before the parent named it.

use super::suspension::plan_suspension;
use crate::job_adapters::JobView;
use crate::key::JobKey;
use crate::reconciler::job_stop::runs_without_parent;
use crate::reconciler::model::{JobSource, TrackedJob, TrackedWorkload};
use crate::reconciler::plan::{Action, JobAction, Plan};
use crate::reconciler::state::View;
use crate::reconciler::workload_owner::job_to_stop;

/// Suspends the job if it runs and its parent does not; otherwise starts it again, if its workload shows that it was managed as a job
/// of its own.
pub(crate) fn plan_covered<'a>(view: View<'a>, key: &JobKey, tracked: &TrackedJob) -> Plan<'a> {
    let job = &*tracked.view;
    if runs_without_parent(view.model, job) {
        return plan_suspension(view, key, tracked);
    }
    let is_due = view.model.workload_of(key, job).is_some() && is_startable(view, key, job);
    if is_due {
        Plan::write(Action::Job(JobAction::StartCovered))
    } else {
        Plan::NOTHING
    }
}

/// Whether the workload of such a job stays until the job is started: after a restart nothing else would show that the
/// controller has suspended it.
pub(crate) fn is_started_first(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let job = job_to_stop(view, &workload.key, workload);
    let is_own = |job: &JobView| workload.owner_uid() == Some(job.uid.as_str());
    job.is_some_and(|(key, it)| {
        it.source == JobSource::Covered
            && !workload.is_deleted
            && is_own(&it.view)
            && is_startable(view, key, &it.view)
    })
}

fn is_startable(view: View<'_>, key: &JobKey, job: &JobView) -> bool {
    let parent = job.parent.as_ref();
    let parent = parent.and_then(|(parent, _)| view.model.jobs.get(parent));
    job.is_suspended
        && !job.is_deleted
        && parent.is_some_and(|it| !it.view.is_suspended && it.view.declared.is_some())
        && view.model.is_covered_by_parent(key.kind, job)
}
