//! The answer about a workload.

use crate::answer::{Answer, HistoryEntry, Situation, Subject};
use crate::listing::{one_line, reported_reason};
use crate::pending::explain_pending;
use crate::preemptors::preemptors;
use crate::quota::used_quota;
use crate::trial::Trial;
use crate::world::World;
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue::StopPolicy;
use lockkeeper_cluster_state::pending_reason::{INADMISSIBLE, PENDING, not_queued_message};
use lockkeeper_cluster_state::{NotQueuedReason, WorkloadPhase};
use lockkeeper_preemption::{NodeId, TreeView, WorkloadId, WorkloadView};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The conditions that report an event of the past.
const HISTORY: [&str; 4] = ["Evicted", "Preempted", "Requeued", "DeactivationTarget"];

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
        Ok(WorkloadPhase::Admitted) => explain_running(world, key, workload, &mut answer),
        Ok(phase @ (WorkloadPhase::Pending | WorkloadPhase::OnHold(_))) => {
            explain_queued(world, key, workload, phase, &mut answer);
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

fn explain_queued(
    world: &World,
    key: &str,
    workload: &Arc<Workload>,
    phase: WorkloadPhase,
    answer: &mut Answer,
) {
    answer.situation = Situation::Pending;
    if let Some(why) = inactive_reason(world, answer) {
        INADMISSIBLE.clone_into(&mut answer.reason);
        answer.summary = format!("waits: {why}");
        answer.message = why;
        return;
    }
    let Some(mut trial) = trial(world, key, workload, answer) else {
        return;
    };
    if let WorkloadPhase::OnHold(until_s) = phase {
        answer.situation = Situation::BackingOff;
        PENDING.clone_into(&mut answer.reason);
        let until = k8s_openapi::jiff::Timestamp::from_second(until_s);
        let until = until.map_or_else(
            |_| "the cause of its eviction is gone".to_owned(),
            |it| it.to_string(),
        );
        answer.message = format!("In backoff until {until}");
        answer.summary = format!("is in backoff until {until}, after an eviction");
        answer.quota = crate::quota::requested_quota(&mut trial);
        return;
    }
    explain_pending(&mut trial, answer);
}

fn explain_running(world: &World, key: &str, workload: &Arc<Workload>, answer: &mut Answer) {
    let Some(mut trial) = trial(world, key, workload, answer) else {
        answer.situation = Situation::Running;
        "has quota in a ClusterQueue that is not in the input".clone_into(&mut answer.summary);
        return;
    };
    let Some(id) = trial.id() else {
        return;
    };
    answer.quota = used_quota(trial.cluster.state_mut(), id);
    let is_evicted = trial
        .cluster
        .state()
        .workload_view(id)
        .reservation()
        .is_some_and(|it| it.is_evicted);
    let borrowed = trial
        .cluster
        .state()
        .workload_view(id)
        .queue()
        .is_some_and(|queue| borrows(&trial, queue, id));
    if !world.is_partial {
        let queues = queues_in_tree(&mut trial);
        answer.preemptors = preemptors(&mut trial, &queues);
    }
    "QuotaReserved".clone_into(&mut answer.reason);
    let queue = answer.workload.cluster_queue.clone().unwrap_or_default();
    let borrows = if borrowed {
        ", whose usage exceeds its nominal quota"
    } else {
        ""
    };
    (answer.situation, answer.summary) = if is_evicted {
        (
            Situation::Evicting,
            format!("is being evicted from ClusterQueue {queue}"),
        )
    } else {
        (
            Situation::Running,
            format!("has quota in ClusterQueue {queue}{borrows}"),
        )
    };
}

fn borrows(trial: &Trial, queue: NodeId, id: WorkloadId) -> bool {
    let state = trial.cluster.state();
    let usage = state
        .workload_view(id)
        .reservation()
        .map(|it| it.usage)
        .unwrap_or_default();
    let mut usage = usage.iter();
    usage.any(|(of, _)| state.node_view(queue).borrowed(*of) > lockkeeper_preemption::Amount::ZERO)
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

/// A copy of the state for trials with the workload; `None` if its ClusterQueue is not in the input.
fn trial(world: &World, key: &str, workload: &Arc<Workload>, answer: &mut Answer) -> Option<Trial> {
    let name = answer.workload.cluster_queue.clone()?;
    let queue = Arc::clone(world.cluster.objects().cluster_queue(&name)?);
    let mut cluster = world.cluster.clone();
    let own = cluster.state().workload(key)?;
    let node = cluster.state().workload_view(own).queue()?;
    let path = TreeView::new(cluster.state_mut()).path(node);
    let root = root(&path).to_owned();
    answer.workload.path = Some(path);
    let nodes = nodes_below(&mut cluster, &root);
    let state = cluster.state();
    let others = world.workload_keys().filter(|it| *it != key);
    let others = others.filter_map(|it| state.workload(it)).filter(|id| {
        let view = state.workload_view(*id);
        view.queue().is_some_and(|it| nodes.contains(&it)) && view.reservation().is_some()
    });
    Some(Trial {
        others: others.collect(),
        cluster,
        workload: Arc::clone(workload),
        queue,
        key: key.to_owned(),
    })
}

/// The first name of a path.
fn root(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// The ClusterQueues in the tree with this root.
fn nodes_below(
    cluster: &mut lockkeeper_cluster_state::ClusterState,
    root_name: &str,
) -> BTreeSet<NodeId> {
    let queues: Vec<NodeId> = cluster.state().queues().map(|(_, id)| id).collect();
    let mut tree = TreeView::new(cluster.state_mut());
    queues
        .into_iter()
        .filter(|it| root(&tree.path(*it)) == root_name)
        .collect()
}

/// The names of the ClusterQueues in the tree of the workload, sorted.
fn queues_in_tree(trial: &mut Trial) -> Vec<String> {
    let Some(own) = trial
        .id()
        .and_then(|id| trial.cluster.state().workload_view(id).queue())
    else {
        return Vec::new();
    };
    let path = TreeView::new(trial.cluster.state_mut()).path(own);
    let nodes = nodes_below(&mut trial.cluster, root(&path));
    let state = trial.cluster.state();
    let mut names: Vec<String> = nodes
        .iter()
        .map(|it| state.node_view(*it).name().to_owned())
        .collect();
    names.sort_unstable();
    names
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
        quota: Vec::new(),
        victims: Vec::new(),
        candidates: Vec::new(),
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
    let owner = metadata
        .owner_references
        .iter()
        .flatten()
        .find(|it| it.controller == Some(true));
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
        job: owner.map(|it| format!("{}/{}", it.kind, it.name)),
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
