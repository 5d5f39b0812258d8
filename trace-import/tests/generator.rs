//! The files of Kueue's performance generator.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::timeline::{JobTrace, Outcome, simulate};
use lockkeeper_trace_import::{GeneratorFile, generator_trace};

fn parse(text: &str) -> GeneratorFile {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn baseline_is_15_000_workloads_in_30_queues() {
    let file = parse(include_str!("../../tests/bench/generator.yaml"));
    let trace = generator_trace(&file).unwrap();
    assert_eq!(
        (
            trace.cohorts.len(),
            trace.cluster_queues.len(),
            trace.jobs.len()
        ),
        (5, 30, 15_000)
    );
    assert_eq!(trace.cluster_queues[7].name, "cq-0-1-cohort-1");
    assert_eq!(trace.assumptions.len(), 1);
    assert_eq!(
        trace.assumptions[0].text,
        "1 s of the simulation is 100 ms of the file"
    );
    let last = trace.jobs.last().unwrap();
    // The last workload of the 50 is created 60 s after the begin, the first one 100 ms after it.
    assert_eq!(
        (last.arrival, last.run_seconds, last.priority),
        (599, 10, 200)
    );
    assert_eq!(&*trace.jobs[0].name, "cq-0-0-cohort-0/small-0-0-0");
    let timeline = simulate(&trace).unwrap();
    assert_eq!(
        (timeline.outcome, timeline.stats.finished),
        (Outcome::Drained, 15_000)
    );
}

fn small(change: (&str, &str)) -> String {
    "- className: c\n  count: 1\n  queuesSets:\n  - className: q\n    count: 1\n    nominalQuota: 4\n    workloadsSets:\n    \
     - {count: 2, creationIntervalMs: 50, workloads: [{className: a, runtimeMs: 100, request: 1}, {className: b, runtimeMs: 150, request: 500m, podCount: 3}]}\n"
        .replace(change.0, change.1)
}

#[test]
fn list_of_older_releases_and_several_templates() {
    let trace: JobTrace = generator_trace(&parse(&small(("", "")))).unwrap();
    let jobs = trace.jobs.iter();
    let jobs: Vec<_> = jobs
        .map(|it| (&*it.name, it.arrival, it.run_seconds))
        .collect();
    assert_eq!(
        jobs,
        [
            ("q-0-0-c-0/a-0-0-0", 0, 2),
            ("q-0-0-c-0/b-0-0-1", 1, 3),
            ("q-0-0-c-0/a-0-1-0", 2, 2),
            ("q-0-0-c-0/b-0-1-1", 3, 3),
        ]
    );
    assert_eq!(trace.jobs[1].pod_sets[0].count, 3);
}

#[test]
fn values_out_of_range_have_their_path() {
    for (change, expected) in [
        (
            ("runtimeMs: 100", "runtimeMs: 0"),
            "cohorts[0].queuesSets[0].workloadsSets[0].workloads[0].runtimeMs: 0 is out of range",
        ),
        (
            ("count: 2", "count: 99999999"),
            "more than 10000000 workloads",
        ),
        (
            ("count: 2", "count: 0"),
            "the input has no job: all counts are 0",
        ),
        (("podCount: 3", "podCount: -3"), "workloads[1].podCount: -3"),
        (("request: 1}", "request: -1}"), "workloads[0].request: -1"),
        (
            (
                "creationIntervalMs: 50",
                "creationIntervalMs: 9999999999999999",
            ),
            "creationIntervalMs: 9999999999999999",
        ),
        (
            ("    count: 1", "    count: 9999999"),
            "more than 100000 ClusterQueues",
        ),
    ] {
        let error = generator_trace(&parse(&small(change)))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}
