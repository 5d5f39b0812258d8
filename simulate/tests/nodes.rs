//! Jobs that are placed on nodes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::timeline::{
    EventKind, EvictionReason, JobTrace, Outcome, Run, RunEnd, Timeline, TraceError, metrics,
    simulate,
};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SEEDS: u64 = 400;

fn trace(value: &Value) -> JobTrace {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn run(value: &Value) -> Timeline {
    let trace = trace(value);
    simulate(&trace).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// A job of pods with one GPU each.
fn gang(name: &str, arrival: i64, run: i64, priority: i32, pods: i64) -> Value {
    let pod_set = json!({"count": pods, "requests": {"gpu": pods}});
    json!({
        "name": name, "uid": name, "clusterQueue": "q", "arrival": arrival, "runSeconds": run,
        "priority": priority, "podSets": [pod_set],
    })
}

/// A queue that is limited by nodes only, and two nodes with four GPUs.
fn two_nodes(jobs: &[Value]) -> Value {
    json!({
        "id": "nodes",
        "clusterQueues": [{"name": "q", "resourceGroups": []}],
        "placement": {"nodes": [{"name": "n", "count": 2, "allocatable": {"gpu": 4, "pods": 110}}]},
        "jobs": jobs,
    })
}

fn starts(timeline: &Timeline) -> Vec<(&str, Vec<i64>)> {
    let jobs = timeline.jobs.iter();
    jobs.map(|it| (&*it.name, it.runs.iter().map(|run| run.from_s).collect()))
        .collect()
}

fn nodes_of(run: &Run) -> Vec<Vec<(&str, i32)>> {
    let nodes = run.nodes.as_ref().unwrap();
    let pod_sets = nodes.iter();
    pod_sets
        .map(|it| it.iter().map(|(node, count)| (&**node, *count)).collect())
        .collect()
}

#[test]
fn gang_starts_when_all_its_pods_fit() {
    let timeline = run(&two_nodes(&[
        gang("first", 0, 100, 0, 6),
        gang("large", 10, 100, 0, 4),
        gang("small", 20, 10, 0, 2),
    ]));
    // The large gang does not block the small one, which fits beside the first.
    let expected = [
        ("first", vec![0]),
        ("large", vec![100]),
        ("small", vec![20]),
    ];
    assert_eq!(starts(&timeline), expected);
    assert_eq!(timeline.outcome, Outcome::Drained);
    let first = &timeline.jobs[0].runs[0];
    assert_eq!(nodes_of(first), [[("n-0", 4), ("n-1", 2)]]);
}

#[test]
fn more_important_gang_preempts_all_or_none() {
    let jobs = [
        gang("low", 0, 1_000, 1, 3),
        gang("high", 0, 1_000, 9, 3),
        gang("medium", 10, 100, 5, 4),
        gang("medium-large", 20, 100, 5, 8),
    ];
    let timeline = run(&two_nodes(&jobs));
    let low = &timeline.jobs[0].runs;
    let RunEnd::Preempted(eviction) = low[0].end else {
        panic!("{low:?}");
    };
    assert_eq!(
        (eviction.at_s, eviction.by, eviction.reason),
        (10, 2, EvictionReason::Nodes)
    );
    // While the important gang runs, eight GPUs cannot become free, so the largest gang preempts none. Later it does.
    assert_eq!(timeline.stats.preemptions_by_reason["OnNodes"], 2);
    let expected = [
        ("low", vec![0, 110, 1100]),
        ("high", vec![0]),
        ("medium", vec![10]),
        ("medium-large", vec![1000]),
    ];
    assert_eq!(starts(&timeline), expected);
}

#[test]
fn gang_waits_for_the_grace_periods_of_its_victims() {
    let mut trace = two_nodes(&[gang("low", 0, 1_000, 1, 8), gang("high", 10, 100, 9, 8)]);
    trace["gracePeriodSeconds"] = json!(30);
    let timeline = run(&trace);
    assert_eq!(
        starts(&timeline),
        [("low", vec![0, 140]), ("high", vec![40])]
    );
    let events: Vec<(i64, &str)> = timeline
        .events
        .iter()
        .map(|it| {
            let name = match it.kind {
                EventKind::Admitted { .. } => "admitted",
                EventKind::Preempted { .. } => "preempted",
                EventKind::Released { .. } => "released",
                EventKind::Finished { .. } => "finished",
                EventKind::Changed { .. } => "changed",
                EventKind::Ready { .. } => "ready",
                EventKind::Evicted { .. } => "evicted",
                EventKind::Requeued { .. } => "requeued",
            };
            (it.at_s, name)
        })
        .collect();
    assert_eq!(
        events,
        [
            (0, "admitted"),
            (10, "preempted"),
            (40, "released"),
            (40, "admitted"),
            (140, "finished"),
            (140, "admitted"),
            (1140, "finished"),
        ]
    );
}

/// Quota and nodes: a queue with quota for two gangs whose pods fit only once.
fn with_quota(jobs: &[Value]) -> Value {
    let mut trace = two_nodes(jobs);
    let quota = json!({"resource": "gpu", "nominal": 16});
    trace["clusterQueues"][0]["resourceGroups"] =
        json!([{"resources": ["gpu"], "flavors": [{"name": "a100", "quotas": [quota]}]}]);
    trace["clusterQueues"][0]["preemption"] = json!({"withinClusterQueue": "LowerPriority"});
    trace
}

#[test]
fn job_needs_quota_and_nodes() {
    let timeline = run(&with_quota(&[
        gang("a", 0, 100, 0, 8),
        gang("b", 0, 100, 0, 8),
    ]));
    assert_eq!(starts(&timeline), [("a", vec![0]), ("b", vec![100])]);
    // Quota is used only by the job that runs.
    assert_eq!(timeline.usage[0].peak, 8);
}

#[test]
fn no_job_is_preempted_for_quota_if_the_nodes_would_not_suffice() {
    let mut important = gang("important", 10, 100, 9, 12);
    important["podSets"][0]["requests"] = json!({"gpu": 12});
    let timeline = run(&with_quota(&[gang("low", 0, 100, 0, 8), important]));
    assert_eq!(timeline.stats.preemptions, 0);
    assert_eq!(starts(&timeline), [("low", vec![0]), ("important", vec![])]);
    assert_eq!(timeline.outcome, Outcome::Stuck);
}

#[test]
fn flavor_selects_nodes() {
    let mut trace = with_quota(&[gang("a", 0, 100, 0, 4)]);
    trace["placement"]["nodes"] = json!([
        {"name": "other", "allocatable": {"gpu": 8}},
        {"name": "right", "labels": {"gpu": "a100"}, "allocatable": {"gpu": 8}},
    ]);
    trace["placement"]["flavors"] = json!([{"name": "a100", "nodeLabels": {"gpu": "a100"}}]);
    let timeline = run(&trace);
    assert_eq!(nodes_of(&timeline.jobs[0].runs[0]), [[("right", 4)]]);
}

#[test]
fn only_the_named_queues_place_jobs() {
    let mut trace = two_nodes(&[gang("a", 0, 10, 0, 20)]);
    trace["placement"]["clusterQueues"] = json!([]);
    let timeline = run(&trace);
    // Without quota and nodes, no queue covers the resource.
    assert_eq!(timeline.outcome, Outcome::Stuck);
    let mut trace = with_quota(&[gang("a", 0, 10, 0, 16)]);
    for off in [json!({"policy": "None"}), json!({"clusterQueues": []})] {
        trace["placement"] = off;
        let timeline = run(&trace);
        assert_eq!(starts(&timeline), [("a", vec![0])]);
        assert_eq!(timeline.jobs[0].runs[0].nodes, None);
    }
}

#[test]
fn running_jobs_have_nodes_from_the_start() {
    let mut running = gang("running", 0, 100, 0, 5);
    running["ranSeconds"] = json!(40);
    let jobs = [running.clone(), gang("next", 0, 10, 0, 4)];
    let timeline = run(&two_nodes(&jobs));
    assert_eq!(
        starts(&timeline),
        [("running", vec![-40]), ("next", vec![60])]
    );
    let mut other = running.clone();
    other["name"] = json!("other");
    let too_many = trace(&two_nodes(&[running, other]));
    let error = simulate(&too_many).unwrap_err();
    assert_eq!(
        error,
        TraceError::NoRoomOnNodes {
            at: "jobs[1]".to_owned()
        }
    );
}

#[test]
fn use_of_nodes_is_measured() {
    let value = two_nodes(&[gang("a", 0, 100, 0, 8), gang("b", 0, 100, 0, 4)]);
    let trace = trace(&value);
    let timeline = simulate(&trace).unwrap();
    let nodes = metrics(&trace, &timeline).nodes;
    let gpu = nodes.iter().find(|it| it.resource == "gpu").unwrap();
    assert_eq!((gpu.utilization, gpu.peak), (Some(0.75), 8));
    let pods = nodes.iter().find(|it| it.resource == "pods").unwrap();
    assert_eq!(pods.peak, 8);
}

#[test]
fn mistakes_name_their_field() {
    let good = two_nodes(&[]);
    let cases = [
        (
            "/placement/nodes/0/count",
            json!(0),
            "placement.nodes[0].count",
        ),
        (
            "/placement/nodes/0/count",
            json!(4_000_000_000_u64),
            "placement.nodes[0].count",
        ),
        (
            "/placement/nodes/0/allocatable/gpu",
            json!(-1),
            "placement.nodes[0].allocatable",
        ),
        (
            "/placement/clusterQueues",
            json!(["x"]),
            "placement.clusterQueues[0]",
        ),
        (
            "/placement/nodes",
            json!([{"name": "a", "allocatable": {}}, {"name": "a", "allocatable": {}}]),
            "placement.nodes[1].name",
        ),
    ];
    for (pointer, bad, expected) in cases {
        let mut value = good.clone();
        value["placement"]["clusterQueues"] = json!(["q"]);
        *value.pointer_mut(pointer).unwrap() = bad;
        let error = simulate(&trace(&value)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut unknown = good;
    unknown["placement"]["node"] = json!([]);
    assert!(serde_json::from_value::<JobTrace>(unknown).is_err());
}

fn random_trace(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let has_quota = rng.one_in(2);
    let queues = (0..rng.range(1, 4)).map(|at| {
        let nominal = rng.range(2, 12);
        let quota = json!({"resource": "gpu", "nominal": nominal});
        let groups = json!([{"resources": ["gpu"], "flavors": [{"name": "f", "quotas": [quota]}]}]);
        json!({
            "name": format!("q{at}"), "cohort": "all",
            "resourceGroups": if has_quota { groups } else { json!([]) },
            "queueingStrategy": *rng.pick(&["StrictFIFO", "BestEffortFIFO"]),
            "preemption": {
                "withinClusterQueue": *rng.pick(&["Never", "LowerPriority"]),
                "reclaimWithinCohort": *rng.pick(&["Never", "LowerPriority"]),
            },
        })
    });
    let queues: Vec<Value> = queues.collect();
    let mut arrival = 0;
    let jobs = (0..rng.range(5, 40)).map(|at| {
        arrival += rng.range(0, 30);
        let pods = rng.range(1, 5);
        let each = rng.range(1, 3);
        let queue = rng.range(0, i64::try_from(queues.len()).unwrap() - 1);
        let priority = rng.range(0, 4);
        json!({
            "name": format!("j{at}"), "uid": format!("j{at:03}"), "clusterQueue": format!("q{queue}"),
            "arrival": arrival, "runSeconds": rng.range(1, 120), "priority": priority,
            "podSets": [{"count": pods, "requests": {"gpu": pods * each}}],
        })
    });
    let jobs: Vec<Value> = jobs.collect();
    json!({
        "id": format!("{seed}"), "clusterQueues": queues, "jobs": jobs,
        "mode": *rng.pick(&["restart", "resume"]),
        "gracePeriodSeconds": *rng.pick(&[0, 0, 7]),
        "maxPreemptionsPerJob": 100,
        "placement": {"nodes": [
            {"name": "small", "count": rng.range(1, 4), "allocatable": {"gpu": 3, "pods": 3}},
            {"name": "large", "count": rng.range(1, 3), "allocatable": {"gpu": 8, "pods": 110}},
        ]},
    })
}

/// The GPUs and pods of each node over time never exceed what it has, gangs are complete, and a preemption on nodes is for a
/// job that then starts or gives up.
#[test]
fn random_traces_keep_nodes_within_their_room() {
    let (mut preempted, mut waited) = (0, 0);
    for seed in 0..SEEDS {
        let value = random_trace(seed);
        let trace = trace(&value);
        let timeline = simulate(&trace).unwrap();
        assert_ne!(timeline.outcome, Outcome::Livelock, "{seed}");
        let mut changes: BTreeMap<&str, Vec<(i64, i64, i64)>> = BTreeMap::new();
        for (job, of_job) in trace.jobs.iter().zip(&timeline.jobs) {
            let pods = job.pod_sets[0].count;
            let gpus = job.pod_sets[0].requests["gpu"]
                .in_core_units("gpu")
                .unwrap()
                / pods;
            for run in &of_job.runs {
                let nodes = run.nodes.as_ref().unwrap();
                let placed: i32 = nodes[0].values().sum();
                assert_eq!(i64::from(placed), pods, "{seed} {}", job.name);
                let to_s = match run.end {
                    RunEnd::Open | RunEnd::NotReady(_) | RunEnd::Evicted(_) => i64::MAX,
                    RunEnd::Finished(at_s) => at_s,
                    RunEnd::Preempted(it) => match it.released_at_s {
                        Some(at_s) => at_s,
                        None if trace.grace_period_seconds > 0 => i64::MAX,
                        None => it.at_s,
                    },
                };
                for (node, count) in &nodes[0] {
                    let count = i64::from(*count);
                    let of_node = changes.entry(node).or_default();
                    of_node.push((run.from_s, count * gpus, count));
                    of_node.push((to_s, -count * gpus, -count));
                }
                if let RunEnd::Preempted(it) = run.end
                    && it.reason == EvictionReason::Nodes
                {
                    preempted += 1;
                    assert!(job.priority < trace.jobs[it.by].priority, "{seed}");
                }
            }
            waited += usize::from(
                of_job
                    .runs
                    .first()
                    .is_some_and(|it| it.from_s > job.arrival),
            );
        }
        for (node, mut changes) in changes {
            let (gpus_max, pods_max) = if node.starts_with("small") {
                (3, 3)
            } else {
                (8, 110)
            };
            // What ends at a time has left before what begins.
            changes.sort_unstable();
            let (mut gpus, mut pods) = (0, 0);
            for (at_s, more_gpus, more_pods) in changes {
                (gpus, pods) = (gpus + more_gpus, pods + more_pods);
                assert!(gpus <= gpus_max && pods <= pods_max, "{seed} {node} {at_s}");
            }
        }
        // The same input has the same result.
        assert_eq!(simulate(&trace).unwrap(), timeline, "{seed}");
    }
    // The cases are not trivial.
    assert!(preempted > 200 && waited > 1_000, "{preempted} {waited}");
}

/// Every job that is not finished at the end does not fit on empty nodes or has no quota: no job is forgotten.
#[test]
fn random_traces_end_when_nothing_more_fits() {
    for seed in 0..SEEDS {
        let mut value = random_trace(seed);
        // Any gang of these fits on empty nodes, and into the quota of its cohort.
        for job in value["jobs"].as_array_mut().unwrap() {
            job["podSets"] = json!([{"count": 2, "requests": {"gpu": 2}}]);
        }
        let timeline = run(&value);
        assert_eq!(timeline.outcome, Outcome::Drained, "{seed}");
    }
}
