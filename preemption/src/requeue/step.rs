//! The next step of a workload's life.

use super::backoff::Jitter;
use super::instant;
use super::reason::{EvictionReason, NotReady, RequeuedReason, Target};
use super::record::RequeueState;
use super::settings::Settings;
use super::standing::{PodsReady, Standing, StopPolicy};
use std::time::Duration;

/// What to write about a workload now. Each is one write; when it is done, ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing; something else has to change first.
    Rest,
    /// Nothing yet; ask again after this time.
    Wait(Duration),
    /// `status.requeueState` becomes this, and nothing else changes.
    Record(Option<RequeueState>),
    /// `DeactivationTarget=True`.
    Target(Target),
    /// `spec.active=false`.
    Deactivate,
    /// `Evicted=True`, and its job has to stop.
    Evict(Eviction),
    /// `status.requeueState` and `DeactivationTarget` go; it was evicted before, and that stays.
    Forget,
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
    pub underlying_cause: Option<NotReady>,
    /// What `status.requeueState` becomes.
    pub state: Option<RequeueState>,
}

/// A return to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requeue {
    /// Why.
    pub reason: RequeuedReason,
    /// What `status.requeueState` becomes.
    pub state: Option<RequeueState>,
}

/// The next step of a workload. Always the same for the same arguments; costs nothing that grows.
///
/// `now_ms` is milliseconds since 1970. `jitter` is used if the workload is put back.
///
/// Source: Kueue `pkg/controller/core/workload_controller.go`, `Reconcile`, in its order.
#[must_use]
pub fn next_step(settings: &Settings, standing: &Standing, now_ms: i64, jitter: Jitter) -> Step {
    if standing.is_finished {
        return Step::Rest;
    }
    let case = Case {
        settings,
        standing,
        now_ms,
        jitter,
    };
    case.put_off_by_checks()
        .or_else(|| case.activity())
        .or_else(|| case.restart())
        .or_else(|| case.eviction_while_holding_quota())
        .unwrap_or(Step::Rest)
}

/// What a step is decided from. Each part says `None` if it has nothing to say.
pub(super) struct Case<'a> {
    pub(super) settings: &'a Settings,
    pub(super) standing: &'a Standing,
    pub(super) now_ms: i64,
    pub(super) jitter: Jitter,
}

impl Case<'_> {
    pub(super) fn state(&self) -> RequeueState {
        self.standing.state.unwrap_or_default()
    }

    fn until(&self, at_s: i64) -> Duration {
        instant::until(at_s, self.now_ms)
    }

    /// Checks that want to be tried again later move `requeueAt`, and count nothing. Kueue writes it for a
    /// workload that is not active too, and then drops it, and so on.
    fn put_off_by_checks(&self) -> Option<Step> {
        if !self.standing.is_active && !self.settings.is_like_kueue() {
            return None;
        }
        let at_s = self.standing.checks.retry_at_s?;
        if self.until(at_s).is_zero() {
            return None;
        }
        let mut state = self.state();
        state.set(at_s, false).then_some(Step::Record(Some(state)))
    }

    /// Whether it is to be active, and if so, whether its backoff is over.
    fn activity(&self) -> Option<Step> {
        if !self.standing.is_active {
            self.deactivated()
        } else if self.standing.target.is_some() {
            Some(Step::Deactivate)
        } else {
            self.backoff()
        }
    }

    fn deactivated(&self) -> Option<Step> {
        if self.standing.evicted.is_none() {
            return Some(Step::Evict(Eviction {
                reason: EvictionReason::Deactivated(self.standing.target),
                underlying_cause: None,
                state: None,
            }));
        }
        // Kueue leaves a target alone if there is no state to drop beside it. A user who activates the
        // workload again would see it deactivated at once.
        let forgets_target = self.standing.target.is_some() && !self.settings.is_like_kueue();
        (self.standing.state.is_some() || forgets_target).then_some(Step::Forget)
    }

    fn backoff(&self) -> Option<Step> {
        let standing = self.standing;
        let left = standing.requeue_at_s().map(|at_s| self.until(at_s));
        let is_ahead = left.is_some_and(|left| !left.is_zero());
        let is_like_kueue = self.settings.is_like_kueue();
        if is_ahead && (is_like_kueue || standing.is_pending()) {
            return left.map(Step::Wait);
        }
        let state = standing.state.map(|state| RequeueState {
            requeue_at_s: None,
            ..state
        });
        let clear = (left.is_some() && standing.is_pending()).then_some(Step::Record(state));
        let requeue = self
            .lifted()
            .filter(|_| !is_ahead)
            .map(|reason| Step::Requeue(Requeue { reason, state }));
        if is_like_kueue {
            // Two writes: the queue is offered the workload between them and does not take it.
            clear.or(requeue)
        } else {
            requeue.or(clear)
        }
    }

    /// Why `Requeued` becomes true when no backoff is ahead, if it is not.
    fn lifted(&self) -> Option<RequeuedReason> {
        match self.standing.held_for? {
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
                (!self.settings.is_like_kueue()).then_some(RequeuedReason::BackoffFinished)
            }
        }
    }

    /// A queue that was stopped is not any more.
    fn restart(&self) -> Option<Step> {
        let standing = self.standing;
        let (queue, reason) = match standing.held_for? {
            EvictionReason::LocalQueueStopped => {
                (standing.local_queue, RequeuedReason::LocalQueueRestarted)
            }
            EvictionReason::ClusterQueueStopped => (
                standing.cluster_queue,
                RequeuedReason::ClusterQueueRestarted,
            ),
            _ => return None,
        };
        let state = standing.state;
        (queue == StopPolicy::None).then_some(Step::Requeue(Requeue { reason, state }))
    }

    fn eviction_while_holding_quota(&self) -> Option<Step> {
        let standing = self.standing;
        if let Some(step) = self.start_succeeded() {
            return Some(step);
        }
        if !standing.has_quota || standing.evicted.is_some() {
            return None;
        }
        if standing.checks.is_rejected {
            return Some(Step::Target(Target::RejectedChecks));
        }
        if standing.checks.is_retry {
            return Some(self.evict(EvictionReason::AdmissionCheck));
        }
        if standing.admitted_at_s.is_some() {
            if standing.local_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict(EvictionReason::LocalQueueStopped));
            }
            if standing.cluster_queue == StopPolicy::HoldAndDrain {
                return Some(self.evict(EvictionReason::ClusterQueueStopped));
            }
        }
        self.timeout()
    }

    /// An eviction that is no fault of the pods: nothing is counted.
    fn evict(&self, reason: EvictionReason) -> Step {
        Step::Evict(Eviction {
            reason,
            underlying_cause: None,
            state: self.standing.state,
        })
    }

    /// The limit by time starts anew when the pods are ready.
    fn start_succeeded(&self) -> Option<Step> {
        let state = self.standing.state?;
        let is_ready = self.standing.pods_ready == PodsReady::Yes;
        let is_late = is_ready && state.first_evicted_at_s.is_some();
        is_late.then_some(Step::Record(Some(RequeueState {
            first_evicted_at_s: None,
            ..state
        })))
    }
}
