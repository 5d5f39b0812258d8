//! Where we differ from Kueue unless compatibility is asked for: each row in both.

use crate::{admitted, settings, step, take};
use lockkeeper_preemption::Compatibility;
use lockkeeper_preemption::requeue::{
    DeactivationCause, Evicted, EvictionReason, Jitter, NotReady, PodsReady, RequeueState,
    RequeuedReason, Settings, Standing, Step, next_step,
};
use std::time::Duration;

fn ours() -> Settings {
    settings(|_| {})
}

fn kueues() -> Settings {
    settings(|it| it.compatibility = Compatibility::Kueue)
}

fn put_off_until(at_s: i64) -> RequeueState {
    RequeueState {
        count: Some(1),
        requeue_at_s: Some(at_s),
        ..RequeueState::default()
    }
}

fn requeued(step: Step) -> Option<RequeuedReason> {
    match step {
        Step::Requeue(requeue) => Some(requeue.reason),
        _ => None,
    }
}

/// kubernetes-sigs/kueue#14870: in both.
#[test]
fn a_reactivated_workload_is_not_stuck() {
    let causes = [
        DeactivationCause::RequeuingLimitExceeded,
        DeactivationCause::MaximumExecutionTimeExceeded,
        DeactivationCause::AdmissionCheck,
        DeactivationCause::Other,
    ];
    for cause in causes.map(Some).into_iter().chain([None]) {
        let job = Standing {
            held_for: Some(EvictionReason::Deactivated(cause)),
            ..Standing::default()
        };
        for settings in [ours(), kueues()] {
            let found = requeued(step(&settings, &job, 500));
            assert_eq!(found, Some(RequeuedReason::Reactivated), "{cause:?}");
        }
    }
}

#[test]
fn the_end_of_a_backoff_is_one_write() {
    let job = Standing {
        held_for: Some(EvictionReason::PodsReadyTimeout),
        state: Some(put_off_until(60)),
        ..Standing::default()
    };
    let finished = Some(RequeuedReason::BackoffFinished);
    let mut once = job.clone();
    assert_eq!(requeued(take(&ours(), &mut once, 60)), finished);
    let mut twice = job.clone();
    assert!(matches!(take(&kueues(), &mut twice, 60), Step::Record(_)));
    assert_eq!(twice.requeue_at_s(), None);
    assert_eq!(twice.held_until_s(60_000), Some(i64::MAX));
    assert_eq!(requeued(take(&kueues(), &mut twice, 60)), finished);
    assert_eq!(once, twice);
}

#[test]
fn a_delay_is_never_cut_short() {
    for (settings, at_s) in [(ours(), 361), (kueues(), 360)] {
        let mut job = admitted(0);
        job.apply(&next_step(&settings, &job, 300_500, Jitter::NONE), 300_500);
        assert_eq!(job.requeue_at_s(), Some(at_s));
    }
}

#[test]
fn the_first_delay_has_the_cap_too() {
    for (mut settings, at_s) in [(ours(), 330), (kueues(), 360)] {
        settings.backoff.cap = Some(Duration::from_secs(30));
        let mut job = admitted(0);
        take(&settings, &mut job, 300);
        assert_eq!(job.requeue_at_s(), Some(at_s));
    }
}

#[test]
fn a_backoff_ahead_does_not_put_off_a_timeout() {
    let mut job = admitted(0);
    job.state = Some(put_off_until(1_000));
    assert!(matches!(step(&ours(), &job, 300), Step::Evict(_)));
    let wait = Step::Wait(Duration::from_secs(700));
    assert_eq!(step(&kueues(), &job, 300), wait);
}

#[test]
fn a_failure_of_an_earlier_run_is_none_of_this_one() {
    let mut job = admitted(1_000);
    job.pods_ready = PodsReady::No {
        reason: NotReady::WaitForRecovery,
        since_s: 0,
    };
    let wait = Step::Wait(Duration::from_secs(299));
    assert_eq!(step(&ours(), &job, 1_001), wait);
    assert!(matches!(step(&kueues(), &job, 1_001), Step::Evict(_)));
}

#[test]
fn an_unknown_reason_is_no_endless_wait() {
    let mut job = admitted(0);
    job.pods_ready = PodsReady::No {
        reason: NotReady::of("Sleeping"),
        since_s: 100,
    };
    let wait = Step::Wait(Duration::from_secs(1));
    assert_eq!(step(&ours(), &job, 399), wait);
    assert!(matches!(step(&ours(), &job, 400), Step::Evict(_)));
    assert_eq!(step(&kueues(), &job, 400), Step::Rest);
}

#[test]
fn a_target_does_not_outlive_the_deactivation() {
    let mut job = Standing {
        is_active: false,
        evicted: Some(Evicted {
            reason: EvictionReason::Preempted,
            at_s: 0,
        }),
        target: Some(DeactivationCause::RequeuingLimitExceeded),
        ..Standing::default()
    };
    assert_eq!(step(&kueues(), &job, 1), Step::Rest);
    assert_eq!(take(&ours(), &mut job, 1), Step::Forget);
    assert_eq!(job.target, None);
}

#[test]
fn checks_do_not_put_off_who_is_not_active() {
    let mut job = Standing {
        is_active: false,
        evicted: Some(Evicted {
            reason: EvictionReason::Preempted,
            at_s: 0,
        }),
        ..Standing::default()
    };
    job.checks.retry_at_s = Some(10);
    assert_eq!(step(&ours(), &job, 1), Step::Rest);
    let before = job.clone();
    assert!(matches!(take(&kueues(), &mut job, 1), Step::Record(_)));
    assert_eq!(take(&kueues(), &mut job, 1), Step::Forget);
    assert_eq!(job, before, "and so on until the time of the check");
}

#[test]
fn nobody_is_held_for_a_reason_that_nobody_lifts() {
    for reason in ["Inadmissible", "Preempted", "NodeFailures"] {
        let job = Standing {
            held_for: Some(EvictionReason::of(reason)),
            ..Standing::default()
        };
        let found = requeued(step(&ours(), &job, 1));
        assert_eq!(found, Some(RequeuedReason::BackoffFinished));
        assert_eq!(step(&kueues(), &job, 1), Step::Rest);
    }
}
