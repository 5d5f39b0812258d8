//! Plans jobs: they get a workload, start when it is admitted, and stop when it is evicted.

use crate::job_adapters::{JobView, PodPlacement};
use crate::key::{JobKey, Kind};
use crate::reconciler::job_sync::{admitted_placements, can_start};
use crate::reconciler::plan::{Action, JobAction, Plan};
use crate::reconciler::state::View;

pub(crate) fn plan_job<'a>(view: View<'a>, key: &JobKey) -> Plan<'a> {
    let Some(tracked) = view.model.jobs.get(key) else {
        return Plan::NOTHING;
    };
    let job = &*tracked.view;
    if job.is_deleted || job.result.is_some() || !view.model.is_listed(Kind::Workload) {
        return Plan::NOTHING;
    }
    let workload = view.model.workloads.get(&job.workload_name(key.kind));
    let may_run = !job.is_suspended || tracked.tracker.outcome_unknown;
    // A job that was just started is not suspended before its controller has acknowledged the start. That
    // controller may be creating pods and would never acknowledge: the job would look as if it had never run.
    let is_suspendable = !job.is_start_unconfirmed;
    let action = match workload {
        // Its removal enqueues the job again.
        Some(it) if it.object.metadata.deletion_timestamp.is_some() => None,
        // The admission may be written or released without the watch having shown it.
        Some(it) if !it.tracker.is_settled() => None,
        // A job that differs from the admitted one does not start; it stops, and gets another workload.
        Some(it) if it.should_run() && (!job.is_suspended || can_start(job, it)) => {
            plan_start(job, admitted_placements(view.cluster, job, it))
        }
        _ if may_run => is_suspendable.then_some(JobAction::Suspend),
        // A workload is created only from the original template, without labels of flavors.
        _ if !job.is_stopped() => plan_stop(job),
        // A workload that was created may not be in the watch yet: it is not created twice.
        None => tracked
            .workload_created_at
            .is_none()
            .then_some(JobAction::CreateWorkload),
        Some(_) => None,
    };
    action.map_or(Plan::NOTHING, |it| Plan::write(Action::Job(it)))
}

fn plan_start(job: &JobView, placed: Vec<PodPlacement>) -> Option<JobAction> {
    if !job.is_suspended {
        return None;
    }
    if job.has_placement(&placed) || !job.has_start_time {
        return Some(JobAction::Start(placed));
    }
    // The API server rejects a change of the template while there is a start time.
    job.is_quiescent.then_some(JobAction::ResetStartTime)
}

/// The steps of stopping after the job is suspended. Each is safe to repeat; after the last one its
/// workload may release the quota.
fn plan_stop(job: &JobView) -> Option<JobAction> {
    if !job.is_quiescent {
        None
    } else if job.has_start_time {
        Some(JobAction::ResetStartTime)
    } else {
        job.saved_placement
            .is_some()
            .then_some(JobAction::RestorePlacement)
    }
}
