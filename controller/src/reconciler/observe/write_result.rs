//! Results of writes.

use super::job::{observe_job_read, observe_pod_read, observe_template_read};
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::decisions::revert_admission;
use crate::reconciler::in_flight::InFlightWrite;
use crate::reconciler::model::{JobSource, TrackedWorkload};
use crate::reconciler::output::{ObjectRef, WriteId, WritePurpose, WriteResult};
use crate::reconciler::pending_decision::PendingDecision;
use crate::reconciler::placement::nominations::note_directed_pod;
use crate::reconciler::placement::victim_pod::PodPreemption;
use crate::reconciler::scheduling::count_admission;
use crate::reconciler::state::ReconcilerState;
use lockkeeper_cluster_state::placement_state::VictimRef;

pub(crate) fn observe_write_result(
    state: &mut ReconcilerState,
    id: WriteId,
    result: &WriteResult,
    now_ms: i64,
) {
    let Some(write) = state.in_flight.finish(id) else {
        return;
    };
    let random = state.random.next_number();
    let is_done = matches!(result, WriteResult::Done(_));
    let InFlightWrite {
        object,
        purpose,
        version,
        preemption,
    } = write;
    state.in_flight.adjust_limit(&object, result);
    if let (ObjectRef::VictimPod(pod), Some(preemption)) = (&object, &preemption)
        && matches!(result, WriteResult::Done(_) | WriteResult::DryRun)
    {
        record_preemption(state, pod, purpose, preemption);
    }
    let is_template_read = purpose == WritePurpose::ReadTemplates
        || matches!(object, ObjectRef::Job(_)) && purpose != WritePurpose::ReadPod;
    let has_templates = match result {
        WriteResult::Read(read) if is_template_read => observe_template_read(state, read),
        _ => false,
    };
    let tracker = state.tracker_mut(&object);
    let Some(tracker) = tracker.filter(|it| it.in_flight == Some(id)) else {
        // The object was deleted and created again since the write began.
        return;
    };
    let has_own_version = !matches!(
        purpose,
        WritePurpose::CreateWorkload
            | WritePurpose::ReadJob
            | WritePurpose::ReadPod
            | WritePurpose::ReadTemplates
            | WritePurpose::ReadPlacement
    );
    let has_changed = tracker.version > version && has_own_version;
    let result = match result {
        // The watch has already shown a newer version, from this write or another one.
        WriteResult::Failed(_) | WriteResult::ServerError(_) if has_changed => {
            &WriteResult::Conflict
        }
        WriteResult::Read(_) if is_template_read && !has_templates => {
            &WriteResult::Failed("the watch does not show the job as it is".to_owned())
        }
        result => result,
    };
    tracker.handle_result(purpose, version, result, now_ms, random);
    match &object {
        ObjectRef::Workload(key) if purpose == WritePurpose::ReadJob => {
            if let WriteResult::Read(read) = result {
                observe_job_read(state, key, read, now_ms);
            }
            record_workload_result(state, key, purpose, result);
            enqueue_job_after_read(state, key);
        }
        ObjectRef::Workload(key) => handle_workload_write_result(state, key, purpose, result),
        ObjectRef::Job(key) => {
            handle_job_write_result(state, key, purpose, result, now_ms);
            if purpose == WritePurpose::ReadPod
                && let WriteResult::Read(read) = result
            {
                observe_pod_read(state, key, read, now_ms);
            }
        }
        ObjectRef::Event(number) => state.event_recorder.handle_write_result(*number, is_done),
        ObjectRef::VictimPod(key) => handle_victim_result(state, key, purpose, result, now_ms),
        _ => {}
    }
    state.work_queue.enqueue(object);
    state.enqueue_events();
}

/// Enqueues the job of a workload, and its pods: one that has come back waits for the end of the read, and no watch event
/// follows it.
fn enqueue_job_after_read(state: &mut ReconcilerState, workload: &ObjectKey) {
    let tracked = state.model.workloads.get(workload);
    if let Some(job) = tracked.and_then(|it| it.job.clone()) {
        state.enqueue_job_of_workload(job);
    }
}

fn handle_job_write_result(
    state: &mut ReconcilerState,
    key: &JobKey,
    purpose: WritePurpose,
    result: &WriteResult,
    now_ms: i64,
) {
    let Some(job) = state.model.jobs.get_mut(key) else {
        return;
    };
    if purpose == WritePurpose::StartJob
        && matches!(result, WriteResult::Done(_) | WriteResult::Failed(_))
    {
        job.record_start(now_ms);
    }
    if !matches!(job.source, JobSource::Watch | JobSource::Covered) {
        // No watch event will show the result.
        job.source = JobSource::Unread;
        // It is read before the next write instead.
        job.tracker.min_version = job.tracker.version;
    }
    if purpose == WritePurpose::CreateWorkload {
        job.workload_created_at = match result {
            // A version that the watch has passed is known; the workload may even be deleted again.
            WriteResult::Done(version) => {
                Some(*version).filter(|it| *it > state.model.newest_workload_version)
            }
            WriteResult::DryRun => Some(u64::MAX),
            _ => None,
        };
    }
    if let Some(claim) = &job.view.group {
        // Its workload may wait for the end of this write.
        let group = claim.key();
        state.work_queue.enqueue(ObjectRef::Job(group));
    }
    let workload = job.view.workload_name(key.kind);
    state
        .work_queue
        .enqueue(ObjectRef::Workload(workload.clone()));
    match result {
        WriteResult::Rejected(why) => {
            let recorder = &mut state.event_recorder;
            recorder.record_rejected_job_write(&state.model.job_kinds, key, purpose, why);
        }
        WriteResult::Done(_) if purpose == WritePurpose::SoftEvictPod => {
            let uid = &job.view.uid;
            state.event_recorder.record_soft_eviction(&key.name, uid);
        }
        _ => {}
    }
    if purpose == WritePurpose::NominatePodNode {
        // Its workload does not wait for a write that fails.
        note_directed_pod(state, &workload);
    }
}

/// Records the preemption of a pod whose eviction or mark was accepted.
fn record_preemption(
    state: &mut ReconcilerState,
    pod: &ObjectKey,
    purpose: WritePurpose,
    preemption: &PodPreemption,
) {
    let recorder = &mut state.event_recorder;
    match purpose {
        WritePurpose::EvictPod => recorder.record_pod_eviction(pod, preemption),
        WritePurpose::SoftEvictPod => recorder.record_soft_eviction(pod, &preemption.uid),
        _ => return,
    }
    state.enqueue_events();
}

fn handle_victim_result(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    purpose: WritePurpose,
    result: &WriteResult,
    now_ms: i64,
) {
    let Some(placement) = &mut state.placement else {
        return;
    };
    match result {
        WriteResult::Done(_) | WriteResult::DryRun => {
            if let Some(victim) = placement.victims.get_mut(key) {
                if purpose == WritePurpose::MarkVictimPod {
                    victim.is_marked = true;
                } else {
                    victim.requested_at_ms = Some(now_ms);
                }
                // An accepted eviction ends the pod: its room is waited for, and is not planned again with each event.
                let is_evicted =
                    purpose == WritePurpose::EvictPod && matches!(result, WriteResult::Done(_));
                if is_evicted || purpose == WritePurpose::SoftEvictPod {
                    placement.nodes.set_pod_evicted(&VictimRef::Pod {
                        namespace: key.namespace(),
                        name: key.name(),
                        uid: &victim.uid,
                    });
                }
            }
        }
        // The watch shows its deletion.
        WriteResult::NotFound | WriteResult::Conflict => {
            placement.victims.remove(key);
        }
        _ => {}
    }
}

/// What a result means for the decision about a workload.
#[derive(Clone, Copy)]
struct DecisionOutcome {
    /// The decision is written, or will not be.
    is_over: bool,
    /// The cluster state goes back to what the object shows.
    is_reverted: bool,
}

fn handle_workload_write_result(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    purpose: WritePurpose,
    result: &WriteResult,
) {
    let Some(workload) = state.model.workloads.get_mut(key) else {
        return;
    };
    // The same message would be rejected again.
    if purpose == WritePurpose::PendingReason && matches!(result, WriteResult::Rejected(_)) {
        workload.pending_reason = None;
    }
    // During the backoff of a rejected admission other workloads may use the quota.
    let hold_until_s = workload.tracker.hold_until_s(purpose, result);
    let outcome = decision_outcome(workload, purpose, result);
    if outcome.is_over {
        workload.is_stale = false;
    }
    let job = workload.job.clone();
    if outcome.is_over {
        drop(state.model.take_decision(key));
    }
    if outcome.is_reverted {
        revert_admission(state, key);
        if let Some(until_s) = hold_until_s {
            state.cluster.hold_until(key.key(), until_s);
        }
        state.sync_workload(key);
    }
    record_workload_result(state, key, purpose, result);
    if let Some(job) = job {
        state.enqueue_job_of_workload(job);
    }
    state.cycle.is_due = true;
}

fn decision_outcome(
    workload: &TrackedWorkload,
    purpose: WritePurpose,
    result: &WriteResult,
) -> DecisionOutcome {
    let writes_decision = purpose.writes_decision();
    let was_stale = workload.is_stale;
    let (is_over, is_reverted) = match result {
        // The watch will show the write, or has shown it. Success of another write proves that the write of
        // the stale decision was not executed.
        WriteResult::Done(_) | WriteResult::DryRun => {
            let is_over = writes_decision || was_stale;
            let is_disproved = was_stale && !writes_decision;
            let is_shown =
                workload.tracker.is_settled() && (is_over || workload.decision().is_none());
            (is_over, is_disproved || is_shown)
        }
        WriteResult::Read(_) => (false, false),
        // The write may have been executed: an admission keeps its quota until that is known.
        WriteResult::Failed(_) | WriteResult::ServerError(_) => {
            let is_over =
                was_stale && matches!(workload.decision(), Some(PendingDecision::Preempt(_)));
            (is_over, is_over)
        }
        // A conflict after an unknown outcome may be with our own earlier write.
        WriteResult::Conflict
            if workload.tracker.outcome_unknown
                && matches!(workload.decision(), Some(PendingDecision::Admit(_))) =>
        {
            (false, false)
        }
        // The decision is based on another version of the object.
        WriteResult::Conflict | WriteResult::AlreadyExists | WriteResult::NotFound => (true, true),
        WriteResult::Rejected(_) => (writes_decision, writes_decision),
    };
    DecisionOutcome {
        is_over,
        is_reverted,
    }
}

/// Counts and records the result in metrics and events.
fn record_workload_result(
    state: &mut ReconcilerState,
    key: &ObjectKey,
    purpose: WritePurpose,
    result: &WriteResult,
) {
    if purpose == WritePurpose::Admit
        && matches!(result, WriteResult::Done(_) | WriteResult::DryRun)
    {
        count_admission(state, key);
    }
    let Some(workload) = state.model.workloads.get(key) else {
        return;
    };
    let recorder = &mut state.event_recorder;
    match result {
        WriteResult::Done(_) => {
            if purpose == WritePurpose::Evict {
                let record = workload.in_flight_record.as_ref();
                state
                    .evictions
                    .extend(record.and_then(|it| it.eviction.clone()));
            }
            let per_second = state.settings.eviction_events_per_second;
            recorder.record_eviction(key, workload, purpose, per_second);
        }
        WriteResult::Rejected(why) => {
            recorder.record_rejected_workload_write(key, workload, purpose, why);
        }
        _ => {}
    }
}
