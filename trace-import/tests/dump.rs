//! Dumps of a cluster.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_explain::{WorldBuilder, WorldSettings};
use lockkeeper_simulate::timeline::{Job, JobTrace, Outcome, RunEnd, simulate};
use lockkeeper_trace_import::{DumpSettings, ImportError, dump_trace};
use serde_json::Value;

fn import(objects: &str, assumed_run_s: Option<i64>) -> Result<JobTrace, ImportError> {
    import_value(serde_saphyr::from_str(objects).unwrap(), assumed_run_s)
}

fn import_value(objects: Value, assumed_run_s: Option<i64>) -> Result<JobTrace, ImportError> {
    let mut builder = WorldBuilder::new();
    builder.add(objects);
    dump_trace(
        &builder.build(WorldSettings::default()),
        DumpSettings { assumed_run_s },
    )
}

const KUEUE: &str = include_str!("../../examples/explain/kueue.yaml");

#[test]
fn unknown_run_times_are_an_error_without_an_assumption() {
    let error = import(KUEUE, None).unwrap_err().to_string();
    assert!(
        error.contains("have no maximumExecutionTimeSeconds"),
        "{error}"
    );
    assert!(error.contains("--assume-run-seconds"), "{error}");
}

#[test]
fn running_workloads_continue_and_pending_ones_wait() {
    let trace = import(KUEUE, Some(100_000)).unwrap();
    let running = trace.jobs.iter().filter(|it| it.ran_seconds.is_some());
    let pending = trace.jobs.iter().filter(|it| it.ran_seconds.is_none());
    assert!(running.count() > 0 && pending.count() > 0);
    assert!(trace.jobs.iter().all(|it| it.arrival == 0));
    assert!(trace.jobs.is_sorted_by_key(Job::created_s));
    let texts: Vec<&str> = trace
        .assumptions
        .iter()
        .map(|it| it.text.as_str())
        .collect();
    assert!(
        texts.contains(&"run time unknown: 100000 s (--assume-run-seconds)"),
        "{texts:?}"
    );
    let timeline = simulate(&trace).unwrap();
    assert_ne!(timeline.outcome, Outcome::Livelock);
    for (job, history) in trace.jobs.iter().zip(&timeline.jobs) {
        let Some(ran_s) = job.ran_seconds else {
            continue;
        };
        assert_eq!(history.runs[0].from_s, -ran_s);
        if let RunEnd::Finished(at_s) = history.runs[0].end {
            assert_eq!(at_s, job.run_seconds - ran_s, "{}", job.name);
        }
    }
}

/// An admission outlives the ClusterQueue that it names.
#[test]
fn workload_of_a_deleted_cluster_queue_is_left_out() {
    let mut objects: Value = serde_saphyr::from_str(KUEUE).unwrap();
    let items = objects["items"].as_array_mut().unwrap();
    items.retain(|it| it["kind"] != "ClusterQueue" || it["metadata"]["name"] != "team-b");
    let trace = import_value(objects, Some(5)).unwrap();
    assert!(trace.jobs.iter().all(|it| &*it.cluster_queue == "team-a"));
    let left_out = "workload left out: its ClusterQueue does not exist or is invalid";
    let texts = trace.assumptions.iter().map(|it| it.text.as_str());
    assert_eq!(texts.filter(|it| *it == left_out).count(), 1);
    simulate(&trace).unwrap();
}

#[test]
fn placement_on_nodes_is_an_assumption() {
    let mut objects: Value = serde_saphyr::from_str(PLACED).unwrap();
    let count = |objects: Value| {
        let trace = import_value(objects, Some(5)).unwrap();
        let texts = trace.assumptions.into_iter();
        let mut texts = texts.filter(|it| it.text.contains("its nodes are not considered"));
        texts.next().map(|it| it.count)
    };
    assert_eq!(count(objects.clone()), Some(1));
    objects["items"][1]["spec"]["placement"] = Value::Null;
    assert_eq!(count(objects), None);
}

const PLACED: &str = "\
kind: List
apiVersion: v1
items:
- {apiVersion: lockkeeper.dev/v1alpha1, kind: ResourceFlavor, metadata: {name: f}}
- apiVersion: lockkeeper.dev/v1alpha1
  kind: ClusterQueue
  metadata: {name: q}
  spec:
    namespaceSelector: {}
    placement: {policy: Nodes}
    resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]
- {apiVersion: lockkeeper.dev/v1alpha1, kind: LocalQueue, metadata: {name: q, namespace: team}, spec: {clusterQueue: q}}
- apiVersion: lockkeeper.dev/v1alpha1
  kind: Workload
  metadata: {name: w, namespace: team, uid: w, creationTimestamp: 2026-11-01T00:00:00Z}
  spec:
    queueName: q
    podSets:
    - count: 1
      template: {spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
";

#[test]
fn dump_without_workloads_is_an_error() {
    let error = import("{apiVersion: v1, kind: List, items: []}", Some(5)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no Workload of the dump has a queue"),
        "{error}"
    );
}
