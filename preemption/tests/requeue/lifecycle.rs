//! The life cycle of a workload, step by step.

use crate::{admit, admitted, apply_step, settings, step};
use lockkeeper_preemption::requeue::{
    AdmissionCheckStates, Backoff, DeactivationCause, DeactivationTarget, EvictedCondition,
    Eviction, EvictionReason, LifecycleState, LifecycleStep, NotReadyReason, PodsReady, Requeue,
    RequeueSettings, RequeueState, RequeuedReason, RequeuingLimit, StopPolicy,
};
use std::time::Duration;

fn not_ready(reason: NotReadyReason, since_s: i64) -> PodsReady {
    PodsReady::No { reason, since_s }
}

fn requeue_state_with_count(count: u32) -> RequeueState {
    RequeueState {
        count: Some(count),
        ..RequeueState::default()
    }
}

fn wait(seconds: u64) -> LifecycleStep {
    LifecycleStep::Wait(Duration::from_secs(seconds))
}

/// The underlying cause of an eviction for pods that are not ready.
fn timeout_cause(step: LifecycleStep) -> Option<NotReadyReason> {
    match step {
        LifecycleStep::Evict(Eviction {
            reason: EvictionReason::PodsReadyTimeout,
            underlying_cause,
            ..
        }) => underlying_cause,
        _ => None,
    }
}

#[test]
fn start_timeout_counts_from_admission() {
    let on = settings(|_| {});
    let mut job = admitted(100);
    for pods_ready in [
        PodsReady::Unknown,
        not_ready(NotReadyReason::WaitForStart, 399),
    ] {
        job.pods_ready = pods_ready;
        assert_eq!(step(&on, &job, 399), wait(1));
        assert_eq!(
            timeout_cause(step(&on, &job, 400)),
            Some(NotReadyReason::WaitForStart)
        );
    }
    job.pods_ready = PodsReady::Yes;
    assert_eq!(step(&on, &job, 100_000), LifecycleStep::Idle);
    let off = RequeueSettings::default();
    job.pods_ready = PodsReady::Unknown;
    assert_eq!(step(&off, &job, 100_000), LifecycleStep::Idle);
}

#[test]
fn recovery_timeout_counts_from_failure() {
    let on = settings(|it| it.recovery_timeout = Some(Duration::from_mins(1)));
    let mut job = admitted(0);
    job.pods_ready = not_ready(NotReadyReason::WaitForRecovery, 1_000);
    assert_eq!(step(&on, &job, 1_059), wait(1));
    assert_eq!(
        timeout_cause(step(&on, &job, 1_060)),
        Some(NotReadyReason::WaitForRecovery)
    );
    let unlimited = settings(|it| it.recovery_timeout = None);
    assert_eq!(step(&unlimited, &job, 1_000_000), LifecycleStep::Idle);
}

#[test]
fn over_limit_workload_is_deactivated_and_starts_fresh() {
    let on = settings(|it| it.backoff_limit_count = Some(2));
    let mut job = admitted(0);
    let mut now_s = 0;
    for count in 1..=2 {
        now_s += 300;
        assert!(timeout_cause(apply_step(&on, &mut job, now_s)).is_some());
        assert_eq!(job.requeue_state.unwrap().count, Some(count));
        job.on_job_stopped();
        assert_eq!(
            job.not_requeued_reason,
            Some(EvictionReason::PodsReadyTimeout)
        );
        now_s = job.requeue_at_s().unwrap();
        let back = Requeue {
            reason: RequeuedReason::BackoffFinished,
            requeue_state: Some(requeue_state_with_count(count)),
        };
        assert_eq!(
            apply_step(&on, &mut job, now_s),
            LifecycleStep::Requeue(back)
        );
        admit(&mut job, now_s);
    }
    now_s += 300;
    let target = DeactivationTarget::RequeuingLimit(RequeuingLimit::Count);
    assert_eq!(
        apply_step(&on, &mut job, now_s),
        LifecycleStep::SetDeactivationTarget(target)
    );
    assert_eq!(
        job.requeue_state,
        Some(requeue_state_with_count(2)),
        "the state is unchanged until then"
    );
    assert_eq!(apply_step(&on, &mut job, now_s), LifecycleStep::Deactivate);
    let cause = DeactivationCause::RequeuingLimitExceeded;
    let eviction = Eviction {
        reason: EvictionReason::Deactivated(Some(cause)),
        underlying_cause: None,
        requeue_state: None,
    };
    assert_eq!(
        apply_step(&on, &mut job, now_s),
        LifecycleStep::Evict(eviction)
    );
    job.on_job_stopped();
    assert_eq!(step(&on, &job, now_s), LifecycleStep::Idle);
    assert!(!job.is_backoff_over(now_s * 1_000));

    job.is_active = true;
    let back = Requeue {
        reason: RequeuedReason::Reactivated,
        requeue_state: None,
    };
    assert_eq!(
        apply_step(&on, &mut job, now_s),
        LifecycleStep::Requeue(back)
    );
    admit(&mut job, now_s);
    now_s += 300;
    assert!(timeout_cause(apply_step(&on, &mut job, now_s)).is_some());
    assert_eq!(job.requeue_state.unwrap().count, Some(1));
}

#[test]
fn zero_limit_deactivates_at_first_timeout() {
    let limits: [fn(&mut RequeueSettings); 2] = [
        |it| it.backoff_limit_count = Some(0),
        |it| it.backoff_limit = Some(Duration::ZERO),
    ];
    for limit in limits {
        let found = step(&settings(limit), &admitted(0), 300);
        assert!(matches!(
            found,
            LifecycleStep::SetDeactivationTarget(DeactivationTarget::RequeuingLimit(_))
        ));
    }
}

#[test]
fn time_limit_counts_from_first_eviction() {
    let on = settings(|config| {
        config.backoff_limit = Some(Duration::from_secs(1_000));
        config.backoff.base = Duration::ZERO;
    });
    let mut job = admitted(0);
    assert!(timeout_cause(apply_step(&on, &mut job, 300)).is_some());
    assert_eq!(job.requeue_state.unwrap().first_evicted_at_s, Some(300));
    job.on_job_stopped();
    apply_step(&on, &mut job, 300);
    // The limit is not checked while the workload is pending, however long.
    assert_eq!(step(&on, &job, 999_000), LifecycleStep::Idle);
    admit(&mut job, 999);
    assert!(timeout_cause(step(&on, &job, 1_299)).is_some());
    let target = DeactivationTarget::RequeuingLimit(RequeuingLimit::Time);
    assert_eq!(
        step(&on, &job, 1_300),
        LifecycleStep::SetDeactivationTarget(target)
    );
    assert_eq!(
        target.message(""),
        "exceeding the maximum time of re-queuing"
    );

    // A successful start resets it; the count stays.
    job.pods_ready = PodsReady::Yes;
    assert_eq!(
        apply_step(&on, &mut job, 1_300),
        LifecycleStep::SetRequeueState(job.requeue_state)
    );
    assert_eq!(job.requeue_state.unwrap().first_evicted_at_s, None);
    assert_eq!(job.requeue_state.unwrap().count, Some(1));
    job.pods_ready = not_ready(NotReadyReason::WaitForRecovery, 5_000);
    assert!(timeout_cause(apply_step(&on, &mut job, 5_300)).is_some());
    assert_eq!(job.requeue_state.unwrap().first_evicted_at_s, Some(5_300));
}

#[test]
fn workload_with_quota_is_not_pending() {
    let mut job = LifecycleState::default();
    assert!(job.is_pending());
    job.on_quota_reserved();
    assert!(!job.is_pending());
    job.admitted_at_s = Some(0);
    assert!(!job.is_pending());
    job.on_job_stopped();
    assert!(job.is_pending());
    job.is_finished = true;
    assert!(!job.is_pending());
    assert_eq!(step(&settings(|_| {}), &job, 1_000), LifecycleStep::Idle);
}

#[test]
fn first_evicted_at_is_unset_without_time_limit() {
    let mut job = admitted(0);
    apply_step(&settings(|_| {}), &mut job, 300);
    assert_eq!(job.requeue_state.unwrap().first_evicted_at_s, None);
}

#[test]
fn user_deactivation_clears_requeue_state() {
    let on = settings(|_| {});
    let mut job = admitted(0);
    apply_step(&on, &mut job, 300);
    job.is_active = false;
    assert_eq!(
        apply_step(&on, &mut job, 301),
        LifecycleStep::ClearRequeueState
    );
    assert_eq!(job.requeue_state, None);
    let reason = job.evicted.unwrap().reason;
    assert_eq!(reason, EvictionReason::PodsReadyTimeout, "it stays");
    assert_eq!(step(&on, &job, 302), LifecycleStep::Idle);

    let mut pending = LifecycleState {
        is_active: false,
        ..LifecycleState::default()
    };
    apply_step(&on, &mut pending, 5);
    let evicted = EvictedCondition {
        reason: EvictionReason::Deactivated(None),
        at_s: 5,
    };
    assert_eq!(pending.evicted, Some(evicted));
}

#[test]
fn preempted_workload_requeues_at_once_and_keeps_count() {
    let mut job = admitted(0);
    job.requeue_state = Some(requeue_state_with_count(4));
    job.evicted = Some(EvictedCondition {
        reason: EvictionReason::Preempted,
        at_s: 10,
    });
    assert_eq!(step(&settings(|_| {}), &job, 100_000), LifecycleStep::Idle);
    job.on_job_stopped();
    assert!(job.is_pending() && job.is_backoff_over(10_000));
    assert_eq!(job.requeue_state, Some(requeue_state_with_count(4)));
}

#[test]
fn stopped_queue_drains_and_restarts() {
    let on = settings(|_| {});
    let mut job = admitted(0);
    job.cluster_queue = StopPolicy::Hold;
    assert_eq!(step(&on, &job, 1), wait(299));
    job.cluster_queue = StopPolicy::HoldAndDrain;
    apply_step(&on, &mut job, 1);
    let stopped = EvictionReason::ClusterQueueStopped;
    assert_eq!(job.evicted.unwrap().reason, stopped);
    job.on_job_stopped();
    assert_eq!(step(&on, &job, 2), LifecycleStep::Idle);
    assert_eq!(job.hold_until_s(2_000), Some(i64::MAX));
    job.cluster_queue = StopPolicy::None;
    let back = Requeue {
        reason: RequeuedReason::ClusterQueueRestarted,
        requeue_state: None,
    };
    assert_eq!(apply_step(&on, &mut job, 3), LifecycleStep::Requeue(back));
    assert_eq!(job.hold_until_s(3_000), None);
}

#[test]
fn retry_checks_defer_without_counting() {
    let on = settings(|_| {});
    let mut job = LifecycleState {
        admission_checks: AdmissionCheckStates {
            is_retry: true,
            retry_at_s: Some(10),
            ..AdmissionCheckStates::default()
        },
        ..LifecycleState::default()
    };
    apply_step(&on, &mut job, 0);
    assert_eq!(job.requeue_at_s(), Some(10));
    assert_eq!(job.requeue_state.unwrap().count, None);
    assert_eq!(step(&on, &job, 4), wait(6));
    assert!(!job.is_backoff_over(9_999) && job.is_backoff_over(10_000));
    // A time in the past is not written.
    job.requeue_state = None;
    assert_eq!(step(&on, &job, 10), LifecycleStep::Idle);
}

/// The KEP's example: a workload that is never ready, and is admitted immediately after each backoff, is deactivated
/// after a day.
#[test]
fn kep_1282_thirty_retries_take_a_day() {
    let on = settings(|config| {
        config.backoff = Backoff::kep_1282();
        config.backoff_limit_count = Some(30);
    });
    let mut job = admitted(0);
    let mut now_s = 0;
    // A retry consists of a wait, an eviction, another wait and a requeueing.
    for _ in 0..=30 * 4 + 1 {
        match apply_step(&on, &mut job, now_s) {
            LifecycleStep::Wait(left) => now_s += i64::try_from(left.as_secs()).unwrap(),
            LifecycleStep::Evict(_) => job.on_job_stopped(),
            LifecycleStep::Requeue(_) => admit(&mut job, now_s),
            _ => {}
        }
    }
    assert!(job.deactivation_target.is_some());
    // Each delay ends with a full second.
    assert!((86_400..=86_430).contains(&now_s), "{now_s} s");
    assert_eq!(job.requeue_state, Some(requeue_state_with_count(30)));
}
