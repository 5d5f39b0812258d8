//! Plans changed objects, and begins the most urgent writes.

use super::adoption_holds::{adoption_without_quota, has_admission_under_way};
use super::in_flight::InFlightWrite;
use super::job_writes::build_job_write;
use super::output::{ObjectRef, WriteOp, WritePriority, WritePurpose, WriteRequest};
use super::placement::victim_pod::VictimPod;
use super::placement::victim_writes::build_victim_write;
use super::plan::{Action, Plan, WorkloadAction};
use super::planner::plan;
use super::pod_groups::refresh::refresh_if_due;
use super::scheduling::can_schedule;
use super::state::ReconcilerState;
use super::status::job_kind::build_job_kind_status_write;
use super::status::queue::{build_finalizer_write, build_queue_status_write};
use super::status::stuck_eviction::stuck_at_ms;
use super::status::workload::{EventOnSuccess, build_workload_write};
use super::workload_owner::is_orphan;
use super::workload_removal::forget_workload;
use crate::job_adapters::POD_GROUP;
use crate::key::ObjectKey;
use lockkeeper_cluster_state::set_stuck;

/// Plans the objects that have changed.
pub(super) fn plan_dirty(state: &mut ReconcilerState, now_ms: i64) {
    while let Some(object) = state.work_queue.pop_dirty() {
        expire_conflict(state, &object, now_ms);
        match &object {
            ObjectRef::Workload(key) => {
                update_stuck(state, key, now_ms);
                let (model, cluster) = (&state.model, &mut state.cluster);
                let workload = model.workloads.get(key);
                let adoption = workload.and_then(|it| adoption_without_quota(it, now_ms));
                let holds = &mut state.adoption_holds;
                state.cycle.is_due |=
                    holds.update(cluster, key, adoption, now_ms, |cluster, root| {
                        has_admission_under_way(model, cluster, root)
                    });
            }
            ObjectRef::Job(key) if key.kind == POD_GROUP => {
                refresh_if_due(state, &key.name, now_ms);
            }
            _ => {}
        }
        let plan = plan(state, &object, now_ms);
        if let ObjectRef::Workload(key) = &object
            && is_finished_deletion(state, key, &plan)
        {
            forget_workload(state, key);
            state.work_queue.set_ready(object, None);
            continue;
        }
        // Only the priority is kept: like controller-runtime's work queue, the queue holds keys,
        // because the object may change before its write begins (ADR 10).
        let priority = plan.action.map(|it| it.purpose().priority());
        let replan_at_ms = plan.replan_at_ms;
        state.work_queue.set_timer(&object, replan_at_ms);
        state.work_queue.set_ready(object, priority);
    }
}

/// Whether a workload that was deleted already need not keep its quota any longer.
fn is_finished_deletion(state: &ReconcilerState, key: &ObjectKey, plan: &Plan<'_>) -> bool {
    let workload = state.model.workloads.get(key);
    workload.is_some_and(|it| it.is_deleted)
        && matches!(plan.action, Some(Action::Workload(WorkloadAction::Delete)))
}

/// A workload that does not release its quota within the bound is no candidate for preemption any more: other victims
/// are chosen.
fn update_stuck(state: &mut ReconcilerState, key: &ObjectKey, now_ms: i64) {
    let view = state.view(now_ms);
    let Some(workload) = view.model.workloads.get(key) else {
        return;
    };
    let is_orphan = workload.holds_quota() && is_orphan(view, key, workload);
    let orphaned_since_ms = is_orphan.then(|| workload.orphaned_since_ms.unwrap_or(now_ms));
    if let Some(workload) = state.model.workloads.get_mut(key) {
        workload.orphaned_since_ms = orphaned_since_ms;
    }
    let view = state.view(now_ms);
    let workload = view.model.workloads.get(key);
    let at_ms = workload.and_then(|it| stuck_at_ms(view, it));
    let is_stuck = at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if workload.is_some_and(|it| it.is_stuck() != is_stuck) {
        state.model.set_stuck(key, is_stuck);
        set_stuck(&mut state.cluster, key.key(), is_stuck);
        state.cycle.is_due = true;
    }
}

/// Begins the most urgent writes, as many as may be in flight.
pub(super) fn dispatch(state: &mut ReconcilerState, now_ms: i64) -> Vec<WriteRequest> {
    let mut writes = Vec::new();
    while state.in_flight.has_capacity()
        && let Some(priority) = state.work_queue.highest_priority()
    {
        // The next cycle may change pending reasons: they, and the problems of pod groups, are written when no cycle is due, and only
        // so many in a second. The journal begins before that cycle, and may wait for a decision that ends with such a write.
        let is_cycle_next = can_schedule(state) && !state.journal.is_due;
        if priority == WritePurpose::PendingReason.priority()
            && (is_cycle_next
                || !state.event_recorder.take_pending_reason_token(
                    now_ms,
                    state.settings.pending_reason_writes_per_second,
                ))
        {
            break;
        }
        let Some(object) = state.work_queue.pop_ready() else {
            break;
        };
        // The write may be obsolete by now: inputs, time and cycles change plans without enqueuing.
        if let Some((purpose, op)) = build_write(state, &object, priority, now_ms) {
            writes.push(begin_write(state, object, purpose, op));
        }
    }
    writes
}

fn begin_write(
    state: &mut ReconcilerState,
    object: ObjectRef,
    purpose: WritePurpose,
    op: WriteOp,
) -> WriteRequest {
    let version = state.tracker(&object).map_or(0, |it| it.version);
    let preemption = match (&object, &state.placement) {
        (ObjectRef::VictimPod(key), Some(placement)) => {
            placement.victims.get(key).and_then(VictimPod::preemption)
        }
        _ => None,
    };
    let id = state.in_flight.begin(InFlightWrite {
        object: object.clone(),
        purpose,
        version,
        preemption,
    });
    if let Some(tracker) = state.tracker_mut(&object) {
        tracker.in_flight = Some(id);
    }
    WriteRequest {
        id,
        object,
        purpose,
        op,
    }
}

/// Plans the object as it is now and builds the write from that plan; `None` if nothing is to be written, or only
/// something less urgent, for which the object gets another place in the queue.
fn build_write(
    state: &mut ReconcilerState,
    object: &ObjectRef,
    priority: WritePriority,
    now_ms: i64,
) -> Option<(WritePurpose, WriteOp)> {
    expire_conflict(state, object, now_ms);
    let plan = plan(state, object, now_ms);
    let replan_at_ms = plan.replan_at_ms;
    let Some(action) = plan.action else {
        // A decision was dropped since: what was due later is due again.
        state.work_queue.set_timer(object, replan_at_ms);
        return None;
    };
    if let ObjectRef::Workload(key) = object
        && state
            .model
            .workloads
            .get(key)
            .is_some_and(|it| it.is_deleted)
        && matches!(action, Action::Workload(WorkloadAction::Delete))
    {
        // It is gone already; the next planning releases its quota.
        state.work_queue.enqueue(object.clone());
        return None;
    }
    let purpose = action.purpose();
    if purpose.priority() > priority {
        let less = purpose.priority();
        state.work_queue.set_ready(object.clone(), Some(less));
        return None;
    }
    let op = match (object, action) {
        (ObjectRef::Workload(key), Action::Workload(action)) => {
            let view = state.view(now_ms);
            let workload = state.model.workloads.get(key)?;
            let write = build_workload_write(view, workload, &action)?;
            let op = write.op;
            record_workload_write(state, key, purpose, write.event);
            op
        }
        (ObjectRef::Job(key), Action::Job(action)) => {
            build_job_write(state.view(now_ms), key, &action)?
        }
        (ObjectRef::Event(number), Action::Event) => {
            state.event_recorder.build_write(*number, now_ms)?
        }
        (ObjectRef::VictimPod(key), Action::VictimPod(action)) => {
            build_victim_write(state.view(now_ms), key, action)?
        }
        (ObjectRef::JobKind(name), Action::JobKindStatus) => {
            build_job_kind_status_write(state.view(now_ms), name)?
        }
        (_, Action::RemoveFinalizer) => build_finalizer_write(state, object, false)?,
        (_, Action::AddFinalizer) => build_finalizer_write(state, object, true)?,
        (_, Action::QueueStatus) => build_queue_status_write(state, object, now_ms)?,
        _ => return None,
    };
    Some((purpose, op))
}

fn record_workload_write(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    purpose: WritePurpose,
    event: EventOnSuccess,
) {
    let EventOnSuccess::Replace(event) = event else {
        return;
    };
    if purpose == WritePurpose::Evict {
        // The plan has used the jitter: the next eviction gets another.
        state.random.next_number();
    }
    if let Some(workload) = state.model.workloads.get_mut(key) {
        workload.in_flight_record = event.map(Box::new);
    }
}

/// Ends the wait for the version that a write conflicted with. The watch may never show it; the write is
/// planned again on the current version, and its result shows whether that is the newest.
fn expire_conflict(state: &mut ReconcilerState, object: &ObjectRef, now_ms: i64) {
    let Some(tracker) = state.tracker_mut(object) else {
        return;
    };
    if !tracker.conflicted || tracker.backoff.retry_at_ms > now_ms {
        return;
    }
    tracker.conflicted = false;
    tracker.min_version = tracker.version;
    // A job and its workload each wait until the other is settled.
    match object {
        ObjectRef::Workload(key) => {
            let workload = state.model.workloads.get(key);
            if let Some(job) = workload.and_then(|it| it.job.clone()) {
                state.enqueue_job_of_workload(job);
            }
        }
        ObjectRef::Job(key) => {
            if let Some(job) = state.model.jobs.get(key) {
                let workload = job.view.workload_name(key.kind);
                state.work_queue.enqueue(ObjectRef::Workload(workload));
            }
        }
        _ => {}
    }
}
