//! Backfill beside a plain implementation that looks at each second, and the bounds of heads.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod backfill_reference;

use backfill_reference::{Policy, ReferenceJob, reference_starts};
use lockkeeper_simulate::timeline::{JobTrace, Outcome, Timeline, TraceConfig, simulate};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

const RESOURCES: [&str; 2] = ["cpu", "gpu"];

fn queue(name: &str, nominal: [i64; 2], policy: Policy, workloads_max: usize) -> Value {
    let policy = match policy {
        Policy::None => "None",
        Policy::Easy => "Easy",
        Policy::Conservative => "Conservative",
    };
    let quotas = RESOURCES.iter().zip(nominal);
    let quotas =
        quotas.map(|(resource, nominal)| json!({"resource": resource, "nominal": nominal}));
    json!({
        "name": name,
        "resourceGroups": [{
            "resources": RESOURCES,
            "flavors": [{"name": "f", "quotas": quotas.collect::<Vec<_>>()}],
        }],
        "queueingStrategy": "StrictFIFO",
        "backfill": {"policy": policy, "maxWorkloads": workloads_max},
    })
}

fn job(name: &str, queue: &str, job: &ReferenceJob) -> Value {
    let requests = RESOURCES.iter().zip(job.amounts);
    let requests = requests.map(|(resource, amount)| ((*resource).to_owned(), amount.into()));
    json!({
        "name": name, "uid": name, "clusterQueue": queue, "arrival": job.arrival_s, "runSeconds": job.run_s,
        "maximumExecutionTimeSeconds": job.limit_s, "priority": job.priority,
        "podSets": [{"requests": requests.collect::<serde_json::Map<_, _>>()}],
    })
}

fn run(trace: &Value) -> Timeline {
    let trace: JobTrace = serde_json::from_value(trace.clone()).unwrap();
    simulate(&trace).unwrap()
}

/// Jobs sorted by arrival; with the chance `unlimited` in percent they have no limit.
fn random_jobs(rng: &mut Rng, capacity: [i64; 2], unlimited: u64) -> Vec<ReferenceJob> {
    let count = 2 + rng.below(30_u64);
    let mut arrival_s = 0;
    let mut below = |max: i64| i64::try_from(rng.below(u64::try_from(max).unwrap())).unwrap();
    let mut jobs = Vec::new();
    for _ in 0..count {
        arrival_s += below(6) * below(4);
        let run_s = 1 + below(30);
        // Some reach their limit.
        let limit_s = (1 + run_s + below(40) - 4).max(1);
        jobs.push(ReferenceJob {
            arrival_s,
            run_s,
            limit_s: (below(100) >= i64::try_from(unlimited).unwrap()).then_some(limit_s),
            priority: i32::try_from(below(8) / 7).unwrap(),
            amounts: capacity.map(|all| below(all + 1).max(1)),
        });
    }
    jobs
}

fn starts(timeline: &Timeline) -> Vec<Option<i64>> {
    let jobs = timeline.jobs.iter();
    jobs.map(|it| it.runs.first().map(|run| run.from_s))
        .collect()
}

fn job_name(at: usize) -> String {
    format!("j{at:03}")
}

fn trace_of(queue: &Value, jobs: &[ReferenceJob]) -> Value {
    let jobs = jobs.iter().enumerate();
    let jobs = jobs.map(|(at, it)| job(&job_name(at), "a", it));
    json!({"clusterQueues": [queue], "jobs": jobs.collect::<Vec<_>>()})
}

#[test]
fn backfill_on_random_traces_equals_the_reference() {
    let mut backfilled = [0; 3];
    for seed in 0..1_500 {
        let mut rng = Rng::new(seed);
        let capacity = [4 + i64::try_from(rng.below(12_u64)).unwrap(), 8];
        let unlimited = [0, 0, 10, 40][usize::try_from(seed).unwrap() % 4];
        let jobs = random_jobs(&mut rng, capacity, unlimited);
        let workloads_max = [1, 2, 5, 100][usize::try_from(rng.below(4_u64)).unwrap()];
        for policy in [Policy::None, Policy::Easy, Policy::Conservative] {
            let queue = queue("a", capacity, policy, workloads_max);
            let timeline = run(&trace_of(&queue, &jobs));
            let expected = reference_starts(&jobs, capacity, policy, workloads_max);
            assert_eq!(
                starts(&timeline),
                expected,
                "seed {seed} {policy:?} {jobs:#?}"
            );
            assert_eq!(timeline.outcome, Outcome::Drained);
            backfilled[policy as usize] += timeline.stats.backfilled;
        }
    }
    // The traces are such that the policies have an effect.
    let [none, easy, conservative] = backfilled;
    assert_eq!(none, 0);
    assert!(easy > 3_000 && conservative > 3_000, "{backfilled:?}");
}

#[test]
fn no_head_starts_after_its_bound() {
    let mut bounds = 0;
    for seed in 0..1_500 {
        let mut rng = Rng::new(seed);
        let capacity = [4 + i64::try_from(rng.below(12_u64)).unwrap(), 8];
        let mut jobs = random_jobs(&mut rng, capacity, 0);
        // A job of higher priority may delay the head.
        for job in &mut jobs {
            job.priority = 0;
        }
        for policy in [Policy::Easy, Policy::Conservative] {
            let mut queue = queue("a", capacity, policy, 100);
            let mut all: Vec<Value> = jobs
                .iter()
                .enumerate()
                .map(|(at, it)| job(&job_name(at), "a", it))
                .collect();
            let mut queues = Vec::new();
            if seed % 2 == 1 {
                // Other queues of the cohort borrow all that is lent; `a` lends nothing.
                let mut other = queue_of_cohort("b", capacity);
                queue["cohort"] = json!("all");
                for quota in queue["resourceGroups"][0]["flavors"][0]["quotas"]
                    .as_array_mut()
                    .unwrap()
                {
                    quota["lendingLimit"] = json!(0);
                }
                other["cohort"] = json!("all");
                queues.push(other);
                let others = random_jobs(&mut rng, capacity, 30);
                all.extend(
                    others
                        .iter()
                        .enumerate()
                        .map(|(at, it)| job(&format!("b{at}"), "b", it)),
                );
                all.sort_by_key(|it| it["arrival"].as_i64());
            }
            queues.push(queue);
            let timeline = run(&json!({"clusterQueues": queues, "jobs": all}));
            let starts = starts(&timeline);
            for planned in &timeline.planned_starts {
                if !planned.is_guaranteed {
                    continue;
                }
                bounds += 1;
                let start = starts[planned.job].unwrap();
                assert!(
                    start <= planned.starts_by_s,
                    "seed {seed} {policy:?} {planned:?} {start}"
                );
            }
        }
    }
    assert!(bounds > 3_000, "{bounds}");
}

/// A queue without backfill.
fn queue_of_cohort(name: &str, nominal: [i64; 2]) -> Value {
    let mut value = queue(name, nominal, Policy::None, 1);
    value["queueingStrategy"] = json!("BestEffortFIFO");
    value
}

fn limited(arrival_s: i64, run_s: i64, limit_s: i64, cpu: i64) -> ReferenceJob {
    ReferenceJob {
        arrival_s,
        run_s,
        limit_s: Some(limit_s),
        priority: 0,
        amounts: [cpu, 1],
    }
}

#[test]
fn short_job_passes_the_head_and_a_long_one_waits() {
    let jobs = [
        limited(0, 50, 100, 6),
        // The head: it fits at 100 at the latest, and starts at 50.
        limited(1, 10, 10, 10),
        // It would still run at 100.
        limited(2, 5, 150, 3),
        limited(3, 20, 90, 3),
    ];
    let expect = |policy, expected: [i64; 4]| {
        let timeline = run(&trace_of(&queue("a", [10, 10], policy, 100), &jobs));
        assert_eq!(starts(&timeline), expected.map(Some), "{policy:?}");
        timeline
    };
    expect(Policy::None, [0, 50, 60, 60]);
    let timeline = expect(Policy::Easy, [0, 50, 60, 3]);
    assert_eq!(timeline.stats.backfilled, 1);
    let json = serde_json::to_value(&timeline).unwrap();
    let expected = json!([
        {"job": "j001", "plannedAt": 1, "startsBy": 100, "guaranteed": true},
        {"job": "j002", "plannedAt": 50, "startsBy": 60, "guaranteed": true},
    ]);
    assert_eq!(json["plannedStarts"], expected);
}

#[test]
fn easy_delays_later_jobs_and_conservative_does_not() {
    let jobs = [
        limited(0, 20, 20, 6),
        limited(1, 10, 10, 10),
        // Planned for 30 to 40 by the conservative policy: all the cpu but 1.
        limited(2, 10, 10, 9),
        // Fits beside neither; after the head there is room for it until 30 only.
        limited(3, 17, 17, 4),
        limited(4, 60, 60, 0),
    ];
    let starts_with = |policy| {
        let queue = queue("a", [10, 2], policy, 100);
        starts(&run(&trace_of(&queue, &jobs)))
    };
    let capacity = [10, 2];
    for policy in [Policy::Easy, Policy::Conservative] {
        let expected = reference_starts(&jobs, capacity, policy, 100);
        assert_eq!(starts_with(policy), expected);
    }
    assert_eq!(starts_with(Policy::Easy)[3], Some(3));
}

#[test]
fn a_job_without_a_limit_that_must_end_first_stops_backfill() {
    let mut jobs = [
        limited(0, 50, 100, 6),
        limited(1, 10, 10, 10),
        limited(2, 5, 5, 2),
    ];
    jobs[0].limit_s = None;
    let timeline = run(&trace_of(&queue("a", [10, 10], Policy::Easy, 100), &jobs));
    assert_eq!(starts(&timeline), [Some(0), Some(50), Some(60)]);
    // Once the first job has ended, the head runs until 60 at the latest.
    let planned = timeline.planned_starts.iter();
    let planned: Vec<_> = planned.map(|it| (it.job, it.planned_at_s)).collect();
    assert_eq!(planned, [(2, 50)]);
}

#[test]
fn lent_quota_gives_no_guarantee() {
    let jobs = [limited(0, 50, 100, 6), limited(1, 10, 10, 10)];
    let mut trace = trace_of(&queue("a", [10, 10], Policy::Easy, 100), &jobs);
    trace["clusterQueues"][0]["cohort"] = json!("all");
    let timeline = run(&trace);
    let [planned] = &timeline.planned_starts[..] else {
        panic!("{:?}", timeline.planned_starts);
    };
    assert!(!planned.is_guaranteed);
    assert_eq!(planned.starts_by_s, 100);
}

#[test]
fn limits_end_runs() {
    let jobs = [limited(0, 50, 20, 6)];
    let timeline = run(&trace_of(&queue("a", [10, 10], Policy::None, 1), &jobs));
    assert_eq!(timeline.makespan_s, 20);
}

#[test]
fn configuration_sets_strategy_and_backfill_of_all_queues() {
    let jobs = [
        limited(0, 50, 100, 6),
        limited(1, 10, 10, 10),
        limited(2, 5, 5, 2),
    ];
    let mut trace = trace_of(&queue("a", [10, 10], Policy::None, 1), &jobs);
    trace["clusterQueues"][0]["queueingStrategy"] = json!("BestEffortFIFO");
    let trace: JobTrace = serde_json::from_value(trace).unwrap();
    for (config, expected) in [
        (json!({}), 2),
        (json!({"queueingStrategy": "StrictFIFO"}), 60),
        (
            json!({"queueingStrategy": "StrictFIFO", "backfill": {"policy": "Easy"}}),
            2,
        ),
    ] {
        let config_of: TraceConfig = serde_json::from_value(config.clone()).unwrap();
        let timeline = simulate(&config_of.applied_to(&trace)).unwrap();
        assert_eq!(starts(&timeline)[2], Some(expected), "{config}");
        let has_planned = !timeline.planned_starts.is_empty();
        assert_eq!(has_planned, config.get("backfill").is_some(), "{config}");
    }
}
