//! Eviction, backoff, requeueing and deactivation of workloads with pods that are not ready in time (KEP-1282,
//! `waitForPodsReady`).
//!
//! # Life cycle
//!
//! The pods of an admitted workload must become ready within a **timeout**. If a pod fails later, a **recovery
//! timeout** begins. When one of them expires, the workload is **evicted**: its count of evictions grows by one, and
//! `requeueAt` is set to *now + delay*. Its job stops and releases the quota; until `requeueAt` the workload is not in
//! the active queue, so other workloads can be admitted. When its **backoff** is over, it is requeued.
//!
//! The delay after the n-th eviction is
//!
//! > *base* · *factor*^(n−1), at most *cap*, plus a little jitter.
//!
//! [`Backoff`] expresses both Kueue's current delays (60 s, doubled each time, at most one hour) and those of the KEP
//! (1.41284738^(n−1) seconds).
//!
//! Requeueing is limited: to `backoffLimitCount` evictions, or to `backoffLimitSeconds` after the first one in a row.
//! Beyond the limit the workload is marked (`DeactivationTarget`), deactivated, and evicted for good. Any deactivation
//! drops its `requeueState`. When the user activates it again, it is requeued with a count of zero.
//!
//! A successful start does not reset the count. It does reset the time limit, which is for workloads that never start.
//!
//! # Usage
//!
//! [`next_step`] returns the next write ([`LifecycleStep`]) for a workload in a given state ([`LifecycleState`]), one
//! write at a time; [`LifecycleState::apply`] applies it. Time and jitter are parameters.
//! [`LifecycleState::hold_until_s`] returns when the queue may consider the workload
//! ([`State::set_backoff`](crate::State::set_backoff)), [`LifecycleState::order_time_ms`] its time in queue order, and
//! [`may_admit`] whether `blockAdmission` permits admissions.
//!
//! ```
//! use lockkeeper_preemption::requeue::{
//!     Jitter, LifecycleState, LifecycleStep, RequeueSettings, next_step,
//! };
//! use std::time::Duration;
//!
//! let settings = RequeueSettings { is_enabled: true, ..RequeueSettings::default() };
//! let mut workload = LifecycleState {
//!     has_quota: true,
//!     admitted_at_s: Some(0),
//!     ..LifecycleState::default()
//! };
//! let step = |it: &LifecycleState, now_ms| next_step(&settings, it, now_ms, Jitter::NONE);
//!
//! // The pods have five minutes to become ready.
//! assert_eq!(step(&workload, 290_000), LifecycleStep::Wait(Duration::from_secs(10)));
//! let eviction = step(&workload, 300_000);
//! assert!(matches!(eviction, LifecycleStep::Evict(_)));
//! workload.apply(&eviction, 300_000);
//! workload.on_job_stopped();
//!
//! // It is in backoff for one minute, then requeued. The count stays.
//! assert_eq!(workload.hold_until_s(300_000), Some(360));
//! assert_eq!(step(&workload, 300_000), LifecycleStep::Wait(Duration::from_mins(1)));
//! let requeue = step(&workload, 360_000);
//! assert!(matches!(requeue, LifecycleStep::Requeue(_)));
//! workload.apply(&requeue, 360_000);
//! assert_eq!(workload.hold_until_s(360_000), None);
//! assert_eq!(workload.requeue_state.and_then(|it| it.count), Some(1));
//! ```
//!
//! # Differences from KEP-1282
//!
//! Kueue's current behaviour is the same as ours in all of these.
//! - The delays of the KEP are the preset [`Backoff::kep_1282`]; the default is Kueue's current one.
//! - Any deactivation drops `requeueState`. In the KEP it was dropped when a workload that the limit had deactivated
//!   became active again, and kept if a user had deactivated it.
//! - A workload over the limit is marked before it is deactivated.
//! - There is a recovery timeout.
//! - An eviction for an admission check sets the time in queue order whatever the value of `timestamp`.
//! - The KEP's sketch of `backoffLimitTimeout` counts from the workload's time in queue order, and also deactivates
//!   pending workloads. `backoffLimitSeconds` counts from the first eviction since the pods were last ready and is
//!   checked when a timeout expires: waiting for quota is not a failure. The open change to Kueue
//!   (kubernetes-sigs/kueue#15278) does the same.
//!
//! # Differences from Kueue
//!
//! As of commit ff69552e79ad. [`Compatibility::Kueue`](crate::Compatibility::Kueue) reproduces Kueue's behaviour for
//! those marked ⚖.
//! - A workload that the controller itself deactivated (`Requeued=False` with reason `DeactivatedDueTo…`) is requeued
//!   when it is active again. Kueue never requeued it; kubernetes-sigs/kueue#14874 has fixed that since, so there is no
//!   switch for it.
//! - ⚖ The first delay is capped like the others.
//! - ⚖ `requeueAt` is rounded up to the second. Kueue truncates it, so a delay is up to one second too short.
//! - ⚖ The end of a backoff is one write. Kueue needs two: the first clears `requeueAt`, the second sets
//!   `Requeued=True`.
//! - ⚖ A future `requeueAt` does not defer the timeout of an admitted workload.
//! - ⚖ The recovery timeout begins with the admission at the earliest. Kueue uses the transition time of the condition,
//!   even if it belongs to an earlier run.
//! - ⚖ Pods that are not ready for an unknown reason have the start timeout. In Kueue they have no timeout.
//! - ⚖ A deactivation removes `DeactivationTarget`. Kueue leaves it on a workload that was evicted for another reason
//!   before and has no `requeueState`, and deactivates the workload again when its user activates it.
//! - ⚖ Admission checks do not defer an inactive workload. Kueue writes `requeueAt` and drops it again for as long as a
//!   check of such a workload requests a retry.
//! - ⚖ `Requeued=False` for an unknown reason, or for one without backoff, does not exclude a workload forever.
//! - The time limit and the factor are settings; Kueue lacks the first, and the second is fixed.
//!
//! The maximum execution time, missing queues and the admission of a workload after its checks are decided elsewhere.

mod apply;
mod backoff;
mod lifecycle;
mod reason;
mod requeue_state;
mod settings;
mod step;
mod time;
mod timeout;

pub use backoff::{Backoff, Factor, Jitter};
pub use lifecycle::{
    AdmissionCheckStates, EvictedCondition, LifecycleState, PodsReady, StopPolicy, may_admit,
};
pub use reason::{
    DeactivationCause, DeactivationTarget, EvictionReason, NotReadyReason, RequeuedReason,
    RequeuingLimit,
};
pub use requeue_state::RequeueState;
pub use settings::{QueueOrderTimestamp, RequeueSettings};
pub use step::{Eviction, LifecycleStep, Requeue, next_step};
