//! Watch events of workloads.

use crate::key::ObjectKey;
use crate::reconciler::decisions::revert_admission;
use crate::reconciler::input::Change;
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::state::ReconcilerState;
use crate::reconciler::workload_removal::{forget_workload, remove_workload};
use lockkeeper_api::Workload;
use std::sync::Arc;

pub(crate) fn observe_workload(
    state: &mut ReconcilerState,
    change: Change<Box<Workload>>,
    now_ms: i64,
) {
    state.cycle.is_due = true;
    match change {
        Change::Applied(workload) => upsert_workload(state, workload),
        Change::Deleted(key) => remove_workload(state, &key, now_ms),
    }
}

fn upsert_workload(state: &mut ReconcilerState, mut workload: Box<Workload>) {
    state.model.templates.intern(&mut workload);
    let key = ObjectKey::from_metadata(&workload.metadata);
    // The stored key shares its text with all its clones.
    let stored = state.model.workloads.get_key_value(&key);
    let key = stored.map_or(key, |(stored, _)| stored.clone());
    let version = workload.metadata.resource_version.as_deref();
    let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
    let is_other = |it: &TrackedWorkload| it.object.metadata.uid != workload.metadata.uid;
    if state
        .model
        .workloads
        .get(&key)
        .is_some_and(|it| is_other(it))
    {
        forget_workload(state, &key);
    }
    let workload: Arc<Workload> = Arc::from(workload);
    let job = state.model.job_kinds.owner(&workload).map(|(job, _)| job);
    let is_new = !state.model.workloads.contains_key(&key);
    let tracked = state.model.workloads.entry(key.clone());
    let tracked = tracked.or_insert_with(|| {
        let object = Arc::clone(&workload);
        Box::new(TrackedWorkload::new(key.clone(), object, job.clone()))
    });
    state.model.newest_workload_version = state.model.newest_workload_version.max(version);
    if !tracked.tracker.observe(version) && !is_new {
        return;
    }
    let before = std::mem::replace(&mut tracked.object, Arc::clone(&workload));
    // The owner reference may have been edited: the job before is concerned, too.
    let job_before = std::mem::replace(&mut tracked.job, job.clone());
    tracked.is_deleted = false;
    tracked.gone_job = None;
    if before.metadata.generation != workload.metadata.generation
        && let Some(placement) = &mut state.placement
    {
        // With another spec it may fit.
        placement.waiting.remove(&key);
    }
    drop_outdated_decision(state, &key);
    state.sync_workload(&key);
    if is_new && let Some(job) = &job {
        state.model.drop_unneeded_text(job);
    }
    let by_name = state.model.job_by_workload(&key).cloned();
    for job in [job, job_before, by_name].into_iter().flatten() {
        state.enqueue_job_of_workload(job);
    }
    // Both versions: the workload may have changed its queue, and both statuses count it.
    state.enqueue_queues_of(&before);
    state.enqueue_queues_of(&workload);
    state.work_queue.enqueue(ObjectRef::Workload(key));
}

/// Drops a decision of an earlier version.
fn drop_outdated_decision(state: &mut ReconcilerState, key: &ObjectKey) {
    let Some(tracked) = state.model.workloads.get_mut(key) else {
        return;
    };
    let in_flight = tracked.tracker.in_flight;
    let in_flight = in_flight.and_then(|id| state.in_flight.get(id));
    // A write in flight conflicts by itself; its result ends the decision.
    if in_flight.is_some_and(|it| it.purpose.writes_decision()) {
        return;
    }
    tracked.is_stale = false;
    let is_settled = tracked.tracker.version >= tracked.tracker.min_version;
    let decision = state.model.take_decision(key);
    if is_settled || matches!(decision, Some(PendingDecision::Admit(_))) {
        revert_admission(state, key);
    }
}
