//! Timelines of small traces: mistakes, loops, configurations, and properties of random ones.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::timeline::{
    EventKind, JobTrace, Outcome, RunEnd, Timeline, TraceConfig, event_loop, simulate, utilization,
    write_summary,
};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

fn queue(name: &str, nominal: u64, strategy: &str) -> Value {
    json!({
        "name": name,
        "cohort": "all",
        "queueingStrategy": strategy,
        "resourceGroups": [{
            "resources": ["cpu"],
            "flavors": [{"name": "f", "quotas": [{"resource": "cpu", "nominal": nominal}]}],
        }],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    })
}

fn job(name: &str, queue: &str, arrival: u64, run: u64, priority: u64, cpu: u64) -> Value {
    json!({
        "name": name, "uid": name, "clusterQueue": queue, "arrival": arrival, "runSeconds": run,
        "priority": priority, "podSets": [{"requests": {"cpu": cpu}}],
    })
}

fn trace(value: Value) -> JobTrace {
    serde_json::from_value(value).unwrap()
}

/// Two queues in a cohort, of which `a` lends what `b` borrows.
fn two_queues(jobs: &[Value]) -> Value {
    json!({
        "id": "two-queues",
        "clusterQueues": [queue("a", 4, "BestEffortFIFO"), queue("b", 2, "BestEffortFIFO")],
        "jobs": jobs,
    })
}

/// `z-high` preempts `z-low` in its own queue to borrow, `z-foreign` is admitted first, and `z-low` reclaims its quota.
fn looping_trace() -> Value {
    let mut value = two_queues(&[
        job("x", "a", 0, 1_000, 2, 2),
        job("y", "b", 0, 1_000, 2, 1),
        job("z-low", "a", 0, 100, 1, 1),
        job("z-foreign", "b", 1, 100, 2, 3),
        job("z-high", "a", 2, 100, 2, 3),
    ]);
    value["maxCyclesPerInstant"] = json!(100);
    value
}

fn summary(trace: &JobTrace, timeline: &Timeline) -> String {
    let mut text = String::new();
    write_summary(&mut text, trace, timeline).unwrap();
    text
}

#[test]
fn preempted_job_restarts_or_resumes() {
    for (mode, makespan_s, lost_s) in [("restart", 150, 40), ("resume", 110, 0)] {
        let mut value = two_queues(&[
            job("low", "a", 0, 100, 0, 6),
            job("high", "a", 40, 10, 1, 3),
        ]);
        value["mode"] = json!(mode);
        let timeline = simulate(&trace(value)).unwrap();
        assert_eq!(timeline.outcome, Outcome::Drained);
        assert_eq!(timeline.makespan_s, makespan_s, "{mode}");
        assert_eq!(timeline.stats.lost_seconds, lost_s, "{mode}");
        assert_eq!(timeline.jobs[0].runs.len(), 2);
    }
}

#[test]
fn grace_period_delays_preemptor() {
    let mut value = two_queues(&[
        job("low", "a", 0, 100, 0, 6),
        job("high", "a", 40, 10, 1, 3),
    ]);
    value["gracePeriodSeconds"] = json!(5);
    let timeline = simulate(&trace(value)).unwrap();
    assert_eq!(timeline.jobs[1].runs[0].from_s, 45);
    let RunEnd::Preempted(eviction) = timeline.jobs[0].runs[0].end else {
        unreachable!("the first run is preempted");
    };
    assert_eq!((eviction.at_s, eviction.released_at_s), (40, Some(45)));
}

#[test]
fn change_to_same_quota_has_no_effect() {
    let mut value = two_queues(&[job("big", "a", 0, 10, 0, 7)]);
    let groups = value["clusterQueues"][0]["resourceGroups"].clone();
    value["changes"] = json!([{"at": 5, "clusterQueue": "a", "resourceGroups": groups}]);
    let timeline = simulate(&trace(value.clone())).unwrap();
    assert_eq!((timeline.outcome, timeline.cycles), (Outcome::Stuck, 1));
    value["changes"][0]["resourceGroups"][0]["flavors"][0]["quotas"][0]["nominal"] = json!(5);
    let timeline = simulate(&trace(value)).unwrap();
    assert_eq!(
        (timeline.outcome, timeline.makespan_s),
        (Outcome::Drained, 15)
    );
}

#[test]
fn drained_trace_has_utilization_of_nominal_quota() {
    let trace = trace(two_queues(&[
        job("one", "a", 0, 10, 0, 3),
        job("two", "b", 0, 5, 0, 3),
    ]));
    let timeline = simulate(&trace).unwrap();
    let parts = timeline
        .usage
        .iter()
        .map(|it| utilization(&trace, &timeline, it));
    // 3 of 4 for the whole time, and 3 of 2 for half of it.
    assert_eq!(parts.collect::<Vec<_>>(), [Some(0.75), Some(0.75)]);
    insta::assert_snapshot!("drained", summary(&trace, &timeline));
}

#[test]
fn livelock_reports_shortest_loop() {
    let trace = trace(looping_trace());
    let timeline = simulate(&trace).unwrap();
    assert_eq!(timeline.outcome, Outcome::Livelock);
    let kinds = event_loop(&timeline).iter().map(|it| it.kind);
    let preemptions = kinds.filter(|it| matches!(it, EventKind::Preempted { .. }));
    assert!(preemptions.count() > 0);
    insta::assert_snapshot!("livelock", summary(&trace, &timeline));
}

#[test]
fn loop_over_time_ends_and_reports_its_events() {
    let mut value = looping_trace();
    value["gracePeriodSeconds"] = json!(3);
    value["maxPreemptionsPerJob"] = json!(5);
    let trace = trace(value);
    let timeline = simulate(&trace).unwrap();
    assert_eq!(timeline.outcome, Outcome::Loop);
    let limit = 5 * u64::try_from(trace.jobs.len()).unwrap();
    assert!(u64::try_from(timeline.stats.preemptions).unwrap() > limit);
    let repeated = event_loop(&timeline);
    let (first, last) = (repeated.first().unwrap(), repeated.last().unwrap());
    assert!(first.at_s < last.at_s);
    insta::assert_snapshot!("loop", summary(&trace, &timeline));
    let config: TraceConfig = serde_json::from_value(json!({"maxPreemptionsPerJob": 20})).unwrap();
    let longer = simulate(&config.applied_to(&trace)).unwrap();
    assert!(longer.stats.preemptions > timeline.stats.preemptions);
}

#[test]
fn trace_config_replaces_queues() {
    let trace = trace(two_queues(&[job("big", "a", 0, 10, 0, 7)]));
    let config: TraceConfig = serde_json::from_value(json!({
        "clusterQueues": [queue("a", 7, "StrictFIFO")],
        "mode": "resume",
    }))
    .unwrap();
    assert_eq!(simulate(&trace).unwrap().outcome, Outcome::Stuck);
    let changed = config.applied_to(&trace);
    assert_eq!(simulate(&changed).unwrap().outcome, Outcome::Drained);
}

#[test]
fn invalid_traces_are_rejected_with_field_and_remedy() {
    let cases: [(&str, Value, &str); 10] = [
        (
            "/jobs/1/arrival",
            json!(-1),
            "jobs[1].arrival: -1 is out of range; use 0 to 1099511627776",
        ),
        (
            "/jobs/0/arrival",
            json!(9),
            "jobs[1].arrival: 1 is before 9, the time of the previous entry; sort the entries by time",
        ),
        (
            "/jobs/1/runSeconds",
            json!(0),
            "jobs[1].runSeconds: 0 is out of range; use 1 to 1099511627776",
        ),
        (
            "/jobs/1/clusterQueue",
            json!("c"),
            "jobs[1].clusterQueue: unknown ClusterQueue \"c\"; add it to clusterQueues or correct the name",
        ),
        (
            "/jobs/1/name",
            json!("one"),
            "jobs[1].name: duplicate job name \"one\"; use unique names",
        ),
        (
            "/jobs/1/podSets",
            json!([]),
            "jobs[1].podSets: a job needs at least one pod set",
        ),
        (
            "/jobs/1/podSets/0/count",
            json!(-2),
            "jobs[1].podSets[0].count: invalid count -2; use 0 to 2147483647",
        ),
        (
            "/maxCyclesPerInstant",
            json!(0),
            "maxCyclesPerInstant: 0 permits no cycle; use 1 or more",
        ),
        (
            "/maxPreemptionsPerJob",
            json!(0),
            "maxPreemptionsPerJob: 0 permits no preemption; use 1 or more",
        ),
        (
            "/changes/0/clusterQueue",
            json!("c"),
            "changes[0].clusterQueue: unknown ClusterQueue \"c\"; add it to clusterQueues or correct the name",
        ),
    ];
    for (pointer, replacement, expected) in cases {
        let mut value = two_queues(&[job("one", "a", 0, 10, 0, 3), job("two", "b", 1, 5, 0, 3)]);
        value["maxCyclesPerInstant"] = json!(9);
        value["maxPreemptionsPerJob"] = json!(9);
        value["jobs"][1]["podSets"][0]["count"] = json!(1);
        value["changes"] = json!([{"at": 5, "clusterQueue": "a", "resourceGroups": []}]);
        assert!(simulate(&trace(value.clone())).is_ok());
        *value.pointer_mut(pointer).unwrap() = replacement;
        assert_eq!(simulate(&trace(value)).unwrap_err().to_string(), expected);
    }
}

/// A random trace with up to 40 jobs in three queues.
fn random_trace(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let names = ["a", "b", "c"];
    let mut queues = Vec::new();
    for name in names {
        let strategy = rng.pick(&["BestEffortFIFO", "StrictFIFO"]);
        queues.push(queue(name, 2 + rng.below(6_u64), strategy));
    }
    let mut arrival = 0;
    let mut jobs = Vec::new();
    for number in 0..5 + rng.below(35_u64) {
        arrival += rng.below(4_u64);
        let name = format!("j{number:02}");
        let (run, priority, cpu) = (rng.below(20_u64), rng.below(3_u64), rng.below(6_u64));
        let queue = rng.pick(&names);
        jobs.push(job(&name, queue, arrival, 1 + run, priority, 1 + cpu));
    }
    json!({
        "clusterQueues": queues,
        "jobs": jobs,
        "mode": rng.pick(&["restart", "resume"]),
        "gracePeriodSeconds": rng.pick(&[0, 0, 3]),
        "maxCyclesPerInstant": 200,
    })
}

/// The amount in use after the events of each instant never exceeds the quota of the cohort.
fn check_quota(value: &Value, timeline: &Timeline) {
    let nominal =
        |it: &Value| it["resourceGroups"][0]["flavors"][0]["quotas"][0]["nominal"].as_u64();
    let quota: u64 = value["clusterQueues"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(nominal)
        .sum();
    let mut used = 0;
    for (at, event) in timeline.events.iter().enumerate() {
        let request = |job: usize| {
            value["jobs"][job]["podSets"][0]["requests"]["cpu"]
                .as_u64()
                .unwrap()
        };
        match event.kind {
            EventKind::Admitted { job, .. } => used += request(job),
            EventKind::Preempted { job, .. } | EventKind::Finished { job } => used -= request(job),
            EventKind::Evicted { .. } => unreachable!("all pods are ready at once"),
            EventKind::Released { .. }
            | EventKind::Ready { .. }
            | EventKind::Requeued { .. }
            | EventKind::Changed { .. } => {}
        }
        let is_last_of_instant = timeline
            .events
            .get(at + 1)
            .is_none_or(|it| it.at_s > event.at_s);
        assert!(
            !is_last_of_instant || used <= quota,
            "{used} of {quota} at {} s",
            event.at_s
        );
    }
}

#[test]
fn random_traces_conserve_jobs_and_quota() {
    for seed in 0..300 {
        let value = random_trace(seed);
        let trace = trace(value.clone());
        let timeline = simulate(&trace).unwrap();
        let again = simulate(&trace).unwrap();
        let bytes = |it: &Timeline| serde_json::to_vec(it).unwrap();
        assert_eq!(bytes(&timeline), bytes(&again), "seed {seed}");
        if timeline.outcome == Outcome::Livelock {
            continue;
        }
        if trace.grace_period_seconds == 0 {
            check_quota(&value, &timeline);
        }
        for (job, spec) in timeline.jobs.iter().zip(trace.jobs.iter()) {
            // Runs do not overlap, all but the last were preempted, and a finished job ran for its run time.
            let mut ready_s = spec.arrival;
            let mut ran_s = 0;
            for (at, run) in job.runs.iter().enumerate() {
                assert!(run.from_s >= ready_s, "seed {seed} {}", job.name);
                let is_last = at + 1 == job.runs.len();
                match run.end {
                    RunEnd::Finished(at_s) => {
                        assert!(is_last);
                        ran_s += at_s - run.from_s;
                        assert!(ran_s == spec.run_seconds || trace_is_restart(&trace));
                        ready_s = at_s;
                    }
                    RunEnd::Preempted(eviction) => {
                        ran_s += eviction.at_s - run.from_s;
                        ready_s = eviction.released_at_s.unwrap_or(eviction.at_s);
                    }
                    RunEnd::Open | RunEnd::NotReady(_) | RunEnd::Evicted(_) => {
                        unreachable!("a job runs until it finishes or is preempted")
                    }
                }
            }
        }
        let finished = timeline.stats.finished;
        assert_eq!(
            timeline.outcome == Outcome::Drained,
            finished == trace.jobs.len()
        );
    }
}

fn trace_is_restart(trace: &JobTrace) -> bool {
    trace.mode == lockkeeper_simulate::timeline::PreemptedRun::Restart
}
