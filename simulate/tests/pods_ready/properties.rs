//! Comparison with the controller's steps, and properties of random traces.

use crate::traces::{job, queue, read, run, single};
use lockkeeper_api::config::WaitForPodsReady;
use lockkeeper_cluster_state::settings::pods_ready_settings;
use lockkeeper_preemption::requeue::{
    Jitter, LifecycleState, LifecycleStep, NotReadyReason, PodsReady, next_step,
};
use lockkeeper_simulate::timeline::{
    EventKind, JobTrace, Outcome, ReadyTime, RunEnd, Timeline, metrics, simulate,
};
use lockkeeper_testkit::Rng;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Settings with short times.
fn random_settings(rng: &mut Rng) -> Value {
    let mut strategy = json!({
        "timestamp": rng.pick(&["Eviction", "Creation"]),
        "backoffBaseSeconds": rng.below(20_u64),
        "backoffFactor": rng.pick(&[1.0, 1.5, 2.0]),
        "backoffMaxSeconds": rng.below(60_u64),
    });
    if rng.below(3_u64) > 0 {
        strategy["backoffLimitCount"] = json!(rng.below(5_u64));
    }
    if rng.below(3_u64) == 0 {
        strategy["backoffLimitSeconds"] = json!(rng.below(200_u64));
    }
    json!({
        "enable": true,
        "timeout": format!("{}s", 1 + rng.below(30_u64)),
        "blockAdmission": rng.below(4_u64) == 0,
        "requeuingStrategy": strategy,
    })
}

/// The events of a job alone in its queue with pods that are never ready: the controller's steps, tried each second.
fn polled_events(settings: &Value, until_s: i64) -> Vec<(i64, &'static str)> {
    let settings: WaitForPodsReady = serde_json::from_value(settings.clone()).unwrap();
    let settings = pods_ready_settings(&settings);
    let mut state = LifecycleState::default();
    let mut events = Vec::new();
    for now_s in 0..=until_s {
        loop {
            let now_ms = now_s * 1_000;
            let step = next_step(&settings, &state, now_ms, Jitter::NONE);
            state.apply(&step, now_ms);
            match step {
                LifecycleStep::Idle | LifecycleStep::Wait(_) => {
                    let is_free = state.is_active && !state.has_quota;
                    if !is_free || state.hold_until_s(now_ms).is_some() {
                        break;
                    }
                    events.push((now_s, "admitted"));
                    state.on_quota_reserved();
                    state.admitted_at_s = Some(now_s);
                    state.pods_ready = PodsReady::No {
                        reason: NotReadyReason::WaitForStart,
                        since_s: now_s,
                    };
                }
                LifecycleStep::Evict(eviction) => {
                    events.push((now_s, eviction.reason.as_str()));
                    state.on_job_stopped();
                }
                LifecycleStep::Requeue(_) => events.push((now_s, "requeued")),
                _ => {}
            }
        }
    }
    events
}

#[test]
fn never_ready_job_has_the_events_of_the_controller() {
    let mut ends = [0, 0];
    for seed in 0..300 {
        let settings = random_settings(&mut Rng::new(seed));
        let of_trace = json!({ "waitForPodsReady": settings });
        let timeline = run(&single(&json!({"readySeconds": "never"}), &of_trace));
        let last_s = timeline.events.last().unwrap().at_s;
        let got = timeline.events.iter().map(|event| {
            let text = match event.kind {
                EventKind::Admitted { .. } => "admitted",
                EventKind::Requeued { .. } => "requeued",
                EventKind::Evicted { reason, .. } => reason.as_str(),
                _ => unreachable!("its pods are never ready"),
            };
            (event.at_s, text)
        });
        let got: Vec<_> = got.collect();
        // With a backoff of zero the simulation ends before the next admission in the same second.
        let expected = polled_events(&settings, last_s);
        assert!(
            expected.starts_with(&got),
            "seed {seed}: {got:?} {expected:?}"
        );
        match timeline.outcome {
            Outcome::Drained => ends[0] += 1,
            Outcome::Loop => ends[1] += 1,
            other => unreachable!("{other:?}"),
        }
    }
    assert!(ends.iter().all(|it| *it > 30), "{ends:?}");
}

/// A random trace of two queues, in which many pods are late.
fn random_trace(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let mut arrival = 0;
    let mut jobs = Vec::new();
    for number in 0..2 + rng.below(25_u64) {
        arrival += rng.below(15_u64);
        let name = format!("j{number:02}");
        let (run, cpu) = (1 + rng.below(60_u64), 1 + rng.below(6_u64));
        let mut value = job(&name, arrival, run, cpu);
        value["clusterQueue"] = json!(rng.pick(&["a", "b"]));
        value["priority"] = json!(rng.below(3_u64));
        if rng.below(2_u64) == 0 {
            let times = (0..=rng.below(3_u64)).map(|_| match rng.below(4_u64) {
                0 => json!("never"),
                _ => json!(rng.below(45_u64)),
            });
            value["readySeconds"] = times.collect();
        }
        if rng.below(6_u64) == 0 {
            value["maximumExecutionTimeSeconds"] = json!(1 + rng.below(80_u64));
        }
        jobs.push(value);
    }
    let mut value = json!({
        "clusterQueues": [queue("a", 5), queue("b", 6)],
        "waitForPodsReady": random_settings(&mut rng),
        "readySeconds": rng.below(6_u64),
        "mode": rng.pick(&["restart", "resume"]),
        "gracePeriodSeconds": rng.pick(&[0, 0, 3, 40]),
        "maxCyclesPerInstant": 200,
        "maxPreemptionsPerJob": 20,
        "jobs": jobs,
    });
    if rng.below(3_u64) == 0 {
        let nodes = json!([{"name": "n", "count": 3, "allocatable": {"cpu": 3}}]);
        value["placement"] = json!({ "nodes": nodes });
    }
    value
}

/// Checks the runs of a job: readiness, timeouts and backoff.
fn check_job(trace: &JobTrace, timeline: &Timeline, index: usize) -> Result<(), TestCaseError> {
    let spec = &trace.jobs[index];
    let settings = pods_ready_settings(&trace.wait_for_pods_ready);
    let timeout_s = i64::try_from(settings.timeout.as_secs()).unwrap();
    let mut count = 0;
    let mut earliest_s = spec.arrival;
    for (number, run) in timeline.jobs[index].runs.iter().enumerate() {
        prop_assert!(run.from_s >= earliest_s, "{} starts too early", spec.name);
        let ready = match trace.ready_time(spec, number) {
            ReadyTime::After(ready_s) => Some(run.from_s + ready_s),
            ReadyTime::Never => None,
        };
        prop_assert!(run.ready_at_s.is_none() || run.ready_at_s == ready);
        match run.end {
            RunEnd::NotReady(eviction) => {
                prop_assert_eq!(eviction.at_s, run.from_s + timeout_s);
                prop_assert_eq!(run.ready_at_s, None);
                prop_assert!(ready.is_none_or(|it| it > eviction.at_s));
                count += 1;
                let delay = settings
                    .backoff
                    .delay(count, Jitter::NONE, settings.compatibility);
                let delay_s = i64::try_from(delay.as_millis().div_ceil(1_000)).unwrap();
                let released_s = eviction.released_at_s.unwrap_or(eviction.at_s);
                earliest_s = released_s.max(eviction.at_s + delay_s);
                let limit = settings.backoff_limit_count;
                let is_deactivated = eviction.reason.as_str() != "PodsReadyTimeout";
                prop_assert!(limit.is_none_or(|it| count <= it + u32::from(is_deactivated)));
                let is_last = number + 1 == timeline.jobs[index].runs.len();
                prop_assert!(is_last || !is_deactivated);
            }
            RunEnd::Finished(at_s) => {
                let limit_s = spec.maximum_execution_time_seconds.unwrap_or(i64::MAX);
                prop_assert!(run.ready_at_s.is_some() || at_s - run.from_s == limit_s);
                prop_assert!(at_s - run.from_s <= limit_s);
                prop_assert!(run.ready_at_s.is_some() || at_s <= run.from_s + timeout_s);
            }
            RunEnd::Preempted(eviction) => {
                prop_assert!(run.ready_at_s.is_some() || eviction.at_s <= run.from_s + timeout_s);
                earliest_s = eviction.released_at_s.unwrap_or(eviction.at_s);
            }
            RunEnd::Open => prop_assert_ne!(timeline.outcome, Outcome::Drained),
            RunEnd::Evicted(_) => unreachable!("simulations have no such end"),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every job finishes, is deactivated, or the outcome says why not; no run without ready pods exceeds the timeout; and
    /// backoff is that of the core.
    #[test]
    fn random_traces_respect_timeouts_and_backoff(seed in any::<u64>()) {
        let trace = read(&random_trace(seed));
        let timeline = simulate(&trace).unwrap();
        let again = simulate(&trace).unwrap();
        prop_assert_eq!(&timeline, &again);
        for index in 0..trace.jobs.len() {
            check_job(&trace, &timeline, index)?;
        }
        let stats = timeline.stats.pods_ready.as_ref().unwrap();
        let done = timeline.stats.finished + stats.deactivated;
        prop_assert_eq!(timeline.outcome == Outcome::Drained, done == trace.jobs.len());
        if trace.wait_for_pods_ready.requeuing_strategy.backoff_limit_count.is_some() {
            let is_loop = timeline.outcome == Outcome::Loop;
            prop_assert!(!is_loop || timeline.stats.preemptions > 0);
        }
        let metrics = metrics(&trace, &timeline);
        let lost: i64 = metrics.queues.iter().map(|it| it.lost_seconds).sum();
        prop_assert_eq!(lost, timeline.stats.lost_seconds);
        let evictions = metrics.queues.iter().map(|it| it.pods_ready.unwrap().evictions);
        prop_assert_eq!(evictions.sum::<usize>(), stats.evictions);
        for quota in &metrics.quotas {
            prop_assert!(quota.peak <= 11);
            // Both queues together have 11.
            prop_assert!(quota.utilization.is_none_or(|it| it <= 11.0 / 5.0), "{quota:?}");
        }
    }

    /// At most one job has quota and pods that are not ready.
    #[test]
    fn block_admission_has_one_job_without_ready_pods(seed in any::<u64>()) {
        let mut value = random_trace(seed);
        value["waitForPodsReady"]["blockAdmission"] = json!(true);
        let timeline = run(&value);
        let mut changes = Vec::new();
        for run in timeline.jobs.iter().flat_map(|it| &it.runs) {
            let end_s = match run.end {
                RunEnd::Finished(at_s) => Some(at_s),
                RunEnd::NotReady(it) => Some(it.released_at_s.unwrap_or(it.at_s)),
                RunEnd::Preempted(it) => Some(it.released_at_s.unwrap_or(it.at_s)),
                RunEnd::Open | RunEnd::Evicted(_) => None,
            };
            let until_s = run.ready_at_s.or(end_s).unwrap_or(i64::MAX);
            if until_s > run.from_s {
                changes.extend([(run.from_s, 1), (until_s, -1)]);
            }
        }
        changes.sort_unstable();
        let mut waiting = 0;
        for (at_s, change) in changes {
            waiting += change;
            prop_assert!(waiting <= 1, "{waiting} at {at_s} s");
        }
    }
}
