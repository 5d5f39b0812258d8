//! Scheduling cycles, and the records of their decisions.

use super::decisions::{revert_admission, revert_decision};
use super::model::PendingReason;
use super::output::ObjectRef;
use super::pending_decision::{AdmissionDecision, PendingDecision, PreemptionDecision};
use super::placement::admission_placement::{check_placement_after, plan_admission};
use super::state::ReconcilerState;
use super::status::conditions::epoch_seconds;
use super::status::pending_reason::{
    namespace_mismatch, pending_reason_for_entry, planned_start_text, waiting_for_adoption,
    waiting_for_nodes,
};
use crate::key::ObjectKey;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::journal::mark_evicted;
use lockkeeper_cluster_state::{PreemptionCause, admission, admission_after_preemption};
use lockkeeper_preemption::requeue::may_admit;
use lockkeeper_preemption::{
    DampingView, Decision, Entry, FlavorAssignment, Mode, StartBound, State, Step, TreeView, Victim,
};

/// The end of the message of an admission by backfill. The head may belong to another tenant, so it has no name here.
const BACKFILLED: &str = "; ahead of the head of the queue, without delaying it (backfill)";

/// The most admissions that are withdrawn between two inputs.
const WITHDRAWN_MAX: u32 = 64;

/// Whether a cycle may find something to do, and its decisions would be written soon.
pub(super) fn can_schedule(state: &ReconcilerState) -> bool {
    // Twice the writes in flight: a longer backlog would be decided on outdated objects.
    let decisions_max = state.settings.writes_max.saturating_mul(2).max(2);
    let wake_at_s = DampingView::new(state.cluster.state()).next_wake_s();
    let is_awake = wake_at_s.is_some_and(|at_s| at_s <= state.cluster.now_ms().div_euclid(1000));
    (state.cycle.is_due || is_awake)
        && state.model.pending_decisions() < decisions_max
        && !is_admission_blocked(state)
}

/// Whether `blockAdmission` forbids further admissions: one workload is admitted at a time, and the next only
/// when the pods of all admitted workloads are ready.
pub(super) fn is_admission_blocked(state: &ReconcilerState) -> bool {
    if !state.settings.blocks_admission() {
        return false;
    }
    if state.model.pending_decisions() > 0 {
        return true;
    }
    let workloads = state.model.workloads.values();
    let admitted: Vec<_> = workloads
        .filter(|it| it.holds_quota())
        .map(|it| state.cluster.lifecycle_state(&it.object))
        .collect();
    !may_admit(&state.settings.requeue, &admitted)
}

/// Runs one cycle.
pub(super) fn run_cycle(state: &mut ReconcilerState, now_ms: i64) {
    let cycle = state.cluster.next_cycle(now_ms, true);
    state.counters.increment_cycles();
    let admits_one = state.settings.blocks_admission();
    let mut has_admitted = false;
    let mut has_changed = false;
    let held = state.adoption_holds.trees(&state.cluster, now_ms);
    for entry in &cycle.entries {
        // An entry that becomes inadmissible makes room for the next; a flavor search may continue.
        has_changed |= state.cycle.searches.record(state.cluster.state(), entry);
        if held.holds(state.cluster.state(), entry) {
            wait_for_adoption(state, entry);
            continue;
        }
        state.counters.increment_decision(entry.decision.as_str());
        match &entry.decision {
            // blockAdmission: the next workload is admitted when the pods of this one are ready.
            Decision::Admit if admits_one && has_admitted => {
                let key = entry_key(state, entry);
                revert_admission(state, &key);
            }
            Decision::Admit => {
                has_admitted |= decide_admission(state, entry, now_ms);
                // Without room on nodes it leaves its queue: the next one is tried.
                has_changed = true;
            }
            Decision::Preempt(victims) => match check_nodes(state, entry, victims) {
                Ok(()) => {
                    has_changed |= decide_preemptions(state, entry, victims);
                    update_pending_reason(state, entry, None);
                }
                Err(obstacles) => {
                    let key = entry_key(state, entry);
                    wait_for_nodes(state, &key, &obstacles);
                    // It leaves its queue: the next one is tried.
                    has_changed = true;
                }
            },
            _ => {
                let mut bounds = cycle.start_bounds.iter();
                let bound = bounds.find(|it| it.workload == entry.workload);
                update_pending_reason(state, entry, bound);
            }
        }
    }
    has_changed |= state.cycle.searches.requeue(&mut state.cluster);
    // Both change the heads of queues, so the next cycle may decide differently.
    has_changed |= cycle.has_reactivated || !cycle.out_of_scope.is_empty();
    for id in &cycle.out_of_scope {
        let key = ObjectKey::from_key(state.cluster.state().workload_name(*id));
        set_pending_reason(state, &key, namespace_mismatch());
    }
    state.cycle.is_due = has_changed;
}

/// Leaves a workload pending. The next cycle after the hold decides on it again.
fn wait_for_adoption(state: &mut ReconcilerState, entry: &Entry) {
    let key = entry_key(state, entry);
    revert_admission(state, &key);
    set_pending_reason(state, &key, waiting_for_adoption());
}

fn entry_key(state: &ReconcilerState, entry: &Entry) -> ObjectKey {
    ObjectKey::from_key(state.cluster.state().workload_name(entry.workload))
}

/// Records an admission; false if it cannot be written.
fn decide_admission(state: &mut ReconcilerState, entry: &Entry, now_ms: i64) -> bool {
    let key = entry_key(state, entry);
    let core = state.cluster.state();
    let admission = admission(core, entry.workload, entry.assignment());
    let Some(admission) = admission else {
        revert_admission(state, &key);
        return false;
    };
    let borrowed = match borrowed_resources(core, entry) {
        it if it.is_empty() => String::new(),
        it => format!("; borrows {}", it.join(", ")),
    };
    let nodes = match plan_admission(state, &key, &admission) {
        Ok(nodes) => nodes,
        Err(obstacles) => {
            wait_for_nodes(state, &key, &obstacles);
            return false;
        }
    };
    let is_backfilled = is_backfilled(entry);
    let Some(workload) = state.model.workloads.get_mut(&key) else {
        revert_admission(state, &key);
        return false;
    };
    let queue = &admission.cluster_queue;
    let waited_s = wait_seconds(&workload.object, now_ms);
    let backfilled = if is_backfilled { BACKFILLED } else { "" };
    let message = format!(
        "Quota reserved in ClusterQueue {queue}, {waited_s} s after creation{borrowed}{backfilled}"
    );
    workload.pending_reason = None;
    let decision = AdmissionDecision {
        admission,
        message,
        nodes,
    };
    let decision = PendingDecision::Admit(Box::new(decision));
    state.model.set_decision(&key, decision);
    if is_backfilled {
        state.counters.increment_backfilled();
    }
    state.work_queue.enqueue(ObjectRef::Workload(key));
    true
}

/// Whether an admission passes the head of its queue.
fn is_backfilled(entry: &Entry) -> bool {
    let mut steps = entry.trace.steps().iter();
    steps.any(|it| matches!(it, Step::Backfilled { .. }))
}

/// Checks that a workload fits on nodes when these victims are gone: no workload is preempted for one that then does not
/// run. Costs a plan, if there is a victim without an earlier eviction.
fn check_nodes(
    state: &mut ReconcilerState,
    entry: &Entry,
    victims: &[Victim],
) -> Result<(), String> {
    let core = state.cluster.state();
    let keys = victims.iter();
    let keys = keys.map(|it| ObjectKey::from_key(core.workload_name(it.workload)));
    let keys: Vec<ObjectKey> = keys.collect();
    if !keys.iter().any(|key| is_new_victim(state, key)) {
        return Ok(());
    }
    match admission_after_preemption(core, entry.workload, entry.assignment()) {
        None => Ok(()),
        Some(admission) => {
            let key = entry_key(state, entry);
            check_placement_after(state, &key, &admission, &keys)
        }
    }
}

/// Whether a victim has to be evicted: it has no earlier decision or eviction.
fn is_new_victim(state: &ReconcilerState, key: &ObjectKey) -> bool {
    let workload = state.model.workloads.get(key);
    workload.is_some_and(|it| it.decision().is_none() && !it.is_evicted() && !it.is_deleted)
}

/// Takes a workload that does not fit on nodes out of its queue until nodes change.
fn wait_for_nodes(state: &mut ReconcilerState, key: &ObjectKey, obstacles: &str) {
    if let Some(placement) = &mut state.placement {
        placement.waiting.insert(key.clone(), 0);
    }
    revert_admission(state, key);
    state.sync_workload(key);
    set_pending_reason(state, key, waiting_for_nodes(obstacles));
}

/// The names of the resources that an assignment borrows, sorted.
fn borrowed_resources<'a>(core: &'a State, entry: &Entry) -> Vec<&'a str> {
    let is_borrowed = |it: &&FlavorAssignment| it.mode == Mode::Fit && it.borrowing_level > 0;
    let pod_sets = entry.assignment().pod_sets.iter();
    let mut names: Vec<&str> = pod_sets
        .flat_map(|it| &it.flavors)
        .filter(is_borrowed)
        .map(|it| core.resource_name(it.resource))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Counts an admission that was written; one that was withdrawn before is not counted.
pub(super) fn count_admission(state: &mut ReconcilerState, key: &ObjectKey) {
    if let Some(workload) = state.model.workloads.get(key) {
        let waited_s = wait_seconds(&workload.object, state.cluster.now_ms());
        state.admission_waits_s.push(waited_s);
        state.counters.increment_admitted();
    }
}

/// Records the eviction of victims without an earlier one; false if there are none.
fn decide_preemptions(state: &mut ReconcilerState, entry: &Entry, victims: &[Victim]) -> bool {
    let preemptor = entry_key(state, entry);
    let preemptor_path = TreeView::new(state.cluster.state_mut()).path(entry.queue);
    let (preemptor_uid, job_uid) = workload_and_job_uids(state, &preemptor);
    let mut has_new = false;
    for victim in victims {
        let key = ObjectKey::from_key(state.cluster.state().workload_name(victim.workload));
        // A victim whose admission is not written yet stays pending, without a write.
        if withdraw_admission(state, &key) {
            has_new = true;
            continue;
        }
        // A victim of an earlier cycle: its quota is still in use, and its eviction is under way.
        if !is_new_victim(state, &key) {
            continue;
        }
        let queue = state.cluster.state().workload_view(victim.workload).queue();
        let victim_path = queue.map(|id| TreeView::new(state.cluster.state_mut()).path(id));
        let decision = PreemptionDecision {
            cause: PreemptionCause::Quota(victim.reason),
            preemptor: preemptor.clone(),
            preemptor_uid: preemptor_uid.clone(),
            job_uid: job_uid.clone(),
            queue_paths: [preemptor_path.clone(), victim_path.unwrap_or_default()],
        };
        let decision = PendingDecision::Preempt(Box::new(decision));
        state.model.set_decision(&key, decision);
        state
            .counters
            .increment_victims(PreemptionCause::Quota(victim.reason));
        // The next cycle must not choose it again, and may count on its quota.
        mark_evicted(&mut state.cluster, victim.workload);
        state.work_queue.enqueue(ObjectRef::Workload(key));
        has_new = true;
    }
    has_new
}

/// Withdraws an admission that is not written yet; false if it is written, or the limit is reached.
pub(super) fn withdraw_admission(state: &mut ReconcilerState, key: &ObjectKey) -> bool {
    let Some(workload) = state.model.workloads.get(key) else {
        return false;
    };
    let is_unwritten = workload.tracker.in_flight.is_none() && !workload.tracker.outcome_unknown;
    // Limited between two inputs: a preemption loop in memory would not end, and writes pace it.
    if !is_unwritten
        || !matches!(workload.decision(), Some(PendingDecision::Admit(_)))
        || state.cycle.withdrawn_admissions >= WITHDRAWN_MAX
    {
        return false;
    }
    state.cycle.withdrawn_admissions = state.cycle.withdrawn_admissions.saturating_add(1);
    if let Some(decision) = state.model.take_decision(key) {
        revert_decision(state, key, &decision);
    }
    state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
    true
}

/// The uid of a workload and of the job that controls it; empty if unknown.
pub(super) fn workload_and_job_uids(state: &ReconcilerState, key: &ObjectKey) -> (String, String) {
    let Some(workload) = state.model.workloads.get(key) else {
        return (String::new(), String::new());
    };
    let metadata = &workload.object.metadata;
    let mut owners = metadata.owner_references.iter().flatten();
    let job = owners.find(|it| it.controller == Some(true));
    (
        metadata.uid.clone().unwrap_or_default(),
        job.map(|it| it.uid.clone()).unwrap_or_default(),
    )
}

fn update_pending_reason(state: &mut ReconcilerState, entry: &Entry, planned: Option<&StartBound>) {
    let key = entry_key(state, entry);
    let workload = state.model.workloads.get(&key);
    // Composing a message costs time that is lost if it cannot be written soon.
    if workload.is_some_and(|it| it.pending_reason.is_some())
        && !state.event_recorder.has_pending_reason_token()
    {
        return;
    }
    let mut reason = pending_reason_for_entry(state.cluster.state(), entry);
    if let Some(planned) = planned {
        reason.message.push_str(&planned_start_text(planned));
    }
    set_pending_reason(state, &key, reason);
}

fn set_pending_reason(state: &mut ReconcilerState, key: &ObjectKey, reason: PendingReason) {
    if let Some(workload) = state.model.workloads.get_mut(key)
        && workload.pending_reason.as_deref() != Some(&reason)
    {
        workload.pending_reason = Some(Box::new(reason));
        state.work_queue.enqueue(ObjectRef::Workload(key.clone()));
    }
}

/// Seconds since the workload was created.
fn wait_seconds(workload: &Workload, now_ms: i64) -> i64 {
    let created = workload.metadata.creation_timestamp.as_ref();
    let waited_s = created.map_or(0, |created_at| {
        now_ms
            .div_euclid(1000)
            .saturating_sub(epoch_seconds(created_at))
    });
    waited_s.max(0)
}
