//! Why a workload waits, in a line for its condition.

use super::Reconciler;
use super::conditions::{find, is};
use super::life::conditions;
use super::workload::{Known, Notice};
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_preemption::{Decision, Entry, SkipReason, State};
use lockkeeper_snapshot::objects::{Outside, Place};
use lockkeeper_snapshot::story;

/// The reason of `QuotaReserved=False` while it waits for quota.
const PENDING: &str = "Pending";

/// The same when nothing but a person can change it.
const INADMISSIBLE: &str = "Inadmissible";

/// What a cycle says of an entry that was not admitted.
pub(super) fn of_entry(state: &State, entry: &Entry) -> Notice {
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
                SkipReason::Budget => "As many workloads are preempted at once as may be",
            }
            .to_owned(),
        ),
        Decision::NoCandidates | Decision::NoFit => {
            ("WaitingForQuota", story::why_not(state, entry))
        }
    };
    Notice { reason, message }
}

/// Of the victims, how many are named.
const NAMES_MAX: usize = 5;

impl Reconciler {
    /// Whether its object says why it waits.
    pub(super) fn is_told(&self, known: &Known) -> bool {
        let notice = self.notice_of(known);
        let Some(status) = &known.seen.status else {
            return false;
        };
        let told = find(&status.conditions, "QuotaReserved");
        let is_ranked =
            self.ranks(&known.seen, status) == (status.priority, status.preemption_priority);
        // One that was given back counts no longer, and is not to stand there.
        let is_clean = status.admission.is_none()
            && ["Admitted", "PodsReady"]
                .iter()
                .all(|of| !is(&known.seen, of, "True"));
        is_clean
            && is_ranked
            && told.is_some_and(|it| {
                it.status == "False" && it.reason == notice.reason && it.message == notice.message
            })
    }

    pub(super) fn tell_why(&self, known: &Known, status: &mut WorkloadStatus, now_ms: i64) {
        let notice = self.notice_of(known);
        status.admission = None;
        let mut conditions = conditions(&known.seen, &mut status.conditions, now_ms);
        conditions.set("QuotaReserved", false, notice.reason, &notice.message);
        conditions.end_admission();
    }

    /// Where it is outside the queues, that is the reason; else what the last cycle said that looked at it.
    fn notice_of(&self, known: &Known) -> Notice {
        let place = self.objects.place(known.name.key());
        let inadmissible = |message| Notice {
            reason: INADMISSIBLE,
            message,
        };
        match place {
            Some(Err(error)) => inadmissible(error.to_string()),
            Some(Ok(Place::Outside(outside))) => inadmissible(outside_of(known, outside)),
            Some(Ok(Place::Held(until_s)))
                if until_s.saturating_mul(1000) > self.objects.now_ms() =>
            {
                held(known)
            }
            _ => match (self.why_inactive(known), &known.notice) {
                (Some(why), _) => inadmissible(why),
                (None, Some(notice)) => (**notice).clone(),
                (None, None) => self.untried(known),
            },
        }
    }

    /// What its ClusterQueue says of itself, if it says that it admits nobody.
    fn why_inactive(&self, known: &Known) -> Option<String> {
        let namespace = known.seen.metadata.namespace.as_deref()?;
        let door = known.seen.spec.queue_name.as_deref()?;
        let queue = &self.objects.local_queue(namespace, door)?.cluster_queue;
        let why = self.queues.why_inactive(queue)?;
        Some(format!("ClusterQueue {queue} admits nobody: {why}"))
    }

    fn untried(&self, known: &Known) -> Notice {
        let namespace = known.seen.metadata.namespace.as_deref().unwrap_or_default();
        let door = known.seen.spec.queue_name.as_deref().unwrap_or_default();
        let queue = self.objects.local_queue(namespace, door);
        let queue = queue.map_or("", |it| &it.cluster_queue);
        if !self.objects.has_cluster_queue(queue) {
            return Notice {
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
        Notice {
            reason: PENDING,
            message: format!("Waits for its turn in ClusterQueue {queue}{how}"),
        }
    }
}

fn held(known: &Known) -> Notice {
    let status = known.seen.status.as_ref();
    let state = status.and_then(|it| it.requeue_state.as_ref());
    let at = state.and_then(|it| it.requeue_at.as_ref());
    let message = match at {
        Some(at) => format!("Is not tried again before {}", at.0),
        None => "Is not tried again before what evicted it is over".to_owned(),
    };
    Notice {
        reason: PENDING,
        message,
    }
}

fn outside_of(known: &Known, outside: Outside) -> String {
    let spec = &known.seen.spec;
    match outside {
        Outside::Finished => "It has finished".to_owned(),
        Outside::Inactive => "It is not active (spec.active)".to_owned(),
        Outside::NoLocalQueue => match spec.queue_name.as_deref() {
            Some(name) => format!("There is no LocalQueue {name} in its namespace"),
            None => "It names no LocalQueue (spec.queueName)".to_owned(),
        },
        Outside::LocalQueueStopped => format!(
            "The LocalQueue {} is stopped",
            spec.queue_name.as_deref().unwrap_or_default()
        ),
        Outside::NoPriorityClass => format!(
            "There is no PriorityClass {}",
            spec.priority_class_name.as_deref().unwrap_or_default()
        ),
    }
}
