//! The next step of a workload's life.

use super::backoff::Jitter;
use super::lifecycle::{LifecycleState, PodsReady, StopPolicy};
use super::reason::{DeactivationTarget, EvictionReason, NotReadyReason, RequeuedReason};
use super::requeue_state::RequeueState;
use super::settings::RequeueSettings;
use super::time;
use std::time::Duration;

/// What to write about a workload now. Each is one write; when it is done, ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleStep {
    /// Nothing; something else has to change first.
    Idle,
    /// Nothing yet; ask again after this time.
    Wait(Duration),
    /// `status.requeueState` becomes this, and nothing else changes.
    SetRequeueState(Option<RequeueState>),
    /// `DeactivationTarget=True`.
    SetDeactivationTarget(DeactivationTarget),
    /// `spec.active=false`.
    Deactivate,
    /// `Evicted=True`, and its job has to stop.
    Evict(Eviction),
    /// `status.requeueState` and `DeactivationTarget` go; it was evicted before, and that stays.
    ClearRequeueState,
    /// `Requeued=True`: it may be tried again.
    Requeue(Requeue),
}

/// An eviction, all in one write. Admission checks go back to `Pending`, and with a deactivation
/// `DeactivationTarget` goes. It is an event too if the workload holds an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Why.
    pub reason: EvictionReason,
    /// What its pods had to do, if they were not ready in time. Evictions are counted by both.
    pub underlying_cause: Option<NotReadyReason>,
    /// What `status.requeueState` becomes.
    pub requeue_state: Option<RequeueState>,
}

/// A return to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// Why.
    pub reason: RequeuedReason,
    /// What `status.requeueState` becomes.
    pub requeue_state: Option<RequeueState>,
}

/// The next step of a workload. Always the same for the same arguments; costs nothing that grows.
///
/// `now_ms` is milliseconds since 1970. `jitter` is used if the workload is put back.
///
/// Source: Kueue `pkg/controller/core/workload_controller.go`, `Reconcile`, in its order.
#[must_use]
pub fn next_step(
    settings: &RequeueSettings,
    standing: &LifecycleState,
    now_ms: i64,
    jitter: Jitter,
) -> LifecycleStep {
    if standing.is_finished {
        return LifecycleStep::Idle;
    }
    let case = StepContext {
        settings,
        lifecycle: standing,
        now_ms,
        jitter,
    };
    case.defer_for_checks()
        .or_else(|| case.activity())
        .or_else(|| case.restart())
        .or_else(|| case.eviction_while_holding_quota())
        .unwrap_or(LifecycleStep::Idle)
}

/// What a step is decided from. Each part says `None` if it has nothing to say.
pub(super) struct StepContext<'a> {
    pub(super) settings: &'a RequeueSettings,
    pub(super) lifecycle: &'a LifecycleState,
    pub(super) now_ms: i64,
    pub(super) jitter: Jitter,
}

impl StepContext<'_> {
    pub(super) fn requeue_state(&self) -> RequeueState {
        self.lifecycle.requeue_state.unwrap_or_default()
    }

    fn until(&self, at_s: i64) -> Duration {
        time::duration_until(at_s, self.now_ms)
    }

    /// Checks that want to be tried again later move `requeueAt`, and count nothing. Kueue writes it for a
    /// workload that is not active too, and then drops it, and so on.
    fn defer_for_checks(&self) -> Option<LifecycleStep> {
        if !self.lifecycle.is_active && !self.settings.is_kueue_compatible() {
            return None;
        }
        let at_s = self.lifecycle.admission_checks.retry_at_s?;
        if self.until(at_s).is_zero() {
            return None;
        }
        let mut state = self.requeue_state();
        state
            .defer_until(at_s, false)
            .then_some(LifecycleStep::SetRequeueState(Some(state)))
    }

    /// Whether it is to be active, and if so, whether its backoff is over.
    fn activity(&self) -> Option<LifecycleStep> {
        if !self.lifecycle.is_active {
            self.deactivated()
        } else if self.lifecycle.deactivation_target.is_some() {
            Some(LifecycleStep::Deactivate)
        } else {
            self.backoff()
        }
    }

    fn deactivated(&self) -> Option<LifecycleStep> {
        if self.lifecycle.evicted.is_none() {
            return Some(LifecycleStep::Evict(Eviction {
                reason: EvictionReason::Deactivated(self.lifecycle.deactivation_target),
                underlying_cause: None,
                requeue_state: None,
            }));
        }
        // Kueue leaves a target alone if there is no state to drop beside it. A user who activates the
        // workload again would see it deactivated at once.
        let forgets_target =
            self.lifecycle.deactivation_target.is_some() && !self.settings.is_kueue_compatible();
        (self.lifecycle.requeue_state.is_some() || forgets_target)
            .then_some(LifecycleStep::ClearRequeueState)
    }

    fn backoff(&self) -> Option<LifecycleStep> {
        let standing = self.lifecycle;
        let left = standing.requeue_at_s().map(|at_s| self.until(at_s));
        let is_ahead = left.is_some_and(|left| !left.is_zero());
        let is_like_kueue = self.settings.is_kueue_compatible();
        if is_ahead && (is_like_kueue || standing.is_pending()) {
            return left.map(LifecycleStep::Wait);
        }
        let state = standing.requeue_state.map(|state| RequeueState {
            requeue_at_s: None,
            ..state
        });
        let clear = (left.is_some() && standing.is_pending())
            .then_some(LifecycleStep::SetRequeueState(state));
        let requeue = self.requeued_reason().filter(|_| !is_ahead).map(|reason| {
            LifecycleStep::Requeue(Requeue {
                reason,
                requeue_state: state,
            })
        });
        if is_like_kueue {
            // Two writes: the queue is offered the workload between them and does not take it.
            clear.or(requeue)
        } else {
            requeue.or(clear)
        }
    }

    /// Why `Requeued` becomes true when no backoff is ahead, if it is not.
    fn requeued_reason(&self) -> Option<RequeuedReason> {
        match self.lifecycle.not_requeued_reason? {
            EvictionReason::Deactivated(_) => Some(RequeuedReason::Reactivated),
            EvictionReason::PodsReadyTimeout | EvictionReason::AdmissionCheck => {
                Some(RequeuedReason::BackoffFinished)
            }
            EvictionReason::ClusterQueueStopped | EvictionReason::LocalQueueStopped => None,
            // Nobody else would ever lift these.
            EvictionReason::Preempted
            | EvictionReason::NodeFailures
            | EvictionReason::JobChanged
            | EvictionReason::Other => {
                (!self.settings.is_kueue_compatible()).then_some(RequeuedReason::BackoffFinished)
            }
        }
    }

    /// A queue that was stopped is not any more.
    fn restart(&self) -> Option<LifecycleStep> {
        let standing = self.lifecycle;
        let (queue, reason) = match standing.not_requeued_reason? {
            EvictionReason::LocalQueueStopped => {
                (standing.local_queue, RequeuedReason::LocalQueueRestarted)
            }
            EvictionReason::ClusterQueueStopped => (
                standing.cluster_queue,
                RequeuedReason::ClusterQueueRestarted,
            ),
            _ => return None,
        };
        let state = standing.requeue_state;
        (queue == StopPolicy::None).then_some(LifecycleStep::Requeue(Requeue {
            reason,
            requeue_state: state,
        }))
    }

    fn eviction_while_holding_quota(&self) -> Option<LifecycleStep> {
        let standing = self.lifecycle;
        if let Some(step) = self.start_succeeded() {
            return Some(step);
        }
        if !standing.has_quota || standing.evicted.is_some() {
            return None;
        }
        if standing.admission_checks.is_rejected {
            return Some(LifecycleStep::SetDeactivationTarget(
                DeactivationTarget::RejectedChecks,
            ));
        }
        if standing.admission_checks.is_retry {
            return Some(self.evict_uncounted(EvictionReason::AdmissionCheck));
        }
        if standing.admitted_at_s.is_some() {
            if standing.local_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict_uncounted(EvictionReason::LocalQueueStopped));
            }
            if standing.cluster_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict_uncounted(EvictionReason::ClusterQueueStopped));
            }
        }
        self.timeout()
    }

    /// An eviction that is no fault of the pods: nothing is counted.
    fn evict_uncounted(&self, reason: EvictionReason) -> LifecycleStep {
        LifecycleStep::Evict(Eviction {
            reason,
            underlying_cause: None,
            requeue_state: self.lifecycle.requeue_state,
        })
    }

    /// The limit by time starts anew when the pods are ready.
    fn start_succeeded(&self) -> Option<LifecycleStep> {
        let state = self.lifecycle.requeue_state?;
        let is_ready = self.lifecycle.pods_ready == PodsReady::Yes;
        let is_late = is_ready && state.first_evicted_at_s.is_some();
        is_late.then_some(LifecycleStep::SetRequeueState(Some(RequeueState {
            first_evicted_at_s: None,
            ..state
        })))
    }
}
