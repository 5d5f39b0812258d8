//! Why a workload waits, in a line for its condition.

use super::Reconciler;
use super::conditions::{find, has_status};
use super::workload::{PendingReason, TrackedWorkload};
use super::workload_status::workload_conditions;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_cluster_state::{NotQueuedReason, WorkloadPhase, pending_message};
use lockkeeper_preemption::{Decision, Entry, SkipReason, State};

/// The reason of `QuotaReserved=False` while it waits for quota.
const PENDING: &str = "Pending";

/// The same when nothing but a person can change it.
const INADMISSIBLE: &str = "Inadmissible";

/// What a cycle says of an entry that was not admitted.
pub(super) fn pending_reason_for_entry(state: &State, entry: &Entry) -> PendingReason {
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
                    "Waits until {}{more} gave their quota back",
                    names.join(", ")
                ),
            )
        }
        Decision::DeferredFit => (
            "WaitingForPreemptedWorkloads",
            "Fits once the victims of others are gone".to_owned(),
        ),
        Decision::Skip(why) => (
            PENDING,
            match why {
                SkipReason::NoLongerFits => "Others before it have just taken the quota",
                SkipReason::OverlappingVictims => {
                    "Others before it take the same victims; it is looked at again"
                }
                SkipReason::BorrowingGate => "Nobody borrows in its cohort at the moment",
                SkipReason::VictimLimit => "As many workloads are preempted at once as may be",
            }
            .to_owned(),
        ),
        Decision::NoCandidates | Decision::NoFit => {
            ("WaitingForQuota", pending_message(state, entry))
        }
    };
    PendingReason { reason, message }
}

/// Of the victims, how many are named.
const NAMES_MAX: usize = 5;

impl Reconciler {
    /// Whether its object says why it waits.
    pub(super) fn is_reported(&self, known: &TrackedWorkload) -> bool {
        let notice = self.pending_reason(known);
        let Some(status) = &known.object.status else {
            return false;
        };
        let told = find(&status.conditions, "QuotaReserved");
        let is_ranked = self.effective_priorities(&known.object, status)
            == (status.priority, status.preemption_priority);
        // One that was given back counts no longer, and is not to stand there.
        let is_clean = status.admission.is_none()
            && ["Admitted", "PodsReady"]
                .iter()
                .all(|of| !has_status(&known.object, of, "True"));
        is_clean
            && is_ranked
            && told.is_some_and(|it| {
                it.status == "False" && it.reason == notice.reason && it.message == notice.message
            })
    }

    pub(super) fn report_pending(
        &self,
        known: &TrackedWorkload,
        status: &mut WorkloadStatus,
        now_ms: i64,
    ) {
        let notice = self.pending_reason(known);
        status.admission = None;
        let mut conditions = workload_conditions(&known.object, &mut status.conditions, now_ms);
        conditions.set("QuotaReserved", false, notice.reason, &notice.message);
        conditions.set_not_admitted();
    }

    /// Where it is outside the queues, that is the reason; else what the last cycle said that looked at it.
    fn pending_reason(&self, known: &TrackedWorkload) -> PendingReason {
        let place = self.objects.phase(known.key.key());
        let inadmissible = |message| PendingReason {
            reason: INADMISSIBLE,
            message,
        };
        match place {
            Some(Err(error)) => inadmissible(error.to_string()),
            Some(Ok(WorkloadPhase::NotQueued(outside))) => {
                inadmissible(inadmissible_message(known, outside))
            }
            Some(Ok(WorkloadPhase::OnHold(until_s)))
                if until_s.saturating_mul(1000) > self.objects.now_ms() =>
            {
                requeue_backoff(known)
            }
            _ => match (
                self.cluster_queue_inactive_reason(known),
                &known.pending_reason,
            ) {
                (Some(why), _) => inadmissible(why),
                (None, Some(notice)) => (**notice).clone(),
                (None, None) => self.awaiting_turn(known),
            },
        }
    }

    /// What its ClusterQueue says of itself, if it says that it admits nobody.
    fn cluster_queue_inactive_reason(&self, known: &TrackedWorkload) -> Option<String> {
        let namespace = known.object.metadata.namespace.as_deref()?;
        let door = known.object.spec.queue_name.as_deref()?;
        let queue = &self.objects.local_queue(namespace, door)?.cluster_queue;
        let why = self.queues.inactive_reason(queue)?;
        Some(format!("ClusterQueue {queue} admits nobody: {why}"))
    }

    fn awaiting_turn(&self, known: &TrackedWorkload) -> PendingReason {
        let namespace = known
            .object
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let door = known.object.spec.queue_name.as_deref().unwrap_or_default();
        let queue = self.objects.local_queue(namespace, door);
        let queue = queue.map_or("", |it| &it.cluster_queue);
        if !self.objects.has_cluster_queue(queue) {
            return PendingReason {
                reason: INADMISSIBLE,
                message: format!(
                    "The ClusterQueue {queue} of LocalQueue {door} does not exist or cannot be used"
                ),
            };
        }
        let settings = &self.settings.requeue;
        let how = if settings.is_enabled && settings.block_admission {
            "; one is admitted at a time, once the pods of all others are ready \
             (waitForPodsReady.blockAdmission)"
        } else {
            ""
        };
        PendingReason {
            reason: PENDING,
            message: format!("Waits for its turn in ClusterQueue {queue}{how}"),
        }
    }
}

fn requeue_backoff(known: &TrackedWorkload) -> PendingReason {
    let status = known.object.status.as_ref();
    let state = status.and_then(|it| it.requeue_state.as_ref());
    let at = state.and_then(|it| it.requeue_at.as_ref());
    let message = match at {
        Some(at) => format!("Is not tried again before {}", at.0),
        None => "Is not tried again before what evicted it is over".to_owned(),
    };
    PendingReason {
        reason: PENDING,
        message,
    }
}

fn inadmissible_message(known: &TrackedWorkload, outside: NotQueuedReason) -> String {
    let spec = &known.object.spec;
    match outside {
        NotQueuedReason::Finished => "It has finished".to_owned(),
        NotQueuedReason::Inactive => "It is not active (spec.active)".to_owned(),
        NotQueuedReason::NoLocalQueue => match spec.queue_name.as_deref() {
            Some(name) => format!("There is no LocalQueue {name} in its namespace"),
            None => "It names no LocalQueue (spec.queueName)".to_owned(),
        },
        NotQueuedReason::LocalQueueStopped => format!(
            "The LocalQueue {} is stopped",
            spec.queue_name.as_deref().unwrap_or_default()
        ),
        NotQueuedReason::NoPriorityClass => format!(
            "There is no PriorityClass {}",
            spec.priority_class_name.as_deref().unwrap_or_default()
        ),
    }
}
