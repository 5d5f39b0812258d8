//! Removes workloads. One that is deleted while its job runs keeps its quota in use until the job has stopped.

use super::job_stop::{JobStop, job_stop, may_have_unseen_pods};
use super::model::JobSource;
use super::output::ObjectRef;
use super::placement::units::forget_unit;
use super::state::ReconcilerState;
use super::workload_owner::{job_to_read, job_to_stop};
use super::write_tracker::WriteTracker;
use crate::job_adapters::POD_GROUP;
use crate::key::ObjectKey;
use lockkeeper_cluster_state::journal::mark_evicted;

/// Handles the deletion of a workload.
pub(super) fn remove_workload(state: &mut ReconcilerState, key: &ObjectKey, now_ms: i64) {
    if !keeps_quota(state, key, now_ms) {
        forget_workload(state, key);
        return;
    }
    // Decisions about it cannot be written any more.
    drop(state.model.take_decision(key));
    state.sync_workload(key);
    if let Some(workload) = state.model.workloads.get_mut(key) {
        workload.is_deleted = true;
        // No version will follow: the results of earlier writes must not be waited for.
        workload.tracker = WriteTracker::default();
    }
    // Its quota will be released: no further victim is needed for it.
    if let Some(id) = state.cluster.state().workload(key.key()) {
        mark_evicted(&mut state.cluster, id);
    }
    let view = state.view(now_ms);
    let tracked = view.model.workloads.get(key);
    let job = tracked.and_then(|it| job_to_stop(view, key, it));
    if let Some(job) = job.map(|(job, _)| job.clone()) {
        state.enqueue_job_of_workload(job);
    }
    state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
}

/// Whether the pods of a deleted workload may still be running.
fn keeps_quota(state: &ReconcilerState, key: &ObjectKey, now_ms: i64) -> bool {
    let view = state.view(now_ms);
    let workload = view.model.workloads.get(key);
    let Some(workload) = workload.filter(|it| it.holds_quota()) else {
        return false;
    };
    let Some((job_key, job)) = job_to_stop(view, key, workload) else {
        // Until the lists are complete, a missing job proves nothing: it is read. So are the pods of a group without a
        // queue label.
        let is_complete = view.model.lists.is_synced() && view.model.lists.is_up_to_date();
        let job = job_to_read(view, workload);
        return job.is_some_and(|it| !is_complete || it.kind == POD_GROUP);
    };
    (job.view.result.is_none() || may_have_unseen_pods(view, workload))
        && !view.model.is_covered_by_parent(job_key.kind, &job.view)
        && !matches!(job_stop(view, workload, job), JobStop::Stopped)
}

/// Removes a workload, and releases its quota.
pub(super) fn forget_workload(state: &mut ReconcilerState, key: &ObjectKey) {
    state.cluster.remove_workload(key.key());
    if let Some(placement) = &mut state.placement {
        forget_unit(placement, key);
    }
    let by_name = state.model.job_by_workload(key).cloned();
    let Some(workload) = state.model.remove_workload(key) else {
        return;
    };
    state.cycle.is_due = true;
    // Planning it once more ends its timer, which may be years away.
    state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
    state.enqueue_queues_of(&workload.object);
    for job in by_name.into_iter().chain(workload.job) {
        let Some(tracked) = state.model.jobs.get_mut(&job) else {
            continue;
        };
        if tracked.source == JobSource::Watch {
            // If the job still exists, it gets another workload.
            tracked.workload_created_at = None;
            state.enqueue_job_of_workload(job);
        } else {
            // Only its workload needed its state.
            drop(state.model.remove_job(&job));
            state.work_queue.enqueue(ObjectRef::Job(job));
        }
    }
}
