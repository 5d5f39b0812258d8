//! Pods that are not ready in time: an eviction, or a deactivation beyond the requeueing limit.
//!
//! Source: Kueue `pkg/controller/core/workload_controller.go`, `reconcileNotReadyTimeout`,
//! `admittedNotReadyWorkload` and `triggerDeactivation`.

use super::lifecycle::PodsReady;
use super::reason::{DeactivationTarget, EvictionReason, NotReadyReason, RequeuingLimit};
use super::requeue_state::RequeueState;
use super::settings::RequeueSettings;
use super::step::{Eviction, LifecycleStep, StepContext};
use super::time;
use std::time::Duration;

impl StepContext<'_> {
    /// The step once the timeout has expired; a wait until then.
    pub(super) fn timeout(&self) -> Option<LifecycleStep> {
        if !self.settings.is_enabled || !self.lifecycle.is_active {
            return None;
        }
        let (underlying_cause, since_s, timeout) = self.not_ready()?;
        // Expired once the elapsed time is at least the timeout, as in Kueue.
        let remaining = time::remaining(since_s, timeout, self.now_ms);
        if !remaining.is_zero() {
            return Some(LifecycleStep::Wait(remaining));
        }
        // Only marks the workload (Kueue `triggerDeactivation`); the next step deactivates it.
        if let Some(limit) = self.exceeded_limit() {
            return Some(LifecycleStep::SetDeactivationTarget(
                DeactivationTarget::RequeuingLimit(limit),
            ));
        }
        Some(LifecycleStep::Evict(Eviction {
            reason: EvictionReason::PodsReadyTimeout,
            underlying_cause: Some(underlying_cause),
            requeue_state: Some(self.deferred_state()),
        }))
    }

    /// The reason why the pods are not ready, since when, and the timeout.
    fn not_ready(&self) -> Option<(NotReadyReason, i64, Duration)> {
        let settings = self.settings;
        let admitted_at_s = self.lifecycle.admitted_at_s?;
        let start = (
            NotReadyReason::WaitForStart,
            admitted_at_s,
            settings.timeout,
        );
        match self.lifecycle.pods_ready {
            PodsReady::Yes => None,
            PodsReady::Unknown => Some(start),
            PodsReady::No { reason, since_s } => match reason {
                NotReadyReason::WaitForStart => Some(start),
                NotReadyReason::WaitForRecovery if settings.is_kueue_compatible() => {
                    Some((reason, since_s, settings.recovery_timeout?))
                }
                // A pod failure in an earlier run does not count in this one.
                NotReadyReason::WaitForRecovery => Some((
                    reason,
                    since_s.max(admitted_at_s),
                    settings.recovery_timeout?,
                )),
                NotReadyReason::Other if settings.is_kueue_compatible() => None,
                NotReadyReason::Other => {
                    Some((reason, since_s.max(admitted_at_s), settings.timeout))
                }
            },
        }
    }

    /// The limit that one more requeueing would exceed.
    fn exceeded_limit(&self) -> Option<RequeuingLimit> {
        let state = self.requeue_state();
        let counted = self.settings.backoff_limit_count;
        // A limit of n allows n requeueings; 0 deactivates at the first timeout.
        if counted.is_some_and(|limit| state.requeue_count() >= limit) {
            return Some(RequeuingLimit::Count);
        }
        let limit = self.settings.backoff_limit?;
        let first_s = state.first_evicted_at_s;
        // The first eviction would be now, so a limit of zero is exceeded immediately.
        let first_s = first_s.unwrap_or_else(|| time::to_second(self.now_ms));
        let remaining = time::remaining(first_s, limit, self.now_ms);
        remaining.is_zero().then_some(RequeuingLimit::Time)
    }

    /// The requeue state with one more eviction and its backoff.
    fn deferred_state(&self) -> RequeueState {
        let RequeueSettings {
            backoff,
            compatibility,
            ..
        } = self.settings;
        let mut state = self.requeue_state();
        let count = state.requeue_count().saturating_add(1);
        let delay = backoff.delay(count, self.jitter, *compatibility);
        state.defer_until(time::second_after(self.now_ms, delay, *compatibility), true);
        if self.settings.backoff_limit.is_some() && state.first_evicted_at_s.is_none() {
            state.first_evicted_at_s = Some(time::to_second(self.now_ms));
        }
        state
    }
}
