//! What becomes of a workload whose pods are not ready in time: it is evicted, waits, is tried again, and
//! is given up in the end (KEP-1282, `waitForPodsReady`).
//!
//! # The life of a workload
//!
//! A workload that is admitted has a **timeout** for its pods to be ready. If a pod fails later, it has a
//! **recovery timeout** from then on. When one of them is reached, the workload is **evicted**: its count
//! of evictions grows by one, and it must not be tried again before *now + delay*, `requeueAt`. Its job
//! stops and gives the quota back; until `requeueAt` the workload is held outside the queue, where others
//! have their chance. Then its **backoff** is over and it takes its place in the queue again.
//!
//! The delay after the n-th eviction is
//!
//! > *base* · *factor*^(n−1), at most *cap*, and a little jitter on top.
//!
//! What Kueue does today (60 s, twice as long each time, at most an hour) and what the KEP says
//! (1.41284738^(n−1) seconds) are both [`Backoff`]s.
//!
//! A limit ends this: `backoffLimitCount` evictions, or `backoffLimitSeconds` after the first one in a
//! row. Then the workload is marked (`DeactivationTarget`), made inactive, and evicted for good. Whoever
//! made it inactive, its `requeueState` is dropped. When its user makes it active again, it comes back and
//! its count begins at nothing.
//!
//! A start that succeeds does not lower the count. It does end the time of the limit by time: that is for
//! workloads that never start.
//!
//! # How to use it
//!
//! [`next_step`] looks at where a workload stands ([`Standing`]) and says what to write next ([`Step`]), one
//! write at a time; [`Standing::apply`] does the same to a `Standing`. Time and jitter are passed in.
//! [`Standing::held_until_s`] says what the queue has to do ([`State::hold`](crate::State::hold)),
//! [`Standing::order_time_ms`] where its place is, [`may_admit`] whether `blockAdmission` lets anybody in.
//!
//! ```
//! use lockkeeper_preemption::requeue::{Jitter, Settings, Standing, Step, next_step};
//! use std::time::Duration;
//!
//! let settings = Settings { is_enabled: true, ..Settings::default() };
//! let mut job = Standing { has_quota: true, admitted_at_s: Some(0), ..Standing::default() };
//! let step = |job: &Standing, now_ms| next_step(&settings, job, now_ms, Jitter::NONE);
//!
//! // Its pods have five minutes.
//! assert_eq!(step(&job, 290_000), Step::Wait(Duration::from_secs(10)));
//! let eviction = step(&job, 300_000);
//! assert!(matches!(eviction, Step::Evict(_)));
//! job.apply(&eviction, 300_000);
//! job.job_stopped();
//!
//! // It waits for a minute outside the queue, then it comes back. The count stays.
//! assert_eq!(job.held_until_s(300_000), Some(360));
//! assert_eq!(step(&job, 300_000), Step::Wait(Duration::from_mins(1)));
//! let back = step(&job, 360_000);
//! assert!(matches!(back, Step::Requeue(_)));
//! job.apply(&back, 360_000);
//! assert_eq!(job.held_until_s(360_000), None);
//! assert_eq!(job.state.and_then(|state| state.count), Some(1));
//! ```
//!
//! # Differences from KEP-1282
//!
//! In all of these Kueue does today what is done here.
//! - The delays of the KEP are the preset [`Backoff::kep_1282`]; the default is Kueue's of today.
//! - `requeueState` is dropped at any deactivation. In the KEP it was dropped when a workload that the
//!   limit had deactivated became active again, and kept if a user had deactivated it.
//! - A workload over the limit is marked before it is made inactive.
//! - There is a recovery timeout.
//! - An eviction for an admission check gives a place by its time whatever `timestamp` says.
//! - The KEP's sketch of `backoffLimitTimeout` counts from the workload's time in queue order, and ends
//!   workloads that wait in the queue as well. `backoffLimitSeconds` counts from the first eviction since
//!   the pods were ready last and is looked at when a timeout is reached: waiting for quota is no failure.
//!   The open change to Kueue (kubernetes-sigs/kueue#15278) does it so, too.
//!
//! # Differences from Kueue
//!
//! As of commit ff69552e79ad. Those marked ⚖ are as in Kueue with
//! [`Compatibility::Kueue`](crate::Compatibility::Kueue).
//! - A workload that the controller itself deactivated (`Requeued=False` with reason
//!   `DeactivatedDueTo…`) comes back when it is active again. Kueue left it outside the queue for ever;
//!   kubernetes-sigs/kueue#14874 has mended that since, and so there is no switch for it.
//! - ⚖ The first delay is capped like the others.
//! - ⚖ `requeueAt` is rounded up to the second. Kueue cuts the fraction off, so that a delay is up to a
//!   second shorter than it says.
//! - ⚖ The end of a backoff is one write. Kueue needs two: the first clears `requeueAt`, the second sets
//!   `Requeued=True`.
//! - ⚖ A `requeueAt` that is ahead does not put off the timeout of a workload that is admitted.
//! - ⚖ The recovery timeout begins with the admission at the earliest. Kueue takes the time at which the
//!   condition changed, also if that was in an earlier run.
//! - ⚖ Pods that are not ready for a reason that is not known have the timeout of a start. In Kueue they
//!   have for ever.
//! - ⚖ A `DeactivationTarget` goes with the deactivation. Kueue leaves it on a workload that was evicted
//!   for something else before and has no `requeueState`, and deactivates the workload again when its
//!   user activates it.
//! - ⚖ Admission checks do not put off a workload that is not active. Kueue writes `requeueAt` and drops it
//!   again for as long as a check of such a workload says so.
//! - ⚖ `Requeued=False` for a reason that is not known, or that needs no waiting, does not hold a workload
//!   for ever.
//! - The limit by time and the factor are settings; Kueue has the one not at all and the other fixed.
//!
//! The maximum execution time, missing queues and the admission of a workload whose checks are done are
//! not decided here.

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
