//! Workloads with pods that are not ready in time: single steps, random sequences, and in the queue.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod kueue_differences;
mod lifecycle;
mod properties;
mod queue;

use lockkeeper_preemption::requeue::{
    Jitter, LifecycleState, LifecycleStep, PodsReady, RequeueSettings, next_step,
};

/// Enabled settings with a change.
fn settings(change: impl FnOnce(&mut RequeueSettings)) -> RequeueSettings {
    let mut settings = RequeueSettings {
        is_enabled: true,
        ..RequeueSettings::default()
    };
    change(&mut settings);
    settings
}

/// A workload admitted at a time, in seconds.
fn admitted(at_s: i64) -> LifecycleState {
    LifecycleState {
        has_quota: true,
        admitted_at_s: Some(at_s),
        ..LifecycleState::default()
    }
}

/// The next step at a time, in seconds.
fn step(settings: &RequeueSettings, standing: &LifecycleState, now_s: i64) -> LifecycleStep {
    next_step(settings, standing, now_s * 1_000, Jitter::NONE)
}

/// Applies the next step and returns it.
fn apply_step(
    settings: &RequeueSettings,
    standing: &mut LifecycleState,
    now_s: i64,
) -> LifecycleStep {
    let step = step(settings, standing, now_s);
    standing.apply(&step, now_s * 1_000);
    step
}

/// Admits a pending workload.
fn admit(standing: &mut LifecycleState, now_s: i64) {
    assert!(standing.is_pending() && standing.is_backoff_over(now_s * 1_000));
    standing.on_quota_reserved();
    standing.admitted_at_s = Some(now_s);
    standing.pods_ready = PodsReady::Unknown;
}
