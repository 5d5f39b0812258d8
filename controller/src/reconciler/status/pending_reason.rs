//! Why a workload is pending: reason and message of its condition `QuotaReserved=False`.

use super::conditions::{find, has_status, workload_conditions};
use super::priorities::effective_priorities;
use crate::reconciler::model::{PendingReason, TrackedWorkload};
use crate::reconciler::state::View;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_cluster_state::{NotQueuedReason, WorkloadPhase, pending_message};
use lockkeeper_preemption::{Decision, Entry, SkipReason, State};

/// The reason while the workload waits for quota.
const PENDING: &str = "Pending";

/// The reason when only a change of an object helps.
const INADMISSIBLE: &str = "Inadmissible";

/// The most victims that a message names.
const NAMES_MAX: usize = 5;

/// The pending reason of an entry that a cycle did not admit.
pub(crate) fn pending_reason_for_entry(state: &State, entry: &Entry) -> PendingReason {
    let (reason, message) = match &entry.decision {
        Decision::Admit => ("QuotaReserved", String::new()),
        Decision::Preempt(victims) => {
            let mut names: Vec<&str> = victims
                .iter()
                .map(|it| state.workload_name(it.workload))
                .collect();
            let more = names.len().saturating_sub(NAMES_MAX);
            names.truncate(NAMES_MAX);
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (
                "WaitingForPreemptedWorkloads",
                format!(
                    "Waiting for preempted workloads to release quota: {}{more}",
                    names.join(", ")
                ),
            )
        }
        Decision::DeferredFit => (
            "WaitingForPreemptedWorkloads",
            "Waiting for the victims of other workloads to release quota".to_owned(),
        ),
        Decision::Skip(reason) => (PENDING, skip_message(*reason).to_owned()),
        Decision::NoCandidates | Decision::NoFit => {
            ("WaitingForQuota", pending_message(state, entry))
        }
    };
    PendingReason { reason, message }
}

const fn skip_message(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NoLongerFits => "Lost the quota to workloads ahead of it in this cycle",
        SkipReason::OverlappingVictims => {
            "Its victims overlap with those of a workload ahead of it; retried in the next cycle"
        }
        SkipReason::BorrowingGate => {
            "Borrowing in its cohort is not allowed in this cycle: a workload that does not borrow came first"
        }
        SkipReason::VictimLimit => "The limit on preemptions per cycle is reached",
    }
}

/// The pending reason of a workload outside the scope of its ClusterQueue.
pub(crate) fn namespace_mismatch() -> PendingReason {
    PendingReason {
        reason: INADMISSIBLE,
        message: "The namespace does not match the ClusterQueue's spec.namespaceSelector"
            .to_owned(),
    }
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
    let mut conditions = workload_conditions(&workload.object, &mut status.conditions, now_ms);
    conditions.set("QuotaReserved", false, reason.reason, &reason.message);
    conditions.set_not_admitted();
}

/// The current pending reason, by precedence: not queued, in backoff, the ClusterQueue is inactive, the result
/// of the last cycle that considered the workload.
pub(crate) fn pending_reason(view: View<'_>, workload: &TrackedWorkload) -> PendingReason {
    let inadmissible = |message| PendingReason {
        reason: INADMISSIBLE,
        message,
    };
    match view.cluster.phase(workload.key.key()) {
        Some(Err(error)) => inadmissible(error.to_string()),
        Some(Ok(WorkloadPhase::NotQueued(reason))) => {
            inadmissible(not_queued_message(workload, reason))
        }
        // The next cycle ends the backoff; the time alone may be over before.
        Some(Ok(WorkloadPhase::OnHold(until_s)))
            if until_s.saturating_mul(1000) > view.cluster.now_ms() =>
        {
            requeue_backoff(workload)
        }
        _ => match (
            cluster_queue_inactive_reason(view, workload),
            &workload.pending_reason,
        ) {
            (Some(message), _) => inadmissible(message),
            (None, Some(reason)) => (**reason).clone(),
            (None, None) => awaiting_turn(view, workload),
        },
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

fn awaiting_turn(view: View<'_>, workload: &TrackedWorkload) -> PendingReason {
    let namespace = workload.object.metadata.namespace.as_deref();
    let local_queue = workload.object.spec.queue_name.as_deref();
    let (namespace, local_queue) = (
        namespace.unwrap_or_default(),
        local_queue.unwrap_or_default(),
    );
    let queue = view.cluster.objects().local_queue(namespace, local_queue);
    let queue = queue.map_or("", |it| &it.cluster_queue);
    if !view.cluster.objects().has_cluster_queue(queue) {
        return PendingReason {
            reason: INADMISSIBLE,
            message: format!(
                "ClusterQueue {queue} of LocalQueue {local_queue} does not exist or is invalid"
            ),
        };
    }
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

fn not_queued_message(workload: &TrackedWorkload, reason: NotQueuedReason) -> String {
    let spec = &workload.object.spec;
    match reason {
        NotQueuedReason::Finished => "The workload has finished".to_owned(),
        NotQueuedReason::Inactive => {
            "The workload is deactivated (spec.active is false)".to_owned()
        }
        NotQueuedReason::NoLocalQueue => match spec.queue_name.as_deref() {
            Some(name) => format!("LocalQueue {name} does not exist in its namespace"),
            None => "No LocalQueue is set (spec.queueName)".to_owned(),
        },
        NotQueuedReason::LocalQueueStopped => format!(
            "LocalQueue {} is stopped (spec.stopPolicy)",
            spec.queue_name.as_deref().unwrap_or_default()
        ),
        NotQueuedReason::NoPriorityClass => format!(
            "PriorityClass {} does not exist",
            spec.priority_class_name.as_deref().unwrap_or_default()
        ),
    }
}
