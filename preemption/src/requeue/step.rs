//! The next step in a workload's life cycle.

use super::backoff::Jitter;
use super::lifecycle::{LifecycleState, PodsReady, StopPolicy};
use super::reason::{DeactivationTarget, EvictionReason, NotReadyReason, RequeuedReason};
use super::requeue_state::RequeueState;
use super::settings::RequeueSettings;
use super::time;
use std::time::Duration;

/// The next write for a workload. Each step is one write; call [`next_step`] again afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleStep {
    /// Nothing to do until something else changes.
    Idle,
    /// Nothing to do before this time has passed.
    Wait(Duration),
    /// Sets `status.requeueState` only.
    SetRequeueState(Option<RequeueState>),
    /// Sets `DeactivationTarget=True`.
    SetDeactivationTarget(DeactivationTarget),
    /// Sets `spec.active=false`.
    Deactivate,
    /// Sets `Evicted=True`; its job must stop.
    Evict(Eviction),
    /// Removes `status.requeueState` and `DeactivationTarget` of an evicted workload.
    ClearRequeueState,
    /// Sets `Requeued=True`: it may be considered again.
    Requeue(Requeue),
}

/// An eviction, in one write. Admission checks are reset to `Pending`, and a deactivation removes `DeactivationTarget`.
/// It also emits an event if the workload holds an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Why.
    pub reason: EvictionReason,
    /// Why its pods were not ready in time. Metrics count evictions by reason and cause.
    pub underlying_cause: Option<NotReadyReason>,
    /// The new `status.requeueState`.
    pub requeue_state: Option<RequeueState>,
}

/// A requeueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// Why.
    pub reason: RequeuedReason,
    /// The new `status.requeueState`.
    pub requeue_state: Option<RequeueState>,
}

/// The next step of a workload. It is deterministic and costs constant time.
///
/// `now_ms` is in milliseconds since 1970. `jitter` is used if the workload is deferred.
///
/// Source: Kueue `pkg/controller/core/workload_controller.go`, `Reconcile`, in its order.
#[must_use]
pub fn next_step(
    settings: &RequeueSettings,
    lifecycle: &LifecycleState,
    now_ms: i64,
    jitter: Jitter,
) -> LifecycleStep {
    if lifecycle.is_finished {
        return LifecycleStep::Idle;
    }
    let case = StepContext {
        settings,
        lifecycle,
        now_ms,
        jitter,
    };
    case.defer_for_checks()
        .or_else(|| case.activity())
        .or_else(|| case.restart())
        .or_else(|| case.eviction_while_holding_quota())
        .unwrap_or(LifecycleStep::Idle)
}

/// The input of [`next_step`]. Each method returns `None` if it has no step.
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

    /// Checks with a later retry move `requeueAt`, without counting.
    fn defer_for_checks(&self) -> Option<LifecycleStep> {
        // Kueue writes it for an inactive workload too, then drops it, and so on without end.
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

    /// Steps that follow from `spec.active`, and from the backoff of an active workload.
    fn activity(&self) -> Option<LifecycleStep> {
        if !self.lifecycle.is_active {
            self.deactivated()
        } else if self.lifecycle.deactivation_target.is_some() {
            // Two writes, as in Kueue: first the target, which has the cause, then `spec.active`.
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
        // Kueue keeps a target if there is no state to drop with it. When a user activates the workload again, it is
        // deactivated immediately.
        let drops_target =
            self.lifecycle.deactivation_target.is_some() && !self.settings.is_kueue_compatible();
        (self.lifecycle.requeue_state.is_some() || drops_target)
            .then_some(LifecycleStep::ClearRequeueState)
    }

    fn backoff(&self) -> Option<LifecycleStep> {
        let lifecycle = self.lifecycle;
        let remaining = lifecycle.requeue_at_s().map(|at_s| self.until(at_s));
        let is_ahead = remaining.is_some_and(|it| !it.is_zero());
        let is_like_kueue = self.settings.is_kueue_compatible();
        // In Kueue a future `requeueAt` also defers the timeout of an admitted workload.
        if is_ahead && (is_like_kueue || lifecycle.is_pending()) {
            return remaining.map(LifecycleStep::Wait);
        }
        // The end of a backoff keeps the count; only a deactivation drops it.
        let state = lifecycle.requeue_state.map(|state| RequeueState {
            requeue_at_s: None,
            ..state
        });
        let clear = (remaining.is_some() && lifecycle.is_pending())
            .then_some(LifecycleStep::SetRequeueState(state));
        let requeue = self.requeued_reason().filter(|_| !is_ahead).map(|reason| {
            LifecycleStep::Requeue(Requeue {
                reason,
                requeue_state: state,
            })
        });
        if is_like_kueue {
            // Two writes. Between them the workload is in the queue but must not be considered.
            clear.or(requeue)
        } else {
            requeue.or(clear)
        }
    }

    /// The reason of `Requeued=True` once there is no backoff, if the condition is false now.
    fn requeued_reason(&self) -> Option<RequeuedReason> {
        match self.lifecycle.not_requeued_reason? {
            // Whatever the cause, as in Kueue since kubernetes-sigs/kueue#14874.
            EvictionReason::Deactivated(_) => Some(RequeuedReason::Reactivated),
            EvictionReason::PodsReadyTimeout | EvictionReason::AdmissionCheck => {
                Some(RequeuedReason::BackoffFinished)
            }
            // `restart` requeues these once the queue is no longer stopped.
            EvictionReason::ClusterQueueStopped | EvictionReason::LocalQueueStopped => None,
            // No other step would ever reset these.
            EvictionReason::Preempted
            | EvictionReason::NodeFailures
            | EvictionReason::JobChanged
            | EvictionReason::Other => {
                (!self.settings.is_kueue_compatible()).then_some(RequeuedReason::BackoffFinished)
            }
        }
    }

    /// Requeues workloads of a queue that is no longer stopped.
    fn restart(&self) -> Option<LifecycleStep> {
        let lifecycle = self.lifecycle;
        let (queue, reason) = match lifecycle.not_requeued_reason? {
            EvictionReason::LocalQueueStopped => {
                (lifecycle.local_queue, RequeuedReason::LocalQueueRestarted)
            }
            EvictionReason::ClusterQueueStopped => (
                lifecycle.cluster_queue,
                RequeuedReason::ClusterQueueRestarted,
            ),
            _ => return None,
        };
        let state = lifecycle.requeue_state;
        (queue == StopPolicy::None).then_some(LifecycleStep::Requeue(Requeue {
            reason,
            requeue_state: state,
        }))
    }

    fn eviction_while_holding_quota(&self) -> Option<LifecycleStep> {
        let lifecycle = self.lifecycle;
        if let Some(step) = self.start_succeeded() {
            return Some(step);
        }
        // The job of an evicted workload has to stop before another eviction.
        if !lifecycle.has_quota || lifecycle.evicted.is_some() {
            return None;
        }
        if lifecycle.admission_checks.is_rejected {
            return Some(LifecycleStep::SetDeactivationTarget(
                DeactivationTarget::RejectedChecks,
            ));
        }
        if lifecycle.admission_checks.is_retry {
            return Some(self.evict_uncounted(EvictionReason::AdmissionCheck));
        }
        if lifecycle.admitted_at_s.is_some() {
            if lifecycle.local_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict_uncounted(EvictionReason::LocalQueueStopped));
            }
            if lifecycle.cluster_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict_uncounted(EvictionReason::ClusterQueueStopped));
            }
        }
        self.timeout()
    }

    /// An eviction without fault of the pods, which does not count.
    fn evict_uncounted(&self, reason: EvictionReason) -> LifecycleStep {
        LifecycleStep::Evict(Eviction {
            reason,
            underlying_cause: None,
            requeue_state: self.lifecycle.requeue_state,
        })
    }

    /// Resets the time limit once the pods are ready.
    fn start_succeeded(&self) -> Option<LifecycleStep> {
        let state = self.lifecycle.requeue_state?;
        let is_ready = self.lifecycle.pods_ready == PodsReady::Yes;
        let is_late = is_ready && state.first_evicted_at_s.is_some();
        // Only the time limit is reset; as in Kueue, a successful start keeps the count.
        is_late.then_some(LifecycleStep::SetRequeueState(Some(RequeueState {
            first_evicted_at_s: None,
            ..state
        })))
    }
}
