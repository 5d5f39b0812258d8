//! Plans jobs: they get a workload, start when it is admitted, and stop when it is evicted.

use super::covered_job::plan_covered;
use super::pod_group::{plan_group, plan_member};
use super::pod_node::plan_node;
use super::suspension::plan_suspension;
use crate::job_adapters::{JobAdapter, JobView, POD, POD_GROUP, PodPlacement, TemplateSource};
use crate::key::{JobKey, Kind};
use crate::reconciler::adoption::{adoption_end_ms, is_adopting};
use crate::reconciler::job_sync::{admitted_placements, can_start};
use crate::reconciler::model::{JobSource, TrackedJob};
use crate::reconciler::plan::{Action, JobAction, Plan, TemplateUse};
use crate::reconciler::state::View;
use lockkeeper_api::workload::POD_SET_NAME_DEFAULT;

pub(crate) fn plan_job<'a>(view: View<'a>, key: &JobKey) -> Plan<'a> {
    let Some(tracked) = view.model.jobs.get(key) else {
        return Plan::NOTHING;
    };
    let job = &*tracked.view;
    if !view.model.lists.is_listed(Kind::Workload) {
        return Plan::NOTHING;
    }
    // A pod of a group that is not watched is read until it is gone.
    let is_read = job.group.is_some() && tracked.source != JobSource::Watch;
    if (job.is_deleted || job.result.is_some()) && !is_read {
        return Plan::NOTHING;
    }
    if let Some(claim) = &job.group {
        return plan_member(view, key, tracked, claim);
    }
    if key.kind == POD_GROUP {
        return plan_group(view, key, tracked);
    }
    let plan = match tracked.source {
        JobSource::Watch => plan_watched(view, key, tracked),
        JobSource::Unread => Plan::NOTHING,
        JobSource::Covered => plan_covered(view, key, tracked),
        // It is no longer managed: it is stopped, and keeps its quota until then.
        JobSource::Read(_) if !job.is_suspended => plan_suspension(view, key, tracked),
        JobSource::Read(_) => plan_stop(job).map_or(Plan::NOTHING, write),
    };
    read_templates_first(view, key, job, plan)
}

/// Reads the templates of the job first if the planned write needs them and they are not kept.
fn read_templates_first<'a>(
    view: View<'a>,
    key: &JobKey,
    job: &JobView,
    plan: Plan<'a>,
) -> Plan<'a> {
    if view.model.has_template_text(key) {
        return plan;
    }
    let kind = view.model.job_kinds.get(key.kind);
    let needs_for_placement = kind.is_some_and(JobAdapter::needs_templates_for_placement);
    let needed = match &plan.action {
        Some(Action::Job(JobAction::CreateWorkload)) => Some(TemplateUse::Workload),
        Some(Action::Job(JobAction::Start(placed))) if !job.has_placement(placed) => {
            needs_for_placement.then_some(TemplateUse::Placement)
        }
        Some(Action::Job(JobAction::RestorePlacement)) => {
            needs_for_placement.then_some(TemplateUse::Placement)
        }
        _ => None,
    };
    match needed {
        None => plan,
        // It gets no workload.
        Some(TemplateUse::Workload) if job.template_source == TemplateSource::TooLarge => {
            Plan::NOTHING
        }
        Some(needed) => write(JobAction::ReadTemplates(needed)),
    }
}

const fn write<'a>(action: JobAction) -> Plan<'a> {
    Plan::write(Action::Job(action))
}

fn plan_watched<'a>(view: View<'a>, key: &JobKey, tracked: &TrackedJob) -> Plan<'a> {
    let job = &*tracked.view;
    let may_run = !job.is_suspended || tracked.tracker.outcome_unknown;
    let own = view.model.workload_of(key, job);
    let own = own.filter(|it| it.object.metadata.deletion_timestamp.is_none());
    if key.kind == POD
        && own.is_none_or(|it| it.tracker.is_settled())
        && let Some(action) = plan_node(job, own, Some((POD_SET_NAME_DEFAULT, 0)))
    {
        return write(action);
    }
    let action = match own {
        // The admission may be written or released without the watch having shown it.
        Some(it) if !it.tracker.is_settled() => None,
        // A job that differs from the admitted one does not start; it stops, and gets another workload.
        Some(it) if it.should_run() && (!job.is_suspended || can_start(job, it)) => {
            plan_start(job, admitted_placements(view.cluster, job, it))
        }
        // The watch may show the admission of an adopted job later than the job.
        Some(it) if !job.is_suspended && !it.holds_quota() && is_adopting(it, view.now_ms) => {
            return adoption_end_ms(it).map_or(Plan::NOTHING, Plan::at);
        }
        _ if may_run => return plan_suspension(view, key, tracked),
        // A workload is created only from the original template, without labels of flavors.
        _ if !job.is_stopped() => plan_stop(job),
        // A workload of this name that belongs to another object is deleted first, if at all. One that was created
        // may not be in the watch yet: it is not created twice.
        None if !view
            .model
            .workloads
            .contains_key(&job.workload_name(key.kind)) =>
        {
            tracked
                .workload_created_at
                .is_none()
                .then_some(JobAction::CreateWorkload)
        }
        _ => None,
    };
    action.map_or(Plan::NOTHING, write)
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
