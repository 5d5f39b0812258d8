//! The answer about a workload.

use crate::answer::{Answer, Eviction, Forecast, HistoryEntry, Situation, StartBound, Subject};
use crate::eviction::eviction;
use crate::forecast::forecast;
use crate::identity::{controlling_job, queue_name};
use crate::listing::{one_line, reported_reason};
use crate::node_placement::{explain_nomination, explain_placement};
use crate::pending::explain_pending;
use crate::preemptors::{preemptors, preemptors_on_nodes};
use crate::quota::{exceeds_nominal, requested_quota, used_quota};
use crate::start_bound::start_bound;
use crate::trial::Trial;
use crate::world::World;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue::StopPolicy;
use lockkeeper_cluster_state::pending_reason::{
    INADMISSIBLE, PENDING, WAITING_FOR_NODES, not_queued_message,
};
use lockkeeper_cluster_state::placement_state::PlacementState;
use lockkeeper_cluster_state::{NotQueuedReason, WorkloadPhase, kept_out};
use lockkeeper_preemption::{WorkloadId, WorkloadView};

/// The conditions that report an event of the past.
const HISTORY: [&str; 4] = ["Evicted", "Preempted", "Requeued", "DeactivationTarget"];

/// What the latest start assumes.
const BOUND_ASSUMPTION: &str = "for the latest start: workloads release their quota at the end of their maximum execution time or earlier, none is evicted, and no other object changes";

/// The most objects that an answer names.
const UNREADABLE_MAX: usize = 10;

/// The answer about a workload, by its key `namespace/name`; `None` if there is no such workload.
///
/// Costs a few decisions on the workload for each kind of change, and at most one for each other workload that uses quota
/// which it lacks.
#[must_use]
pub fn explain(world: &World, key: &str) -> Option<Answer> {
    let workload = world.workload(key)?;
    let mut answer = empty_answer(world, workload);
    answer.eviction = eviction(world, key, workload);
    let phase = world.cluster.phase(key)?;
    match phase {
        Err(error) => {
            set(
                &mut answer,
                Situation::Invalid,
                INADMISSIBLE,
                error.to_string(),
            );
        }
        Ok(phase)
            if world.is_partial
                && phase != WorkloadPhase::Admitted
                && phase != WorkloadPhase::NotQueued(NotQueuedReason::Finished) =>
        {
            let (reason, message) = reported_reason(workload);
            answer.situation = Situation::Pending;
            answer.summary = match message.as_str() {
                "" => "waits; the scheduler has not reported a reason yet".to_owned(),
                message => format!("waits: {message}"),
            };
            answer.reason = reason;
            answer.message = message;
        }
        Ok(WorkloadPhase::NotQueued(reason)) => {
            let message = not_queued_message(world.cluster.objects(), workload, reason);
            let is_finished = reason == NotQueuedReason::Finished;
            let situation = if is_finished {
                Situation::Finished
            } else {
                Situation::NotQueued
            };
            set(&mut answer, situation, INADMISSIBLE, message);
        }
        Ok(WorkloadPhase::Admitted) => explain_running(world, key, &mut answer),
        Ok(phase @ (WorkloadPhase::Pending | WorkloadPhase::OnHold(_))) => {
            explain_queued(world, key, phase, &mut answer);
        }
    }
    Some(answer)
}

fn set(answer: &mut Answer, situation: Situation, reason: &str, message: String) {
    answer.situation = situation;
    reason.clone_into(&mut answer.reason);
    answer.summary = format!("is not queued: {message}");
    if situation == Situation::Finished {
        "has finished".clone_into(&mut answer.summary);
    }
    answer.message = message;
}

fn explain_queued(world: &World, key: &str, phase: WorkloadPhase, answer: &mut Answer) {
    answer.situation = Situation::Pending;
    if let Some(why) = inactive_reason(world, answer) {
        INADMISSIBLE.clone_into(&mut answer.reason);
        answer.summary = format!("waits: {why}");
        answer.message = why;
        return;
    }
    let Some(workload) = world.workload(key) else {
        return;
    };
    let kept_out = kept_out(workload);
    // Before the trial, so that the state is not copied a third time.
    let forecasted = (phase == WorkloadPhase::Pending && kept_out.is_none())
        .then(|| forecast(world, world.cluster.clone(), key));
    let Some((mut trial, _)) = trial(world, key, answer) else {
        return;
    };
    if let Some(condition) = kept_out {
        condition.reason.clone_into(&mut answer.reason);
        condition.message.clone_into(&mut answer.message);
        answer.summary = format!("waits: {}", condition.message);
        let waits_for_nodes = condition.reason == WAITING_FOR_NODES;
        answer.quota = requested_quota(&mut trial);
        if waits_for_nodes {
            explain_nodes(world, &mut trial, world.nodes.clone(), &[], answer);
        }
        return;
    }
    if let WorkloadPhase::OnHold(until_s) = phase {
        answer.situation = Situation::BackingOff;
        PENDING.clone_into(&mut answer.reason);
        let until = Timestamp::from_second(until_s);
        let until_is_known = until.is_ok();
        let until = until.map_or_else(
            |_| "the cause of its eviction is gone".to_owned(),
            |it| it.to_string(),
        );
        answer.message = format!("In backoff until {until}");
        let cause = answer.eviction.as_ref().map(cause).unwrap_or_default();
        answer.summary = format!("is in backoff until {until}, after an eviction{cause}");
        answer.quota = requested_quota(&mut trial);
        if until_is_known {
            set_start_bound(answer, start_bound(world, &trial, Some(until_s), None));
        }
        return;
    }
    let Some(forecasted) = forecasted else {
        return;
    };
    let outlook = explain_pending(&mut trial, forecasted, answer);
    match &answer.forecast {
        Some(Forecast::Admitted { .. }) => {
            explain_nodes(world, &mut trial, outlook.nodes, &[], answer);
        }
        Some(Forecast::Preempts { victims, .. }) => {
            let victims = victims.clone();
            explain_nodes(world, &mut trial, outlook.nodes, &victims, answer);
        }
        Some(Forecast::Waits { .. }) => {
            let bound = start_bound(world, &trial, None, outlook.starts_by_s);
            set_start_bound(answer, bound);
        }
        _ => {}
    }
}

/// Places a workload that the quota suffices for on nodes, when `victims` have released theirs.
fn explain_nodes(
    world: &World,
    trial: &mut Trial,
    nodes: Option<PlacementState>,
    victims: &[String],
    answer: &mut Answer,
) {
    if let Some(admission) = trial.admission() {
        explain_placement(world, &trial.workload, &admission, nodes, victims, answer);
    }
}

fn set_start_bound(answer: &mut Answer, bound: Option<StartBound>) {
    if bound.is_some() {
        answer.assumptions.push(BOUND_ASSUMPTION.to_owned());
    }
    answer.starts_by = bound;
}

fn explain_running(world: &World, key: &str, answer: &mut Answer) {
    "QuotaReserved".clone_into(&mut answer.reason);
    answer.situation = Situation::Running;
    let Some((mut trial, id)) = trial(world, key, answer) else {
        "has quota in a ClusterQueue that is not in the input".clone_into(&mut answer.summary);
        return;
    };
    answer.quota = used_quota(trial.cluster.state_mut(), id);
    let state = trial.cluster.state();
    let exceeds = exceeds_nominal(state, id);
    let reservation = state.workload_view(id).reservation();
    let queue = queue_name(state, id);
    answer.summary = if reservation.is_some_and(|it| it.is_evicted) {
        answer.situation = Situation::Evicting;
        let cause = answer.eviction.as_ref().map(cause);
        format!(
            "is being evicted from ClusterQueue {queue}{}",
            cause.unwrap_or_default()
        )
    } else if exceeds {
        format!("has quota in ClusterQueue {queue}, whose usage exceeds its nominal quota")
    } else {
        format!("has quota in ClusterQueue {queue}")
    };
    explain_nomination(world, &trial.workload, answer);
    // Without the usage of others, the search would be wrong.
    if !world.is_partial {
        answer.preemptors = preemptors(&mut trial, id);
        answer
            .preemptors
            .extend(preemptors_on_nodes(world, &trial, id));
    }
}

/// The reason of an eviction, and its preemptor.
fn cause(eviction: &Eviction) -> String {
    let preemption = eviction.preemption.as_ref();
    let preemptor = preemption.and_then(|it| it.preemptor.as_ref());
    let preemptor = preemptor.map(|it| format!(" by {it}")).unwrap_or_default();
    format!(": {}{preemptor}", eviction.reason)
}

/// A trial with the workload of the answer, whose path it sets.
fn trial(world: &World, key: &str, answer: &mut Answer) -> Option<(Trial, WorkloadId)> {
    let trial = Trial::new(world, key)?;
    answer.workload.path = Some(trial.path.clone());
    let id = trial.id()?;
    Some((trial, id))
}

/// Why the ClusterQueue of the answer admits nothing.
fn inactive_reason(world: &World, answer: &Answer) -> Option<String> {
    let name = answer.workload.cluster_queue.as_deref()?;
    let objects = world.cluster.objects();
    let queue = objects.cluster_queue(name)?;
    if queue.metadata.deletion_timestamp.is_some() {
        return Some(format!("ClusterQueue {name} is being deleted"));
    }
    if queue.spec.stop_policy.unwrap_or_default() != StopPolicy::None {
        return Some(format!("ClusterQueue {name} is stopped (spec.stopPolicy)"));
    }
    let missing = objects.missing_flavors(name);
    if !missing.is_empty() && objects.is_complete() {
        return Some(format!(
            "ClusterQueue {name} is inactive: ResourceFlavor {} does not exist",
            missing.join(", ")
        ));
    }
    None
}

fn empty_answer(world: &World, workload: &Workload) -> Answer {
    Answer {
        workload: subject(world, workload),
        situation: Situation::NotQueued,
        reason: String::new(),
        summary: String::new(),
        message: String::new(),
        position: None,
        forecast: None,
        starts_by: None,
        eviction: None,
        quota: Vec::new(),
        victims: Vec::new(),
        candidates: Vec::new(),
        placement: None,
        changes: Vec::new(),
        preemptors: Vec::new(),
        history: history(workload),
        assumptions: world.assumptions.clone(),
        missing: world.missing.clone(),
        unreadable: unreadable(world),
    }
}

fn unreadable(world: &World) -> Vec<String> {
    let shown = world.unreadable.iter().take(UNREADABLE_MAX);
    let mut lines: Vec<String> = shown.map(ToString::to_string).collect();
    match world.unreadable.len().saturating_sub(UNREADABLE_MAX) {
        0 => {}
        more => lines.push(format!("{more} more")),
    }
    lines
}

fn subject(world: &World, workload: &Workload) -> Subject {
    let metadata = &workload.metadata;
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let status = workload.status.as_ref();
    let admission = status.and_then(|it| it.admission.as_ref());
    let local_queue = workload.spec.queue_name.clone();
    let objects = world.cluster.objects();
    let by_local_queue = local_queue
        .as_deref()
        .and_then(|it| objects.local_queue(&namespace, it));
    let cluster_queue = admission
        .map(|it| &it.cluster_queue)
        .or(by_local_queue.map(|it| &it.cluster_queue));
    let key = lockkeeper_cluster_state::workload_key(workload);
    let state = world.cluster.state();
    let view = state.workload(&key).map(|id| state.workload_view(id));
    Subject {
        name: metadata.name.clone().unwrap_or_default(),
        job: controlling_job(workload),
        cluster_queue: cluster_queue.cloned(),
        path: None,
        priority: view.map_or(0, WorkloadView::priority),
        preemption_priority: view.map_or(0, WorkloadView::preemption_priority),
        namespace,
        local_queue,
    }
}

/// The events in the conditions, oldest first.
fn history(workload: &Workload) -> Vec<HistoryEntry> {
    let conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let mut events: Vec<_> = conditions
        .filter(|it| HISTORY.contains(&it.type_.as_str()))
        .collect();
    events.sort_by_key(|it| it.last_transition_time.0);
    let entries = events.into_iter().map(|it| HistoryEntry {
        time: it.last_transition_time.0.to_string(),
        condition: format!("{}={}", it.type_, it.status),
        reason: one_line(&it.reason),
        message: one_line(&it.message),
    });
    entries.collect()
}
