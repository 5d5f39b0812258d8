//! The trace and the timeline of a decision log.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::config::Config;
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::journal::{restart_journal, take_events};
use lockkeeper_decision_log::{Encoder, LogHeader, Replay};
use lockkeeper_preemption::PreemptionReason;
use lockkeeper_simulate::timeline::{EvictionReason, Outcome, Run, RunEnd};
use lockkeeper_trace_import::{LogRecorder, LogRecording};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// 2023-11-14T22:13:20Z.
const START_MS: i64 = 1_700_000_000_000;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn header() -> LogHeader {
    LogHeader::new("1.2.3", "process", &Config::default())
}

fn queue(cpu: u32) -> Arc<ClusterQueue> {
    Arc::new(object(json!({
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]}]},
    })))
}

/// A cluster with 4 cpu, and a journal that has begun.
fn cluster() -> ClusterState {
    let mut cluster = header().empty_cluster();
    cluster.set_now(START_MS);
    cluster.set_namespace("ns", [].into());
    let flavor: ResourceFlavor = object(json!({"metadata": {"name": "f"}, "spec": {}}));
    cluster.set_resource_flavor(&flavor);
    cluster.set_cluster_queue(queue(4)).unwrap();
    let local: LocalQueue = object(
        json!({"metadata": {"name": "q", "namespace": "ns"}, "spec": {"clusterQueue": "q"}}),
    );
    cluster.set_local_queue(&local);
    cluster
}

/// A workload of 3 cpu, created ten seconds before the start.
fn workload(name: &str, priority: i32) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2023-11-14T22:13:10Z"},
        "spec": {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}}]},
        "status": {"priority": priority, "preemptionPriority": priority},
    })
}

/// The workload with quota, since the start of the log or the given second.
fn admitted(name: &str, priority: i32, since: &str, conditions: &[Value]) -> Value {
    let mut workload = workload(name, priority);
    let reserved = json!({"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "",
        "lastTransitionTime": since});
    workload["status"]["conditions"] = json!([&[reserved], conditions].concat());
    workload["status"]["admission"] = json!({"clusterQueue": "q", "podSetAssignments": [
        {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "3"}}]});
    workload
}

fn condition(of: &str, reason: &str) -> Value {
    json!({"type": of, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2023-11-14T22:13:40Z"})
}

fn set(cluster: &mut ClusterState, second: i64, workload: Value) {
    cluster.set_now(START_MS + second * 1000);
    cluster.set_workload(Arc::new(object(workload))).unwrap();
}

fn cycle(cluster: &mut ClusterState, second: i64) {
    cluster.next_cycle(START_MS + second * 1000, true);
}

/// Writes the log of what is done to a cluster after its journal has begun, and records it.
#[track_caller]
fn record(mut cluster: ClusterState, act: impl FnOnce(&mut ClusterState)) -> LogRecording {
    restart_journal(&mut cluster, header().empty_cluster());
    act(&mut cluster);
    let mut encoder = Encoder::new(header());
    let mut log = String::new();
    encoder.begin_file(false, &mut log).unwrap();
    for event in take_events(&mut cluster) {
        encoder.encode(&event, &mut log).unwrap();
    }
    let mut replay = Replay::with_observer(LogRecorder::new());
    for line in log.lines() {
        assert_eq!(replay.read_line(line).unwrap(), None);
    }
    replay.into_observer().finish().unwrap()
}

fn runs<'a>(recording: &'a LogRecording, job: &str) -> &'a [Run] {
    let mut jobs = recording.timeline.jobs.iter();
    &jobs.find(|it| &*it.name == job).unwrap().runs
}

#[test]
fn admissions_preemptions_and_ends_are_recorded() {
    let recording = record(cluster(), |cluster| {
        set(cluster, 1, workload("low", 0));
        cycle(cluster, 1);
        set(cluster, 2, admitted("low", 0, "2023-11-14T22:13:21Z", &[]));
        set(cluster, 10, workload("high", 5));
        cycle(cluster, 10);
        let evicted = [condition("Evicted", "Preempted")];
        set(
            cluster,
            11,
            admitted("low", 0, "2023-11-14T22:13:21Z", &evicted),
        );
        // It has stopped.
        set(cluster, 15, workload("low", 0));
        cycle(cluster, 15);
        set(
            cluster,
            16,
            admitted("high", 5, "2023-11-14T22:13:35Z", &[]),
        );
        let finished = [condition("Finished", "Succeeded")];
        set(
            cluster,
            20,
            admitted("high", 5, "2023-11-14T22:13:35Z", &finished),
        );
        cycle(cluster, 20);
        cluster.set_now(START_MS + 25_000);
        cluster.set_cluster_queue(queue(8)).unwrap();
        cycle(cluster, 30);
    });
    assert_eq!(recording.from_ms, START_MS);
    assert_eq!(recording.timeline.outcome, Outcome::Recorded);
    assert_eq!(recording.timeline.cycles, 5);

    let low = runs(&recording, "ns/low");
    assert_eq!(low.len(), 2, "{low:?}");
    assert_eq!(low[0].from_s, 1);
    let RunEnd::Preempted(eviction) = low[0].end else {
        panic!("{low:?}");
    };
    let preemptor = &recording.timeline.jobs[eviction.by].name;
    assert_eq!((eviction.at_s, &**preemptor), (10, "ns/high"));
    assert_eq!(
        eviction.reason,
        EvictionReason::Quota(PreemptionReason::InClusterQueue)
    );
    assert_eq!(eviction.released_at_s, Some(15));
    assert_eq!((low[1].from_s, low[1].end), (20, RunEnd::Open));
    assert_eq!(low[0].assignment.flavors[0]["cpu"], "f");

    let high = runs(&recording, "ns/high");
    assert_eq!(high.len(), 1, "{high:?}");
    assert_eq!((high[0].from_s, high[0].end), (15, RunEnd::Finished(20)));

    let stats = &recording.timeline.stats;
    assert_eq!((stats.jobs, stats.finished, stats.preemptions), (2, 1, 1));
    // 3 cpu of the first from 1 to 15, of the second to 20, of the first to 30.
    let usage = &recording.timeline.usage[0];
    assert_eq!((usage.integral, usage.peak), (3_000 * 29, 3_000));
    let change = &recording.trace.changes[0];
    assert_eq!((change.at, &*change.cluster_queue), (25, "q"));
}

#[test]
fn workloads_of_the_start_have_run_before() {
    let mut cluster = cluster();
    set(
        &mut cluster,
        0,
        admitted("old", 0, "2023-11-14T22:13:15Z", &[]),
    );
    let recording = record(cluster, |cluster| {
        cycle(cluster, 7);
        set(cluster, 8, workload("old", 0));
        cycle(cluster, 9);
    });
    let old = runs(&recording, "ns/old");
    // It lost its quota for another reason than a preemption.
    assert_eq!((old[0].from_s, old[0].end), (-5, RunEnd::Evicted(8)));
    assert_eq!(recording.trace.jobs[0].ran_seconds, Some(5));
    assert_eq!(recording.trace.jobs[0].waited_seconds, 10);
    assert_eq!(old[1].from_s, 9);
}

#[test]
fn withdrawn_admission_is_no_run() {
    let recording = record(cluster(), |cluster| {
        set(cluster, 1, workload("w", 0));
        cycle(cluster, 1);
        cluster.revert_admission("ns/w");
        cycle(cluster, 2);
        cluster.set_now(START_MS + 3_000);
        cluster.remove_workload("ns/w");
        cycle(cluster, 3);
    });
    let runs = runs(&recording, "ns/w");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((runs[0].from_s, runs[0].end), (2, RunEnd::Evicted(3)));
}

#[test]
fn workload_that_is_created_again_is_another_job() {
    let recording = record(cluster(), |cluster| {
        set(cluster, 1, workload("w", 0));
        cycle(cluster, 1);
        cluster.remove_workload("ns/w");
        let mut again = workload("w", 0);
        again["metadata"]["uid"] = json!("other");
        set(cluster, 5, again);
        cycle(cluster, 6);
        set(cluster, 7, workload("urgent", 9));
        cycle(cluster, 8);
    });
    let first = runs(&recording, "ns/w");
    assert_eq!((first[0].from_s, first[0].end), (1, RunEnd::Evicted(1)));
    let second = runs(&recording, "ns/w (2)");
    let RunEnd::Preempted(eviction) = second[0].end else {
        panic!("{second:?}");
    };
    let preemptor = &recording.timeline.jobs[eviction.by].name;
    assert_eq!((second[0].from_s, &**preemptor), (6, "ns/urgent"));
}
