//! The life-cycle state of a workload: the fields of its object that determine its next step.

use super::reason::{DeactivationCause, EvictionReason, NotReadyReason};
use super::requeue_state::RequeueState;
use super::settings::{QueueOrderTimestamp, RequeueSettings};
use super::time;

/// `stopPolicy` of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopPolicy {
    /// The queue is not stopped.
    #[default]
    None,
    /// It admits no workload.
    Hold,
    /// It admits no workload, and admitted workloads are evicted.
    HoldAndDrain,
}

/// The condition `PodsReady`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodsReady {
    /// The condition is absent: pods were not observed yet.
    #[default]
    Unknown,
    /// All pods are or were ready.
    Yes,
    /// Not all pods are ready.
    No {
        /// The reason of the condition.
        reason: NotReadyReason,
        /// Since when, in seconds since 1970.
        since_s: i64,
    },
}

/// The condition `Evicted=True`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedCondition {
    /// Why.
    pub reason: EvictionReason,
    /// Since when, in seconds since 1970.
    pub at_s: i64,
}

/// The admission checks of a workload. Only Kueue has these; elsewhere it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCheckStates {
    /// A check is `Rejected`.
    pub is_rejected: bool,
    /// A check is `Retry`.
    pub is_retry: bool,
    /// The latest time at which a `Retry` check may be tried again: its last transition plus `requeueAfterSeconds`, in
    /// seconds since 1970.
    pub retry_at_s: Option<i64>,
}

/// The life-cycle state of a workload. The default is a newly created workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleState {
    /// When it was created, in seconds since 1970.
    pub created_at_s: i64,
    /// `spec.active`.
    pub is_active: bool,
    /// `Finished=True`.
    pub is_finished: bool,
    /// `QuotaReserved=True`.
    pub has_quota: bool,
    /// Since when `Admitted=True`, in seconds since 1970; `None` if it is not.
    pub admitted_at_s: Option<i64>,
    /// `PodsReady`.
    pub pods_ready: PodsReady,
    /// `Evicted=True`; `None` if it is not.
    pub evicted: Option<EvictedCondition>,
    /// Since when `Preempted=True` with reason `InCohortReclaimWhileBorrowing`, in seconds since 1970.
    pub reclaimed_while_borrowing_at_s: Option<i64>,
    /// The reason of `Requeued=False`: why it must not be considered yet. `None` if it may be.
    pub not_requeued_reason: Option<EvictionReason>,
    /// The reason of `DeactivationTarget=True`: it is about to be deactivated.
    pub deactivation_target: Option<DeactivationCause>,
    /// `status.requeueState`.
    pub requeue_state: Option<RequeueState>,
    /// The admission checks.
    pub admission_checks: AdmissionCheckStates,
    /// The stop policy of its ClusterQueue.
    pub cluster_queue: StopPolicy,
    /// The stop policy of its LocalQueue.
    pub local_queue: StopPolicy,
}

impl Default for LifecycleState {
    fn default() -> Self {
        Self {
            created_at_s: 0,
            is_active: true,
            is_finished: false,
            has_quota: false,
            admitted_at_s: None,
            pods_ready: PodsReady::default(),
            evicted: None,
            reclaimed_while_borrowing_at_s: None,
            not_requeued_reason: None,
            deactivation_target: None,
            requeue_state: None,
            admission_checks: AdmissionCheckStates::default(),
            cluster_queue: StopPolicy::default(),
            local_queue: StopPolicy::default(),
        }
    }
}

impl LifecycleState {
    /// Whether it waits for quota.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.is_finished && !self.has_quota && self.admitted_at_s.is_none()
    }

    /// `requeueAt`, in seconds since 1970.
    #[must_use]
    pub fn requeue_at_s(&self) -> Option<i64> {
        self.requeue_state.and_then(|state| state.requeue_at_s)
    }

    /// Whether its backoff is over, so that it may be in the active queue.
    ///
    /// Source: Kueue `pkg/cache/queue`, `backoffWaitingTimeExpired`.
    #[must_use]
    pub fn is_backoff_over(&self, now_ms: i64) -> bool {
        let over = |at_s| time::duration_until(at_s, now_ms).is_zero();
        self.not_requeued_reason.is_none() && self.requeue_at_s().is_none_or(over)
    }

    /// The time before which the queue must not consider it, for [`State::set_backoff`](crate::State::set_backoff), in
    /// seconds since 1970; `None` if it may be considered now. `i64::MAX` if only a step can end the backoff.
    #[must_use]
    pub fn hold_until_s(&self, now_ms: i64) -> Option<i64> {
        if self.is_backoff_over(now_ms) {
            return None;
        }
        let is_ahead = |at_s: &i64| !time::duration_until(*at_s, now_ms).is_zero();
        let requeue_at_s = self.requeue_at_s().filter(is_ahead);
        match self.not_requeued_reason {
            // The end of a backoff does not requeue the workloads of a stopped queue.
            Some(EvictionReason::ClusterQueueStopped | EvictionReason::LocalQueueStopped) => {
                Some(i64::MAX)
            }
            _ => Some(requeue_at_s.unwrap_or(i64::MAX)),
        }
    }

    /// Its time in queue order, in milliseconds since 1970.
    ///
    /// With [`QueueOrderTimestamp::Eviction`] it is the time of an eviction because pods were not ready; an eviction
    /// for an admission check counts with either value. Other workloads keep their creation time, as do workloads that
    /// run again after an eviction. Without `priority_sorting_within_cohort`, a workload reclaimed by a borrowing
    /// preemptor is ordered one millisecond after that preemption, so that it is behind the preemptor.
    ///
    /// Source: Kueue `pkg/workload`, `GetQueueOrderTimestamp`.
    #[must_use]
    pub fn order_time_ms(&self, settings: &RequeueSettings) -> i64 {
        if let Some(evicted) = self.evicted {
            let counts = match evicted.reason {
                EvictionReason::PodsReadyTimeout => {
                    settings.timestamp == QueueOrderTimestamp::Eviction
                }
                EvictionReason::AdmissionCheck => true,
                _ => false,
            };
            if counts {
                return time::to_ms(evicted.at_s);
            }
        }
        match self.reclaimed_while_borrowing_at_s {
            Some(at_s) if !settings.priority_sorting_within_cohort => {
                time::to_ms(at_s).saturating_add(1)
            }
            _ => time::to_ms(self.created_at_s),
        }
    }

    /// Whether it blocks other admissions: `blockAdmission` is set, and it uses quota while its pods are not ready.
    #[must_use]
    pub fn blocks_admission(&self, settings: &RequeueSettings) -> bool {
        let is_configured = settings.is_enabled && settings.block_admission;
        is_configured && self.has_quota && !self.is_finished && self.pods_ready != PodsReady::Yes
    }

    /// The job of an evicted workload has stopped: its quota is released. After a preemption or a node failure it may
    /// be considered immediately, otherwise after a [`LifecycleStep::Requeue`](super::LifecycleStep::Requeue).
    ///
    /// Source: Kueue `pkg/controller/jobframework`, the reconciler's clearing of an admission.
    pub fn on_job_stopped(&mut self) {
        self.has_quota = false;
        self.admitted_at_s = None;
        // The condition of this run must not start a timeout in the next one.
        self.pods_ready = PodsReady::Unknown;
        if let Some(EvictedCondition { reason, .. }) = self.evicted {
            self.not_requeued_reason = (!reason.requeues_at_once()).then_some(reason);
        }
    }

    /// Quota is reserved for it. An earlier eviction is over; the count of evictions stays.
    ///
    /// Source: Kueue `pkg/workload`, `SetQuotaReservation`.
    pub fn on_quota_reserved(&mut self) {
        self.has_quota = true;
        self.evicted = None;
        self.reclaimed_while_borrowing_at_s = None;
    }
}

/// Whether a workload may be admitted while the `holders` use quota: `blockAdmission` defers it until the pods of all
/// of them are ready. Costs the number of holders.
pub fn may_admit<'a>(
    settings: &RequeueSettings,
    holders: impl IntoIterator<Item = &'a LifecycleState>,
) -> bool {
    let mut holders = holders.into_iter();
    !holders.any(|holder| holder.blocks_admission(settings))
}
