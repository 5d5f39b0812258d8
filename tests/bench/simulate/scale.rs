//! Traces of any number of jobs, to measure how time and memory grow.

use lockkeeper_scenario::PodSet;
use lockkeeper_simulate::timeline::{Job, JobTrace, simulate};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::fs;
use std::hint::black_box;
use std::sync::Arc;

/// The cohorts, and the ClusterQueues of each, as in Kueue's generator.
const COHORTS: u64 = 5;
const QUEUES_OF_COHORT: u64 = 6;

/// Simulates jobs in 30 ClusterQueues, and prints the CPU time and the peak of the process's memory.
pub(crate) fn run(pattern: &str, count: u64) {
    // With `Any`, contended jobs preempt each other without end.
    let reclaim = if pattern == "generator" {
        "Any"
    } else {
        "LowerPriority"
    };
    let mut trace = queues(reclaim);
    let jobs = match pattern {
        "generator" => generator_jobs(&trace, count),
        "contended" => contended_jobs(&trace, count),
        other => panic!("there is no pattern {other}; use generator or contended"),
    };
    trace.jobs = Arc::new(jobs);
    let trace_kb = peak_kb();
    let before = super::cpu_ns();
    let timeline = black_box(simulate(&trace).unwrap());
    let ms = (super::cpu_ns() - before) as f64 / 1e6;
    let stats = &timeline.stats;
    println!(
        "{pattern} {:?} {:>9} jobs {ms:>9.1} ms {:>6.2} us/job {:>9} cycles {:>8} preemptions {:>5} MB before, {:>5} MB at most",
        timeline.outcome,
        stats.jobs,
        ms * 1000.0 / stats.jobs as f64,
        timeline.cycles,
        stats.preemptions,
        trace_kb / 1024,
        peak_kb() / 1024,
    );
}

fn queues(reclaim: &str) -> JobTrace {
    let queues = (0..COHORTS).flat_map(|cohort| {
        (0..QUEUES_OF_COHORT).map(move |queue| {
            json!({
                "name": format!("cq-0-{queue}-cohort-{cohort}"), "cohort": format!("cohort-{cohort}"),
                "resourceGroups": [{"resources": ["cpu"], "flavors": [{"name": "rf", "quotas": [
                    {"resource": "cpu", "nominal": "20", "borrowingLimit": "100"},
                ]}]}],
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": reclaim},
            })
        })
    });
    let queues: Vec<Value> = queues.collect();
    serde_json::from_value(json!({"clusterQueues": queues, "jobs": []})).unwrap()
}

fn pod_sets(cpu: u64) -> Arc<[PodSet]> {
    serde_json::from_value(json!([{"requests": {"cpu": cpu}}])).unwrap()
}

fn job(number: usize, queue: &Arc<str>, pod_sets: &Arc<[PodSet]>) -> Job {
    Job {
        name: format!("job-{number}").into(),
        uid: String::new(),
        cluster_queue: Arc::clone(queue),
        arrival: 0,
        waited_seconds: 0,
        ran_seconds: None,
        run_seconds: 1,
        ready_seconds: None,
        maximum_execution_time_seconds: None,
        priority: 0,
        pod_sets: Arc::clone(pod_sets),
    }
}

fn queue_names(trace: &JobTrace) -> Vec<Arc<str>> {
    let names = trace
        .cluster_queues
        .iter()
        .map(|it| it.name.as_str().into());
    names.collect()
}

/// The pattern of Kueue's generator with more workloads: each queue gets more than it can run, so that queues are long.
fn generator_jobs(trace: &JobTrace, count: u64) -> Vec<Job> {
    // Of 500: the number, the interval in 100 ms, the run time in 100 ms, the priority, and the cpus.
    let classes = [
        (350, 1, 2, 50, 1_000),
        (100, 5, 5, 100, 5_000),
        (50, 12, 10, 200, 20_000),
    ];
    let mut jobs = Vec::new();
    for queue in queue_names(trace) {
        for (part, interval, run_seconds, priority, cpu) in classes {
            let shared = pod_sets(cpu);
            for number in 0..count * part / 500 / (COHORTS * QUEUES_OF_COHORT) {
                jobs.push(Job {
                    arrival: i64::try_from(number).unwrap() * interval,
                    run_seconds,
                    ready_seconds: None,
                    maximum_execution_time_seconds: None,
                    priority,
                    ..job(jobs.len(), &queue, &shared)
                });
            }
        }
    }
    jobs.sort_by_key(|it| it.arrival);
    jobs
}

/// Random jobs at nine tenths of the quota with three priorities: most jobs are preempted, and there are many cycles.
fn contended_jobs(trace: &JobTrace, count: u64) -> Vec<Job> {
    let sizes = [1_000, 1_000, 1_000, 2_000, 4_000, 8_000].map(pod_sets);
    let queues = queue_names(trace);
    let mut rng = Rng::new(7);
    let mut arrival_ms = 0;
    let jobs = (0..count).map(|number| {
        // 600 cpus; on average 2.83 cpus for 660 s each 3.46 s.
        arrival_ms += rng.below(6_920_u64);
        let priority = i32::try_from(rng.below(3_u64)).unwrap();
        let queue = rng.pick(&queues);
        Job {
            arrival: i64::try_from(arrival_ms / 1_000).unwrap(),
            run_seconds: 60 + i64::try_from(rng.below(1_200_u64)).unwrap(),
            ready_seconds: None,
            maximum_execution_time_seconds: None,
            priority,
            ..job(usize::try_from(number).unwrap(), queue, rng.pick(&sizes))
        }
    });
    jobs.collect()
}

/// The peak of the memory of this process, in kilobytes.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
