//! Why a workload is pending: reason and message of its condition `QuotaReserved=False`.

use super::conditions::{find, has_status, workload_conditions};
use crate::reconciler::adoption::is_adopting;
use crate::reconciler::model::{PendingReason, TrackedWorkload};
use crate::reconciler::state::View;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_cluster_state::pending_reason::{
    INADMISSIBLE, MANAGED_EXTERNALLY, NAMESPACE_MISMATCH, PENDING, PENDING_REASONS,
    POD_GROUP_INCOMPLETE, RESOURCE_NOT_COVERED, WAITING_FOR_NODES, decision_message,
    decision_reason, not_queued_message, waiting_for_nodes_message,
};
use lockkeeper_cluster_state::{WorkloadPhase, effective_priorities, uncovered_resources_message};
use lockkeeper_preemption::{Entry, StartBound, State};

/// The message of a workload whose job `lockkeeper adopt` imports.
const ADOPTION_MESSAGE: &str = "Being adopted: lockkeeper adopt writes the quota of the running job; if it was interrupted, run it again";

/// The message of a workload that could start otherwise.
const WAITING_FOR_ADOPTION: &str =
    "Waits while lockkeeper adopt reserves quota in the same cohort, for at most two minutes";

/// The pending reason of an entry that a cycle did not admit.
pub(crate) fn pending_reason_for_entry(state: &State, entry: &Entry) -> PendingReason {
    PendingReason {
        reason: decision_reason(&entry.decision),
        message: decision_message(state, entry),
    }
}

/// The planned start of the head of a queue with backfill, as the end of its message.
pub(crate) fn planned_start_text(planned: &StartBound) -> String {
    let Ok(time) = Timestamp::from_second(planned.starts_by_s) else {
        return String::new();
    };
    let event = if planned.is_guaranteed {
        "workloads of higher priority arrive"
    } else {
        "workloads of higher priority arrive or other ClusterQueues borrow its quota"
    };
    format!("; starts by {time} unless {event} (backfill)")
}

/// The pending reason of a workload outside the scope of its ClusterQueue.
pub(crate) fn namespace_mismatch() -> PendingReason {
    PendingReason {
        reason: INADMISSIBLE,
        message: NAMESPACE_MISMATCH.to_owned(),
    }
}

/// The reason that the status of a pending workload shows, as one of [`PENDING_REASONS`]; `None` if it holds quota, has
/// finished, or has no such status yet.
pub(crate) fn reported_reason(workload: &TrackedWorkload) -> Option<&'static str> {
    let conditions = &workload.object.status.as_ref()?.conditions;
    let reserved = find(conditions, "QuotaReserved").filter(|it| it.status == "False")?;
    if has_status(&workload.object, "Finished", "True") {
        return None;
    }
    let known = PENDING_REASONS
        .into_iter()
        .find(|it| *it == reserved.reason);
    // Another client may have written any text; the values of a label must be fixed.
    Some(known.unwrap_or("Other"))
}

/// Whether the workload's status shows this pending reason, and nothing of an earlier admission.
pub(crate) fn is_reported(
    view: View<'_>,
    workload: &TrackedWorkload,
    reason: &PendingReason,
) -> bool {
    let Some(status) = &workload.object.status else {
        return false;
    };
    let condition = find(&status.conditions, "QuotaReserved");
    // The write of the pending reason also sets the priorities.
    let has_priorities = effective_priorities(view.cluster, &workload.object, status)
        == (status.priority, status.preemption_priority);
    // An admission that was released no longer counts, and must not be shown.
    let is_clean = status.admission.is_none()
        && ["Admitted", "PodsReady"]
            .iter()
            .all(|of| !has_status(&workload.object, of, "True"));
    is_clean
        && has_priorities
        && condition.is_some_and(|condition| {
            condition.status == "False"
                && condition.reason == reason.reason
                && condition.message == reason.message
        })
}

pub(crate) fn write_pending_reason(
    workload: &TrackedWorkload,
    status: &mut WorkloadStatus,
    reason: &PendingReason,
    now_ms: i64,
) {
    status.admission = None;
    status.nominated_placement = None;
    let mut conditions = workload_conditions(&workload.object, &mut status.conditions, now_ms);
    conditions.set("QuotaReserved", false, reason.reason, &reason.message);
    conditions.set_not_admitted();
}

/// The pending reason of a workload that has no room on nodes.
pub(crate) fn waiting_for_nodes(obstacles: &str) -> PendingReason {
    PendingReason {
        reason: WAITING_FOR_NODES,
        message: waiting_for_nodes_message(obstacles),
    }
}

/// The pending reason of a workload that could start in a tree where `lockkeeper adopt` reserves quota.
pub(crate) fn waiting_for_adoption() -> PendingReason {
    PendingReason {
        reason: PENDING,
        message: WAITING_FOR_ADOPTION.to_owned(),
    }
}

fn inadmissible(message: String) -> PendingReason {
    PendingReason {
        reason: INADMISSIBLE,
        message,
    }
}

/// The current pending reason, by precedence: not queued, in backoff, the ClusterQueue is inactive, the result
/// of the last cycle that considered the workload.
pub(crate) fn pending_reason(view: View<'_>, workload: &TrackedWorkload) -> PendingReason {
    let job = view.model.job_of(workload);
    if let Some(job) = job
        && let Some(manager) = &job.view.foreign_manager
    {
        // A declaration names the field of its kind.
        let is_declared = job.view.declared.is_some();
        let field = if is_declared {
            "the field that names it"
        } else {
            "spec.managedBy"
        };
        return PendingReason {
            reason: MANAGED_EXTERNALLY,
            message: format!(
                "The job is managed by another controller, {manager}, which may never stop it; create the job without \
                 {field}"
            ),
        };
    }
    if let Some(group) = job.filter(|it| it.view.is_incomplete) {
        let mut pods = view.model.pod_groups.pods(&group.view.name);
        let needed =
            pods.find_map(|it| view.model.pod(it)?.view.group.as_ref().map(|it| it.needed));
        return PendingReason {
            reason: POD_GROUP_INCOMPLETE,
            message: format!(
                "Fewer pods of the group exist than the {} that start together",
                needed.unwrap_or_default()
            ),
        };
    }
    if is_adopting(workload, view.now_ms) {
        return PendingReason {
            reason: PENDING,
            message: ADOPTION_MESSAGE.to_owned(),
        };
    }
    match view.cluster.phase(workload.key.key()) {
        Some(Err(error)) => inadmissible(error.to_string()),
        Some(Ok(WorkloadPhase::NotQueued(reason))) => inadmissible(not_queued_message(
            view.cluster.objects(),
            &workload.object,
            reason,
        )),
        Some(Ok(WorkloadPhase::OnHold(_))) if is_waiting_for_nodes(view, workload) => {
            queued_reason(view, workload)
        }
        // The next cycle ends the backoff; the time alone may be over before.
        Some(Ok(WorkloadPhase::OnHold(until_s)))
            if until_s.saturating_mul(1000) > view.cluster.now_ms() =>
        {
            requeue_backoff(workload)
        }
        _ => queued_reason(view, workload),
    }
}

fn is_waiting_for_nodes(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let placement = view.placement;
    placement.is_some_and(|it| it.waiting.contains(&workload.key))
}

/// The pending reason of a workload in its queue.
fn queued_reason(view: View<'_>, workload: &TrackedWorkload) -> PendingReason {
    if let Some(message) = cluster_queue_inactive_reason(view, workload) {
        return inadmissible(message);
    }
    // Only the first of equal workloads is considered in a cycle, so the result of a cycle does not suffice.
    if let Some(message) = uncovered_resources_message(view.cluster, &workload.object) {
        return PendingReason {
            reason: RESOURCE_NOT_COVERED,
            message,
        };
    }
    match &workload.pending_reason {
        // The result of a cycle is stale once the queue is gone.
        Some(reason) if has_cluster_queue(view, workload) => (**reason).clone(),
        _ => awaiting_turn(view, workload),
    }
}

/// The message of the ClusterQueue's condition, if it is inactive.
fn cluster_queue_inactive_reason(view: View<'_>, workload: &TrackedWorkload) -> Option<String> {
    let namespace = workload.object.metadata.namespace.as_deref()?;
    let local_queue = workload.object.spec.queue_name.as_deref()?;
    let queue = &view
        .cluster
        .objects()
        .local_queue(namespace, local_queue)?
        .cluster_queue;
    let why = view.model.queues.inactive_reason(queue)?;
    Some(format!("ClusterQueue {queue} is inactive: {why}"))
}

/// Whether the ClusterQueue of a workload exists and is valid.
fn has_cluster_queue(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let namespace = workload.object.metadata.namespace.as_deref();
    let name = workload.object.spec.queue_name.as_deref();
    let objects = view.cluster.objects();
    let queue = objects.local_queue(namespace.unwrap_or_default(), name.unwrap_or_default());
    queue.is_some_and(|it| objects.has_cluster_queue(&it.cluster_queue))
}

fn awaiting_turn(view: View<'_>, workload: &TrackedWorkload) -> PendingReason {
    let namespace = workload.object.metadata.namespace.as_deref();
    let local_queue = workload.object.spec.queue_name.as_deref();
    let (namespace, local_queue) = (
        namespace.unwrap_or_default(),
        local_queue.unwrap_or_default(),
    );
    let queue = view.cluster.objects().local_queue(namespace, local_queue);
    let queue = queue.map_or("", |it| &it.cluster_queue);
    let how = if view.settings.blocks_admission() {
        "; workloads are admitted one at a time, once all admitted pods are ready \
         (waitForPodsReady.blockAdmission)"
    } else {
        ""
    };
    PendingReason {
        reason: PENDING,
        message: format!("Waiting for its turn in ClusterQueue {queue}{how}"),
    }
}

fn requeue_backoff(workload: &TrackedWorkload) -> PendingReason {
    let status = workload.object.status.as_ref();
    let state = status.and_then(|it| it.requeue_state.as_ref());
    let at = state.and_then(|it| it.requeue_at.as_ref());
    let message = match at {
        Some(at) => format!("In backoff until {}", at.0),
        None => "In backoff until the cause of its eviction is gone".to_owned(),
    };
    PendingReason {
        reason: PENDING,
        message,
    }
}
