//! The life of a workload, step by step.

use crate::{admit, admitted, settings, step, take};
use lockkeeper_preemption::requeue::{
    Backoff, Checks, DeactivationCause, Evicted, Eviction, EvictionReason, Limit, NotReady,
    PodsReady, Requeue, RequeueState, RequeuedReason, Settings, Standing, Step, StopPolicy, Target,
};
use std::time::Duration;

fn not_ready(reason: NotReady, since_s: i64) -> PodsReady {
    PodsReady::No { reason, since_s }
}

fn times(count: u32) -> RequeueState {
    RequeueState {
        count: Some(count),
        ..RequeueState::default()
    }
}

fn wait(seconds: u64) -> Step {
    Step::Wait(Duration::from_secs(seconds))
}

/// The underlying cause of an eviction for pods that are not ready.
fn timed_out(step: Step) -> Option<NotReady> {
    match step {
        Step::Evict(Eviction {
            reason: EvictionReason::PodsReadyTimeout,
            underlying_cause,
            ..
        }) => underlying_cause,
        _ => None,
    }
}

#[test]
fn a_start_is_timed_from_the_admission() {
    let on = settings(|_| {});
    let mut job = admitted(100);
    for pods_ready in [PodsReady::Unknown, not_ready(NotReady::WaitForStart, 399)] {
        job.pods_ready = pods_ready;
        assert_eq!(step(&on, &job, 399), wait(1));
        assert_eq!(
            timed_out(step(&on, &job, 400)),
            Some(NotReady::WaitForStart)
        );
    }
    job.pods_ready = PodsReady::Yes;
    assert_eq!(step(&on, &job, 100_000), Step::Rest);
    let off = Settings::default();
    job.pods_ready = PodsReady::Unknown;
    assert_eq!(step(&off, &job, 100_000), Step::Rest);
}

#[test]
fn a_recovery_is_timed_from_the_failure() {
    let on = settings(|it| it.recovery_timeout = Some(Duration::from_mins(1)));
    let mut job = admitted(0);
    job.pods_ready = not_ready(NotReady::WaitForRecovery, 1_000);
    assert_eq!(step(&on, &job, 1_059), wait(1));
    assert_eq!(
        timed_out(step(&on, &job, 1_060)),
        Some(NotReady::WaitForRecovery)
    );
    let endless = settings(|it| it.recovery_timeout = None);
    assert_eq!(step(&endless, &job, 1_000_000), Step::Rest);
}

#[test]
fn whoever_is_over_the_limit_is_deactivated_and_comes_back_anew() {
    let on = settings(|it| it.backoff_limit_count = Some(2));
    let mut job = admitted(0);
    let mut now_s = 0;
    for count in 1..=2 {
        now_s += 300;
        assert!(timed_out(take(&on, &mut job, now_s)).is_some());
        assert_eq!(job.state.unwrap().count, Some(count));
        job.job_stopped();
        assert_eq!(job.held_for, Some(EvictionReason::PodsReadyTimeout));
        now_s = job.requeue_at_s().unwrap();
        let back = Requeue {
            reason: RequeuedReason::BackoffFinished,
            state: Some(times(count)),
        };
        assert_eq!(take(&on, &mut job, now_s), Step::Requeue(back));
        admit(&mut job, now_s);
    }
    now_s += 300;
    let target = Target::RequeuingLimit(Limit::Count);
    assert_eq!(take(&on, &mut job, now_s), Step::Target(target));
    assert_eq!(
        job.state,
        Some(times(2)),
        "the state is left as it is until then"
    );
    assert_eq!(take(&on, &mut job, now_s), Step::Deactivate);
    let cause = DeactivationCause::RequeuingLimitExceeded;
    let eviction = Eviction {
        reason: EvictionReason::Deactivated(Some(cause)),
        underlying_cause: None,
        state: None,
    };
    assert_eq!(take(&on, &mut job, now_s), Step::Evict(eviction));
    job.job_stopped();
    assert_eq!(step(&on, &job, now_s), Step::Rest);
    assert!(!job.is_backoff_over(now_s * 1_000));

    job.is_active = true;
    let back = Requeue {
        reason: RequeuedReason::Reactivated,
        state: None,
    };
    assert_eq!(take(&on, &mut job, now_s), Step::Requeue(back));
    admit(&mut job, now_s);
    now_s += 300;
    assert!(timed_out(take(&on, &mut job, now_s)).is_some());
    assert_eq!(job.state.unwrap().count, Some(1));
}

#[test]
fn a_limit_of_nothing_deactivates_at_the_first_timeout() {
    let limits: [fn(&mut Settings); 2] = [
        |it| it.backoff_limit_count = Some(0),
        |it| it.backoff_limit = Some(Duration::ZERO),
    ];
    for limit in limits {
        let found = step(&settings(limit), &admitted(0), 300);
        assert!(matches!(found, Step::Target(Target::RequeuingLimit(_))));
    }
}

#[test]
fn the_limit_by_time_counts_from_the_first_eviction() {
    let on = settings(|it| {
        it.backoff_limit = Some(Duration::from_secs(1_000));
        it.backoff.base = Duration::ZERO;
    });
    let mut job = admitted(0);
    assert!(timed_out(take(&on, &mut job, 300)).is_some());
    assert_eq!(job.state.unwrap().first_evicted_at_s, Some(300));
    job.job_stopped();
    take(&on, &mut job, 300);
    // It is not looked at while it waits for quota, however long.
    assert_eq!(step(&on, &job, 999_000), Step::Rest);
    admit(&mut job, 999);
    assert!(timed_out(step(&on, &job, 1_299)).is_some());
    let target = Target::RequeuingLimit(Limit::Time);
    assert_eq!(step(&on, &job, 1_300), Step::Target(target));
    assert_eq!(
        target.message(""),
        "exceeding the maximum time of re-queuing"
    );

    // A start that succeeds ends it; the count stays.
    job.pods_ready = PodsReady::Yes;
    assert_eq!(take(&on, &mut job, 1_300), Step::Record(job.state));
    assert_eq!(job.state.unwrap().first_evicted_at_s, None);
    assert_eq!(job.state.unwrap().count, Some(1));
    job.pods_ready = not_ready(NotReady::WaitForRecovery, 5_000);
    assert!(timed_out(take(&on, &mut job, 5_300)).is_some());
    assert_eq!(job.state.unwrap().first_evicted_at_s, Some(5_300));
}

#[test]
fn without_a_limit_by_time_no_time_is_kept() {
    let mut job = admitted(0);
    take(&settings(|_| {}), &mut job, 300);
    assert_eq!(job.state.unwrap().first_evicted_at_s, None);
}

#[test]
fn a_user_who_deactivates_drops_the_state_too() {
    let on = settings(|_| {});
    let mut job = admitted(0);
    take(&on, &mut job, 300);
    job.is_active = false;
    assert_eq!(take(&on, &mut job, 301), Step::Forget);
    assert_eq!(job.state, None);
    let reason = job.evicted.unwrap().reason;
    assert_eq!(reason, EvictionReason::PodsReadyTimeout, "it stays");
    assert_eq!(step(&on, &job, 302), Step::Rest);

    let mut pending = Standing {
        is_active: false,
        ..Standing::default()
    };
    take(&on, &mut pending, 5);
    let evicted = Evicted {
        reason: EvictionReason::Deactivated(None),
        at_s: 5,
    };
    assert_eq!(pending.evicted, Some(evicted));
}

#[test]
fn victims_come_back_at_once_and_keep_their_count() {
    let mut job = admitted(0);
    job.state = Some(times(4));
    job.evicted = Some(Evicted {
        reason: EvictionReason::Preempted,
        at_s: 10,
    });
    assert_eq!(step(&settings(|_| {}), &job, 100_000), Step::Rest);
    job.job_stopped();
    assert!(job.is_pending() && job.is_backoff_over(10_000));
    assert_eq!(job.state, Some(times(4)));
}

#[test]
fn stopped_queues_drain_and_restart() {
    let on = settings(|_| {});
    let mut job = admitted(0);
    job.cluster_queue = StopPolicy::Hold;
    assert_eq!(step(&on, &job, 1), wait(299));
    job.cluster_queue = StopPolicy::HoldAndDrain;
    take(&on, &mut job, 1);
    let stopped = EvictionReason::ClusterQueueStopped;
    assert_eq!(job.evicted.unwrap().reason, stopped);
    job.job_stopped();
    assert_eq!(step(&on, &job, 2), Step::Rest);
    assert_eq!(job.held_until_s(2_000), Some(i64::MAX));
    job.cluster_queue = StopPolicy::None;
    let back = Requeue {
        reason: RequeuedReason::ClusterQueueRestarted,
        state: None,
    };
    assert_eq!(take(&on, &mut job, 3), Step::Requeue(back));
    assert_eq!(job.held_until_s(3_000), None);
}

#[test]
fn checks_put_off_without_counting() {
    let on = settings(|_| {});
    let mut job = Standing {
        checks: Checks {
            is_retry: true,
            retry_at_s: Some(10),
            ..Checks::default()
        },
        ..Standing::default()
    };
    take(&on, &mut job, 0);
    assert_eq!(job.requeue_at_s(), Some(10));
    assert_eq!(job.state.unwrap().count, None);
    assert_eq!(step(&on, &job, 4), wait(6));
}

/// The KEP's example as a life: a workload that is never ready, tried again at once each time, is
/// deactivated after a day.
#[test]
fn thirty_retries_by_the_kep_take_a_day() {
    let on = settings(|it| {
        it.backoff = Backoff::kep_1282();
        it.backoff_limit_count = Some(30);
    });
    let mut job = admitted(0);
    let mut now_s = 0;
    // A retry is a wait, an eviction, another wait and the return.
    for _ in 0..=30 * 4 + 1 {
        match take(&on, &mut job, now_s) {
            Step::Wait(left) => now_s += i64::try_from(left.as_secs()).unwrap(),
            Step::Evict(_) => job.job_stopped(),
            Step::Requeue(_) => admit(&mut job, now_s),
            _ => {}
        }
    }
    assert!(job.target.is_some());
    // Each delay ends with a full second.
    assert!((86_400..=86_430).contains(&now_s), "{now_s} s");
    assert_eq!(job.state, Some(times(30)));
}
