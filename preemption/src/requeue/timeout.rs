//! Pods that are not ready in time: an eviction, or the end of it if that happened too often or for too
//! long.
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
    /// Whether the pods had their time. While they have not, how long they still have.
    pub(super) fn timeout(&self) -> Option<LifecycleStep> {
        if !self.settings.is_enabled || !self.lifecycle.is_active {
            return None;
        }
        let (underlying_cause, since_s, timeout) = self.not_ready()?;
        let left = time::remaining(since_s, timeout, self.now_ms);
        if !left.is_zero() {
            return Some(LifecycleStep::Wait(left));
        }
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

    /// What the pods have to do, since when, and how long they may take.
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
                // What failed in an earlier run is no failure of this one.
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

    /// The limit that one more return to the queue would exceed.
    fn exceeded_limit(&self) -> Option<RequeuingLimit> {
        let state = self.requeue_state();
        let counted = self.settings.backoff_limit_count;
        if counted.is_some_and(|limit| state.requeue_count() >= limit) {
            return Some(RequeuingLimit::Count);
        }
        let limit = self.settings.backoff_limit?;
        let first_s = state.first_evicted_at_s;
        let first_s = first_s.unwrap_or_else(|| time::to_second(self.now_ms));
        let left = time::remaining(first_s, limit, self.now_ms);
        left.is_zero().then_some(RequeuingLimit::Time)
    }

    /// Counts one more return to the queue, and puts it off.
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
