//! Plans the stop of a job that runs.

use crate::job_adapters::{JobAdapter, StopMethod};
use crate::key::JobKey;
use crate::reconciler::job_stop::suspendable_at_ms;
use crate::reconciler::model::TrackedJob;
use crate::reconciler::plan::{Action, JobAction, Plan};
use crate::reconciler::soft_eviction::soft_evicted_for;
use crate::reconciler::state::View;

/// A job that was just started is not suspended before its controller has acknowledged the start, or a pause is
/// over.
pub(crate) fn plan_suspension<'a>(view: View<'a>, key: &JobKey, job: &TrackedJob) -> Plan<'a> {
    let at_ms = suspendable_at_ms(view, job);
    if at_ms > view.now_ms {
        return Plan::at(at_ms);
    }
    let method = view
        .model
        .job_kinds
        .get(key.kind)
        .map(JobAdapter::stop_method);
    if method == Some(StopMethod::Delete) && is_soft_evicted(view, key, job) {
        return if job.view.is_soft_evicted {
            // Another component deletes it.
            Plan::NOTHING
        } else {
            Plan::write(Action::Job(JobAction::SoftEvict))
        };
    }
    Plan::write(Action::Job(match method {
        Some(StopMethod::Delete) if job.view.is_suspended || job.view.is_disrupted => {
            JobAction::Delete
        }
        Some(StopMethod::Delete) => JobAction::MarkDisrupted,
        _ => JobAction::Suspend,
    }))
}

/// Whether a running pod of a preempted workload is marked, and not deleted.
fn is_soft_evicted(view: View<'_>, key: &JobKey, pod: &TrackedJob) -> bool {
    let workload = view.model.workload_of(key, &pod.view);
    let preemptor = workload.and_then(|it| soft_evicted_for(view.cluster, it));
    preemptor.is_some() && !pod.view.is_suspended
}
