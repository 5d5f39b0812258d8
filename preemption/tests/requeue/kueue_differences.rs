//! Differences from Kueue: each case with and without compatibility.

use crate::{admitted, apply_step, settings, step};
use lockkeeper_preemption::Compatibility;
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictedCondition, EvictionReason, Jitter, LifecycleState, LifecycleStep,
    NotReadyReason, PodsReady, RequeueSettings, RequeueState, RequeuedReason, next_step,
};
use std::time::Duration;

fn lockkeeper_settings() -> RequeueSettings {
    settings(|_| {})
}

fn kueue_settings() -> RequeueSettings {
    settings(|it| it.compatibility = Compatibility::Kueue)
}

fn deferred_until(at_s: i64) -> RequeueState {
    RequeueState {
        count: Some(1),
        requeue_at_s: Some(at_s),
        ..RequeueState::default()
    }
}

fn requeued(step: LifecycleStep) -> Option<RequeuedReason> {
    match step {
        LifecycleStep::Requeue(requeue) => Some(requeue.reason),
        _ => None,
    }
}

/// kubernetes-sigs/kueue#14870: the same with and without compatibility.
#[test]
fn reactivated_workload_is_requeued() {
    let causes = [
        DeactivationCause::RequeuingLimitExceeded,
        DeactivationCause::MaximumExecutionTimeExceeded,
        DeactivationCause::AdmissionCheck,
        DeactivationCause::Other,
    ];
    for cause in causes.map(Some).into_iter().chain([None]) {
        let job = LifecycleState {
            not_requeued_reason: Some(EvictionReason::Deactivated(cause)),
            ..LifecycleState::default()
        };
        for settings in [lockkeeper_settings(), kueue_settings()] {
            let found = requeued(step(&settings, &job, 500));
            assert_eq!(found, Some(RequeuedReason::Reactivated), "{cause:?}");
        }
    }
}

#[test]
fn backoff_end_is_one_write() {
    let job = LifecycleState {
        not_requeued_reason: Some(EvictionReason::PodsReadyTimeout),
        requeue_state: Some(deferred_until(60)),
        ..LifecycleState::default()
    };
    let finished = Some(RequeuedReason::BackoffFinished);
    let mut once = job.clone();
    assert_eq!(
        requeued(apply_step(&lockkeeper_settings(), &mut once, 60)),
        finished
    );
    let mut twice = job.clone();
    assert!(matches!(
        apply_step(&kueue_settings(), &mut twice, 60),
        LifecycleStep::SetRequeueState(_)
    ));
    assert_eq!(twice.requeue_at_s(), None);
    assert_eq!(twice.hold_until_s(60_000), Some(i64::MAX));
    assert_eq!(
        requeued(apply_step(&kueue_settings(), &mut twice, 60)),
        finished
    );
    assert_eq!(once, twice);
}

#[test]
fn backoff_delay_is_never_shortened() {
    for (settings, at_s) in [(lockkeeper_settings(), 361), (kueue_settings(), 360)] {
        let mut job = admitted(0);
        job.apply(&next_step(&settings, &job, 300_500, Jitter::NONE), 300_500);
        assert_eq!(job.requeue_at_s(), Some(at_s));
    }
}

#[test]
fn first_delay_is_capped() {
    for (mut settings, at_s) in [(lockkeeper_settings(), 330), (kueue_settings(), 360)] {
        settings.backoff.cap = Some(Duration::from_secs(30));
        let mut job = admitted(0);
        apply_step(&settings, &mut job, 300);
        assert_eq!(job.requeue_at_s(), Some(at_s));
    }
}

#[test]
fn future_backoff_does_not_delay_timeout() {
    let mut job = admitted(0);
    job.requeue_state = Some(deferred_until(1_000));
    assert!(matches!(
        step(&lockkeeper_settings(), &job, 300),
        LifecycleStep::Evict(_)
    ));
    let wait = LifecycleStep::Wait(Duration::from_secs(700));
    assert_eq!(step(&kueue_settings(), &job, 300), wait);
}

#[test]
fn failure_of_earlier_run_is_ignored() {
    let mut job = admitted(1_000);
    job.pods_ready = PodsReady::No {
        reason: NotReadyReason::WaitForRecovery,
        since_s: 0,
    };
    let wait = LifecycleStep::Wait(Duration::from_secs(299));
    assert_eq!(step(&lockkeeper_settings(), &job, 1_001), wait);
    assert!(matches!(
        step(&kueue_settings(), &job, 1_001),
        LifecycleStep::Evict(_)
    ));
}

#[test]
fn unknown_not_ready_reason_still_times_out() {
    let mut job = admitted(0);
    job.pods_ready = PodsReady::No {
        reason: NotReadyReason::from_reason("Sleeping"),
        since_s: 100,
    };
    let wait = LifecycleStep::Wait(Duration::from_secs(1));
    assert_eq!(step(&lockkeeper_settings(), &job, 399), wait);
    assert!(matches!(
        step(&lockkeeper_settings(), &job, 400),
        LifecycleStep::Evict(_)
    ));
    assert_eq!(step(&kueue_settings(), &job, 400), LifecycleStep::Idle);
}

#[test]
fn deactivation_target_is_cleared_after_deactivation() {
    let mut job = LifecycleState {
        is_active: false,
        evicted: Some(EvictedCondition {
            reason: EvictionReason::Preempted,
            at_s: 0,
        }),
        deactivation_target: Some(DeactivationCause::RequeuingLimitExceeded),
        ..LifecycleState::default()
    };
    assert_eq!(step(&kueue_settings(), &job, 1), LifecycleStep::Idle);
    assert_eq!(
        apply_step(&lockkeeper_settings(), &mut job, 1),
        LifecycleStep::ClearRequeueState
    );
    assert_eq!(job.deactivation_target, None);
}

#[test]
fn retry_checks_do_not_defer_inactive_workload() {
    let mut job = LifecycleState {
        is_active: false,
        evicted: Some(EvictedCondition {
            reason: EvictionReason::Preempted,
            at_s: 0,
        }),
        ..LifecycleState::default()
    };
    job.admission_checks.retry_at_s = Some(10);
    assert_eq!(step(&lockkeeper_settings(), &job, 1), LifecycleStep::Idle);
    let before = job.clone();
    assert!(matches!(
        apply_step(&kueue_settings(), &mut job, 1),
        LifecycleStep::SetRequeueState(_)
    ));
    assert_eq!(
        apply_step(&kueue_settings(), &mut job, 1),
        LifecycleStep::ClearRequeueState
    );
    assert_eq!(job, before, "this repeats until the time of the check");
}

#[test]
fn unknown_not_requeued_reason_does_not_block_forever() {
    for reason in ["Inadmissible", "Preempted", "NodeFailures"] {
        let job = LifecycleState {
            not_requeued_reason: Some(EvictionReason::from_reason(reason)),
            ..LifecycleState::default()
        };
        let found = requeued(step(&lockkeeper_settings(), &job, 1));
        assert_eq!(found, Some(RequeuedReason::BackoffFinished));
        assert_eq!(step(&kueue_settings(), &job, 1), LifecycleStep::Idle);
    }
}
