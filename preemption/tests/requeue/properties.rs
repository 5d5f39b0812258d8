//! Properties of all settings and life-cycle states.

use lockkeeper_preemption::Compatibility;
use lockkeeper_preemption::requeue::{
    AdmissionCheckStates, Backoff, DeactivationCause, EvictedCondition, EvictionReason, Factor,
    Jitter, LifecycleState, LifecycleStep, NotReadyReason, PodsReady, QueueOrderTimestamp,
    RequeueSettings, RequeueState, StopPolicy, next_step,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::time::Duration;

/// More steps than any workload needs without another change.
const STEPS_MAX: usize = 8;

/// Random numbers and numbers near the limits.
fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_000_u64, Just(u64::MAX), any::<u64>()]
}

fn durations() -> impl Strategy<Value = Duration> {
    seconds().prop_map(Duration::from_secs)
}

fn instants() -> impl Strategy<Value = i64> {
    prop_oneof![
        -10..10_000_i64,
        Just(i64::MIN),
        Just(i64::MAX),
        any::<i64>()
    ]
}

fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![
        0..50_u32,
        Just(i32::MAX as u32),
        Just(u32::MAX),
        any::<u32>()
    ]
}

fn compatibilities() -> impl Strategy<Value = Compatibility> {
    select(vec![Compatibility::Lockkeeper, Compatibility::Kueue])
}

prop_compose! {
    fn backoffs()(
        base in durations(),
        factor in prop_oneof![Just(200_000_000), 0..400_000_000_u64, any::<u64>()],
        cap in proptest::option::of(durations()),
        jitter_ppm in prop_oneof![Just(100), any::<u32>()],
    ) -> Backoff {
        Backoff { base, factor: Factor::new(factor), cap, jitter_ppm }
    }
}

prop_compose! {
    fn all_settings()(
        timeout in durations(),
        recovery_timeout in proptest::option::of(durations()),
        is_by_creation in any::<bool>(),
        backoff_limit_count in proptest::option::of(counts()),
        backoff_limit in proptest::option::of(durations()),
        backoff in backoffs(),
        compatibility in compatibilities(),
    ) -> RequeueSettings {
        RequeueSettings {
            is_enabled: true,
            timeout,
            recovery_timeout,
            timestamp: if is_by_creation { QueueOrderTimestamp::Creation } else { QueueOrderTimestamp::Eviction },
            backoff_limit_count,
            backoff_limit,
            backoff,
            compatibility,
            ..RequeueSettings::default()
        }
    }
}

fn reasons() -> impl Strategy<Value = EvictionReason> {
    let names = [
        "Preempted",
        "PodsReadyTimeout",
        "AdmissionCheck",
        "ClusterQueueStopped",
        "LocalQueueStopped",
        "NodeFailures",
        "Deactivated",
        "DeactivatedDueToRequeuingLimitExceeded",
        "DeactivatedDueToWeather",
        "Inadmissible",
    ];
    select(names.to_vec()).prop_map(EvictionReason::from_reason)
}

fn pods() -> impl Strategy<Value = PodsReady> {
    let reasons = vec![
        NotReadyReason::WaitForStart,
        NotReadyReason::WaitForRecovery,
        NotReadyReason::Other,
    ];
    let not = (select(reasons), instants());
    let not = not.prop_map(|(reason, since_s)| PodsReady::No { reason, since_s });
    prop_oneof![Just(PodsReady::Unknown), Just(PodsReady::Yes), not]
}

fn states() -> impl Strategy<Value = Option<RequeueState>> {
    use proptest::option::of;
    let parts = (of(counts()), of(instants()), of(instants()));
    of(
        parts.prop_map(|(count, requeue_at_s, first_evicted_at_s)| RequeueState {
            count,
            requeue_at_s,
            first_evicted_at_s,
        }),
    )
}

prop_compose! {
    fn lifecycle_states()(
        (is_active, has_quota) in any::<(bool, bool)>(),
        admitted_at_s in proptest::option::of(instants()),
        pods_ready in pods(),
        evicted in proptest::option::of((reasons(), instants())),
        not_requeued_reason in proptest::option::of(reasons()),
        is_target in any::<bool>(),
        requeue_state in states(),
        retry_at_s in proptest::option::of(instants()),
        (is_rejected, is_retry, is_stopped) in any::<(bool, bool, bool)>(),
    ) -> LifecycleState {
        LifecycleState {
            is_active,
            has_quota,
            admitted_at_s: admitted_at_s.filter(|_| has_quota),
            pods_ready,
            evicted: evicted.map(|(reason, at_s)| EvictedCondition { reason, at_s }),
            not_requeued_reason,
            deactivation_target: is_target.then_some(DeactivationCause::RequeuingLimitExceeded),
            requeue_state,
            admission_checks: AdmissionCheckStates { is_rejected, is_retry, retry_at_s },
            cluster_queue: if is_stopped { StopPolicy::HoldAndDrain } else { StopPolicy::None },
            ..LifecycleState::default()
        }
    }
}

/// Applies steps until there is nothing to write, and returns their number.
fn steps_until_idle(
    settings: &RequeueSettings,
    standing: &mut LifecycleState,
    now_ms: i64,
) -> usize {
    for count in 0..=STEPS_MAX {
        let step = next_step(settings, standing, now_ms, Jitter::NONE);
        if matches!(step, LifecycleStep::Idle | LifecycleStep::Wait(_)) {
            return count;
        }
        let before = standing.clone();
        standing.apply(&step, now_ms);
        assert_ne!(before, *standing, "{step:?} changes nothing");
    }
    panic!("no idle state: {standing:?}");
}

proptest! {
    #[test]
    fn delays_never_decrease_with_count(
        backoff in backoffs(), count in 1..u32::MAX, bits in any::<u32>(), more in any::<u32>(),
    ) {
        let delay = |count, bits| {
            backoff.delay(count, Jitter::new(bits), Compatibility::Lockkeeper)
        };
        prop_assert!(delay(count, bits) <= delay(count + 1, bits));
        prop_assert!(delay(count % 64, bits) <= delay(count % 64 + 1, bits));
        prop_assert!(delay(count, bits.min(more)) <= delay(count, bits.max(more)));
        prop_assert_eq!(delay(0, bits), delay(1, bits));
    }

    #[test]
    fn delays_are_within_the_cap_and_its_jitter(
        backoff in backoffs(), count in any::<u32>(), bits in any::<u32>(),
        compatibility in compatibilities(),
    ) {
        let delay = backoff.delay(count, Jitter::new(bits), compatibility);
        let cap = backoff.cap.unwrap_or(Duration::MAX);
        // Kueue does not cap the first delay; with a factor of 1 all delays equal the first.
        let is_first = compatibility == Compatibility::Kueue
            && (count <= 1 || backoff.base > cap && backoff.factor == Factor::ONE);
        let most = if is_first { backoff.base.max(cap) } else { cap };
        let jitter = most.as_nanos().saturating_mul(backoff.jitter_ppm.into()) / 1_000_000;
        prop_assert!(delay.as_nanos() <= most.as_nanos().saturating_add(jitter));
    }

    #[test]
    fn factor_two_without_jitter_doubles_delay(base_s in 1..1_000_u64, count in 1..20_u32) {
        let base = Duration::from_secs(base_s);
        let backoff = Backoff { base, cap: None, ..Backoff::default() };
        let delay = backoff.delay(count, Jitter::NONE, Compatibility::Lockkeeper);
        prop_assert_eq!(delay, base * (1 << (count - 1)));
    }

    #[test]
    fn requeue_state_never_moves_back(
        requeue_state in states(), until_s in instants(), is_counted in any::<bool>(),
    ) {
        let before = requeue_state.unwrap_or_default();
        let mut after = before;
        let changed = after.defer_until(until_s, is_counted);
        prop_assert!(after.requeue_at_s >= before.requeue_at_s);
        prop_assert!(after.requeue_at_s >= Some(until_s));
        prop_assert!(after.requeue_count() >= before.requeue_count().min(i32::MAX as u32));
        prop_assert!(i32::try_from(after.requeue_count()).is_ok() || !is_counted);
        prop_assert_eq!(changed, is_counted || after != before);
    }

    #[test]
    fn next_step_never_panics_and_becomes_idle(
        settings in all_settings(), standing in lifecycle_states(), now_ms in instants(),
        bits in any::<u32>(),
    ) {
        let mut once = standing.clone();
        once.apply(&next_step(&settings, &standing, now_ms, Jitter::new(bits)), now_ms);
        let _ = (once.order_time_ms(&settings), once.hold_until_s(now_ms));
        let mut standing = standing;
        if settings.compatibility == Compatibility::Kueue {
            // Kueue's writes for checks and for a deactivation revert each other; see kueue_differences.rs.
            standing.admission_checks.retry_at_s = None;
        }
        steps_until_idle(&settings, &mut standing, now_ms);
    }

    #[test]
    fn timeout_eviction_defers_and_counts_up_to_limit(
        settings in all_settings(), standing in lifecycle_states(), now_ms in 0..10_000_000_i64,
    ) {
        let step = next_step(&settings, &standing, now_ms, Jitter::NONE);
        if let LifecycleStep::Evict(eviction) = step
            && eviction.reason == EvictionReason::PodsReadyTimeout
        {
            let before = standing.requeue_state.unwrap_or_default();
            let after = eviction.requeue_state.expect("a state");
            prop_assert!(after.requeue_at_s >= before.requeue_at_s);
            prop_assert!(after.requeue_at_s >= Some(now_ms.div_euclid(1_000)));
            prop_assert!(settings.backoff_limit_count.is_none_or(|it| before.requeue_count() < it));
        }
    }

    /// Any workload is pending after it was deactivated, its job has stopped, and it was activated again.
    #[test]
    fn reactivated_workload_always_becomes_pending(
        mut settings in all_settings(), standing in lifecycle_states(), now_ms in 0..10_000_000_i64,
    ) {
        settings.compatibility = Compatibility::Lockkeeper;
        let mut standing = standing;
        standing.is_active = false;
        steps_until_idle(&settings, &mut standing, now_ms);
        prop_assert_eq!(standing.requeue_state, None);
        prop_assert!(standing.evicted.is_some());
        standing.on_job_stopped();
        steps_until_idle(&settings, &mut standing, now_ms);

        standing.is_active = true;
        standing.admission_checks = AdmissionCheckStates::default();
        standing.cluster_queue = StopPolicy::None;
        steps_until_idle(&settings, &mut standing, now_ms);
        prop_assert!(standing.is_active);
        prop_assert_eq!(standing.hold_until_s(now_ms), None);
        prop_assert!(standing.is_pending());
        prop_assert_eq!(standing.requeue_state.map_or(0, |it| it.requeue_count()), 0);
    }

    /// No backoff lasts longer than until `requeueAt`.
    #[test]
    fn backoff_ends_at_requeue_at(
        settings in all_settings(), at_s in 0..10_000_i64, count in counts(),
        early_ms in 1..5_000_i64,
    ) {
        let mut standing = LifecycleState {
            not_requeued_reason: Some(EvictionReason::PodsReadyTimeout),
            requeue_state: Some(RequeueState {
                count: Some(count),
                requeue_at_s: Some(at_s),
                first_evicted_at_s: None,
            }),
            ..LifecycleState::default()
        };
        let now_ms = at_s * 1_000 - early_ms;
        let wait = Duration::from_millis(early_ms.unsigned_abs());
        prop_assert_eq!(
            next_step(&settings, &standing, now_ms, Jitter::NONE),
            LifecycleStep::Wait(wait)
        );
        prop_assert_eq!(standing.hold_until_s(now_ms), Some(at_s));
        steps_until_idle(&settings, &mut standing, at_s * 1_000);
        prop_assert_eq!(standing.hold_until_s(at_s * 1_000), None);
        prop_assert_eq!(standing.requeue_state.unwrap().count, Some(count));
    }
}
