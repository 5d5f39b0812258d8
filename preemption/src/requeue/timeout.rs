//! Pods that are not ready in time: an eviction, or the end of it if that happened too often or for too
//! long.
//!
//! Source: Kueue `pkg/controller/core/workload_controller.go`, `reconcileNotReadyTimeout`,
//! `admittedNotReadyWorkload` and `triggerDeactivation`.

use super::instant;
use super::reason::{EvictionReason, Limit, NotReady, Target};
use super::record::RequeueState;
use super::settings::Settings;
use super::standing::PodsReady;
use super::step::{Case, Eviction, Step};
use std::time::Duration;

impl Case<'_> {
    /// Whether the pods had their time. While they have not, how long they still have.
    pub(super) fn timeout(&self) -> Option<Step> {
        if !self.settings.is_enabled || !self.standing.is_active {
            return None;
        }
        let (underlying_cause, since_s, timeout) = self.not_ready()?;
        let left = instant::left(since_s, timeout, self.now_ms);
        if !left.is_zero() {
            return Some(Step::Wait(left));
        }
        if let Some(limit) = self.exceeded() {
            return Some(Step::Target(Target::RequeuingLimit(limit)));
        }
        Some(Step::Evict(Eviction {
            reason: EvictionReason::PodsReadyTimeout,
            underlying_cause: Some(underlying_cause),
            state: Some(self.put_off()),
        }))
    }

    /// What the pods have to do, since when, and how long they may take.
    fn not_ready(&self) -> Option<(NotReady, i64, Duration)> {
        let settings = self.settings;
        let admitted_at_s = self.standing.admitted_at_s?;
        let start = (NotReady::WaitForStart, admitted_at_s, settings.timeout);
        match self.standing.pods_ready {
            PodsReady::Yes => None,
            PodsReady::Unknown => Some(start),
            PodsReady::No { reason, since_s } => match reason {
                NotReady::WaitForStart => Some(start),
                NotReady::WaitForRecovery if settings.is_like_kueue() => {
                    Some((reason, since_s, settings.recovery_timeout?))
                }
                // What failed in an earlier run is no failure of this one.
                NotReady::WaitForRecovery => Some((
                    reason,
                    since_s.max(admitted_at_s),
                    settings.recovery_timeout?,
                )),
                NotReady::Other if settings.is_like_kueue() => None,
                NotReady::Other => Some((reason, since_s.max(admitted_at_s), settings.timeout)),
            },
        }
    }

    /// The limit that one more return to the queue would exceed.
    fn exceeded(&self) -> Option<Limit> {
        let state = self.state();
        let counted = self.settings.backoff_limit_count;
        if counted.is_some_and(|limit| state.times() >= limit) {
            return Some(Limit::Count);
        }
        let limit = self.settings.backoff_limit?;
        let first_s = state.first_evicted_at_s;
        let first_s = first_s.unwrap_or_else(|| instant::second(self.now_ms));
        let left = instant::left(first_s, limit, self.now_ms);
        left.is_zero().then_some(Limit::Time)
    }

    /// Counts one more return to the queue, and puts it off.
    fn put_off(&self) -> RequeueState {
        let Settings {
            backoff,
            compatibility,
            ..
        } = self.settings;
        let mut state = self.state();
        let count = state.times().saturating_add(1);
        let delay = backoff.delay(count, self.jitter, *compatibility);
        state.set(instant::after(self.now_ms, delay, *compatibility), true);
        if self.settings.backoff_limit.is_some() && state.first_evicted_at_s.is_none() {
            state.first_evicted_at_s = Some(instant::second(self.now_ms));
        }
        state
    }
}
