//! Measures of simulations, and jobs that run at the start.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::timeline::{
    JobTrace, Outcome, RunEnd, Timeline, first_decisions, job_outcomes, metrics, most_affected,
    simulate,
};
use lockkeeper_testkit::Rng;
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

fn queue(name: &str, nominal: u64) -> Value {
    json!({
        "name": name, "cohort": "all",
        "resourceGroups": [{
            "resources": ["cpu"],
            "flavors": [{"name": "f", "quotas": [{"resource": "cpu", "nominal": nominal}]}],
        }],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"},
    })
}

fn job(name: &str, queue: &str, arrival: u64, run: u64, priority: u64, cpu: u64) -> Value {
    json!({
        "name": name, "uid": name, "clusterQueue": queue, "arrival": arrival, "runSeconds": run,
        "priority": priority, "podSets": [{"requests": {"cpu": cpu}}],
    })
}

fn trace(queues: &[Value], jobs: &[Value]) -> Value {
    json!({"clusterQueues": queues, "jobs": jobs})
}

fn run(value: &Value) -> (JobTrace, Timeline) {
    let trace: JobTrace = serde_json::from_value(value.clone()).unwrap();
    let timeline = simulate(&trace).unwrap();
    (trace, timeline)
}

#[test]
#[allow(clippy::float_cmp, reason = "the values are exact")]
fn measures_of_a_preempted_job() {
    let value = trace(
        &[queue("a", 4), queue("b", 4)],
        &[
            job("low", "a", 0, 100, 0, 6),
            job("high", "b", 40, 20, 1, 4),
        ],
    );
    let (trace, timeline) = run(&value);
    let metrics = metrics(&trace, &timeline);
    // `low` runs from 0 to 40 on borrowed quota, and from 60 to 160.
    assert_eq!(timeline.makespan_s, 160);
    let [a, b] = &metrics.queues[..] else {
        unreachable!("two queues have jobs");
    };
    assert_eq!(
        (a.preemptions, a.lost_seconds, a.slowdown.max),
        (1, 40, 1.6)
    );
    assert_eq!((b.preemptions, b.wait.max, b.slowdown.max), (0, 0, 1.0));
    assert_eq!(metrics.priorities[0].name, "1");
    assert_eq!(metrics.quotas[0].above_nominal_seconds, 140);
    assert_eq!(metrics.quotas[0].wasted, 240);
    assert_eq!(metrics.quotas[1].above_nominal_seconds, 0);
    assert_eq!(metrics.repeated_preemptions.repeatedly_preempted_jobs, 0);
    // 840 + 80 of 8 × 160.
    assert_eq!(metrics.resources[0].utilization, Some(0.719));
    assert_eq!(metrics.fairness.shares[0].dominant_share, 0.656);
    assert_eq!(metrics.fairness.intervals.len(), 20);
    assert_eq!(metrics.fairness.intervals[0].dominant_shares, [0.75, 0.0]);
}

#[test]
fn most_affected_jobs_have_their_first_decision() {
    let jobs = [
        job("first", "a", 0, 100, 0, 4),
        job("second", "a", 0, 50, 0, 4),
        job("third", "a", 10, 50, 1, 4),
    ];
    let value = trace(&[queue("a", 4)], &jobs);
    let (trace_a, a) = run(&value);
    let mut other = value;
    other["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["quotas"][0]["nominal"] = json!(8);
    let (trace_b, b) = run(&other);
    let (before, after) = (job_outcomes(&trace_a, &a), job_outcomes(&trace_b, &b));
    let affected = most_affected(&trace_a, &before, &after);
    let names = affected.iter().map(|it| &*it.name);
    assert_eq!(names.collect::<Vec<_>>(), ["second", "first"]);
    assert!(most_affected(&trace_a, &before, &before).is_empty());
    let decisions = first_decisions(&trace_a, &[1, 2]).unwrap();
    assert!(decisions[&1].contains("second"), "{decisions:?}");
    assert!(decisions[&2].contains("third"), "{decisions:?}");
}

fn running(ran_s: u64, cpu: u64) -> Value {
    json!({
        "name": "running", "clusterQueue": "a", "arrival": 0, "runSeconds": 100, "ranSeconds": ran_s,
        "waitedSeconds": ran_s + 5,
        "podSets": [{"requests": {"cpu": cpu}, "flavors": {"cpu": "f"}}],
    })
}

#[test]
fn job_that_runs_at_the_start_holds_quota_and_can_be_preempted() {
    let waiting = json!({
        "name": "waiting", "clusterQueue": "a", "arrival": 0, "waitedSeconds": 7, "runSeconds": 10,
        "podSets": [{"requests": {"cpu": 4}}],
    });
    let (trace_a, timeline) = run(&trace(&[queue("a", 4)], &[running(30, 4), waiting]));
    let [running_job, waiting_job] = &timeline.jobs[..] else {
        unreachable!("two jobs");
    };
    assert_eq!(running_job.runs[0].from_s, -30);
    assert_eq!(running_job.runs[0].end, RunEnd::Finished(70));
    assert_eq!(waiting_job.runs[0].from_s, 70);
    assert_eq!(timeline.usage[0].integral, 4 * 80);
    let outcomes = job_outcomes(&trace_a, &timeline);
    assert_eq!((outcomes[0].wait, outcomes[1].wait), (Some(5), Some(77)));

    let value = trace(
        &[queue("a", 4)],
        &[running(30, 4), job("urgent", "a", 20, 10, 1, 4)],
    );
    let (_, timeline) = run(&value);
    assert_eq!(timeline.stats.lost_seconds, 50);
    assert_eq!(timeline.makespan_s, 130);
    let mut value = value;
    value["mode"] = json!("resume");
    assert_eq!(run(&value).1.makespan_s, 80);
}

#[test]
fn mistakes_in_jobs_at_the_start_have_their_path() {
    for (change, expected) in [
        (
            json!({"ranSeconds": 100}),
            "jobs[0].ranSeconds: the job has run for 100 s of 100 s",
        ),
        (json!({"arrival": 5}), "jobs[0].arrival: 5 with ranSeconds"),
        (
            json!({"waitedSeconds": -1}),
            "jobs[0].waitedSeconds: -1 is out of range",
        ),
        (
            json!({"ranSeconds": -1}),
            "jobs[0].ranSeconds: -1 is out of range",
        ),
        (
            json!({"podSets": [{"requests": {"cpu": 1}}]}),
            "jobs[0].podSets[0].flavors: no flavor for cpu",
        ),
    ] {
        let mut job = running(30, 4);
        for (key, value) in change.as_object().unwrap() {
            job[key] = value.clone();
        }
        let trace: JobTrace = serde_json::from_value(trace(&[queue("a", 4)], &[job])).unwrap();
        let error = simulate(&trace).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn jobs_of_one_instant_are_admitted_in_few_cycles() {
    let jobs = (0..2_000).map(|at| job(&format!("job-{at}"), "a", 0, 10, 0, 1));
    let jobs: Vec<Value> = jobs.collect();
    let (_, timeline) = run(&trace(&[queue("a", 2_000)], &jobs));
    assert_eq!(
        (timeline.outcome, timeline.makespan_s),
        (Outcome::Drained, 10)
    );
}

/// A random trace of two queues.
fn random_trace(seed: u64, resumes: bool) -> Value {
    let mut rng = Rng::new(seed);
    let mut arrival = 0;
    let jobs = (0..40).map(|at| {
        arrival += rng.below(20_u64);
        let name = *rng.pick(&["a", "b"]);
        job(
            &format!("job-{at}"),
            name,
            arrival,
            1 + rng.below(90_u64),
            rng.below(3_u64),
            1 + rng.below(7_u64),
        )
    });
    let jobs: Vec<Value> = jobs.collect();
    let mut value = trace(&[queue("a", 4), queue("b", 5)], &jobs);
    value["mode"] = json!(if resumes { "resume" } else { "restart" });
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Work done, work lost and idle quota together are the quota times the makespan; no quota is used twice; and each job
    /// ends, or the outcome says why it does not.
    #[test]
    fn quota_is_conserved(seed in any::<u64>(), resumes in any::<bool>()) {
        let (trace, timeline) = run(&random_trace(seed, resumes));
        let metrics = metrics(&trace, &timeline);
        let mut done = 0;
        let mut open = 0;
        for (job, history) in trace.jobs.iter().zip(&timeline.jobs) {
            let amount = job.pod_sets[0].requests["cpu"].in_core_units("cpu").unwrap();
            for run in &history.runs {
                match run.end {
                    RunEnd::Finished(at_s) => done += amount * (at_s - run.from_s),
                    // A resumed run is work that is done.
                    RunEnd::Preempted(it) if resumes => done += amount * (it.at_s - run.from_s),
                    RunEnd::Preempted(_) | RunEnd::NotReady(_) | RunEnd::Evicted(_) => {}
                    RunEnd::Open => open += 1,
                }
            }
        }
        let lost: i64 = metrics.quotas.iter().map(|it| it.wasted).sum();
        let used: i64 = timeline.usage.iter().map(|it| it.integral).sum();
        prop_assert_eq!(done + lost, used);
        let capacity = 9 * timeline.makespan_s;
        prop_assert!(used <= capacity, "{} of {}", used, capacity);
        let peaks: i64 = timeline.usage.iter().map(|it| it.peak).max().unwrap_or_default();
        prop_assert!(peaks <= 9);
        let is_drained = timeline.outcome == Outcome::Drained;
        prop_assert_eq!(is_drained, timeline.stats.finished == trace.jobs.len());
        prop_assert!(open == 0 || !is_drained);
        let in_groups: usize = metrics.queues.iter().map(|it| it.jobs).sum();
        prop_assert_eq!(in_groups, trace.jobs.len());
        let preempted: usize = metrics.priorities.iter().map(|it| it.preemptions).sum();
        prop_assert_eq!(preempted, timeline.stats.preemptions);
        for interval in &metrics.fairness.intervals {
            prop_assert!((0.0..=1.0).contains(&interval.jain_index));
        }
    }
}
