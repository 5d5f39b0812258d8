//! The cost of a preview at admission: `cargo bench -p lockkeeper-controller --bench preview`.
//!
//! Times are CPU time of this thread, which is reliable on a busy machine; allocations are the same on every machine. `decode` is
//! what the same run takes to decode the object of the request, once per request.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    missing_docs,
    reason = "a program for developers"
)]

use lockkeeper_controller::job_adapters::JobKinds;
use lockkeeper_controller::preview::{PreviewSettings, PreviewState, submitted_workload};
use lockkeeper_controller::{Input, Kind, ObjectKey};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW_MS: i64 = 1_700_000_000_000;
const GROUP: &str = "lockkeeper.dev/v1alpha1";
const COHORT_QUEUES: usize = 10;
/// One in this number of workloads is admitted; the others are pending.
const RUNNING_ONE_IN: usize = 5;
const RUNS: usize = 201;

fn main() {
    println!(
        "workloads  queues  strategy        preview      outcome                CPU µs  decode µs  allocations"
    );
    for (workloads, queues, strategy) in [
        (1_000, 100, "BestEffortFIFO"),
        (50_000, 100, "BestEffortFIFO"),
        (50_000, 1_000, "BestEffortFIFO"),
        (50_000, 100, "StrictFIFO"),
        (50_000, 1_000, "StrictFIFO"),
    ] {
        let before = INSTRUMENTED_SYSTEM.stats();
        let mut state = state(workloads, queues, strategy);
        let requested = INSTRUMENTED_SYSTEM.stats() - before;
        let kept = requested.bytes_allocated - requested.bytes_deallocated;
        for (name, object) in [
            ("idle queue", object("idle", "low", 1)),
            ("busy queue", object("q0", "low", 1)),
            ("high class", object("q0", "high", 1)),
            ("too large", object("q0", "high", 1_000_000)),
        ] {
            let row = measure(&mut state, &object);
            println!("{workloads:>9}  {queues:>6}  {strategy:<14}  {name:<11}  {row}");
        }
        println!(
            "{workloads:>9}  {queues:>6}  {strategy:<14}  {} bytes per workload",
            kept / workloads
        );
    }
}

/// The median of some runs.
fn measure(state: &mut PreviewState, object: &Value) -> String {
    let text = object.to_string();
    let mut outcome = String::new();
    let mut times = Vec::new();
    let mut decode_times = Vec::new();
    let mut allocations = Vec::new();
    for _ in 0..RUNS {
        let (before, allocated) = (cpu_us(), INSTRUMENTED_SYSTEM.stats());
        let object = serde_json::from_str(&text).unwrap();
        let workload = submitted_workload(&JobKinds::default(), object, NOW_MS).unwrap();
        let decoded = cpu_us();
        assert!(state.settle(NOW_MS, 2));
        let preview = state.preview(NOW_MS, workload).unwrap();
        times.push(cpu_us() - before);
        decode_times.push(decoded - before);
        allocations.push((INSTRUMENTED_SYSTEM.stats() - allocated).allocations as f64);
        outcome = preview.to_string();
    }
    outcome.truncate(22);
    format!(
        "{outcome:<22} {:>6.0} {:>10.0} {:>12.0}",
        median(times),
        median(decode_times),
        median(allocations)
    )
}

/// `queues` busy queues in cohorts of ten, and the queue `idle`, which no cohort may borrow from.
fn state(workloads: usize, queues: usize, strategy: &str) -> PreviewState {
    let mut state = PreviewState::new(PreviewSettings::default());
    for kind in Kind::FIXED {
        state.handle_input(NOW_MS, Input::Listed(kind));
    }
    set(
        &mut state,
        Kind::ResourceFlavor,
        json!({"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}}),
    );
    set(
        &mut state,
        Kind::Namespace,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    );
    for (name, value) in [("low", 1), ("high", 9)] {
        set(
            &mut state,
            Kind::PriorityClass,
            json!({"apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass", "metadata": {"name": name}, "value": value}),
        );
    }
    // What is running fits exactly.
    let quota = workloads / queues / RUNNING_ONE_IN;
    let names = (0..queues).map(|it| (format!("q{it}"), format!("c{}", it / COHORT_QUEUES)));
    for (name, cohort) in names.chain([("idle".to_owned(), "alone".to_owned())]) {
        set(
            &mut state,
            Kind::ClusterQueue,
            json!({"apiVersion": GROUP, "kind": "ClusterQueue", "metadata": {"name": name},
            "spec": {"cohortName": cohort, "namespaceSelector": {}, "queueingStrategy": strategy,
                "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                    {"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}]}]}}),
        );
        set(
            &mut state,
            Kind::LocalQueue,
            json!({"apiVersion": GROUP, "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "a"}, "spec": {"clusterQueue": name}}),
        );
    }
    for index in 0..workloads {
        let queue = format!("q{}", index % queues);
        let name = format!("w{index}");
        let mut it = object(&queue, "low", 1);
        it["metadata"] = json!({"name": name, "namespace": "a", "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2023-11-14T22:00:00Z"});
        if index / queues < quota {
            let condition = |of: &str| {
                json!({"type": of, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2023-11-14T22:00:00Z"})
            };
            it["status"] = json!({
                "admission": {"clusterQueue": queue, "podSetAssignments": [
                    {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "1"}}]},
                "conditions": [condition("QuotaReserved"), condition("Admitted"), condition("PodsReady")],
            });
        }
        set(&mut state, Kind::Workload, it);
    }
    while !state.settle(NOW_MS, 1_000) {}
    state
}

fn set(state: &mut PreviewState, kind: Kind, object: Value) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let namespace = text("/metadata/namespace").unwrap_or_default();
    let key = ObjectKey::new(namespace, text("/metadata/name").unwrap());
    state.handle_input(NOW_MS, Input::applied(kind, key, object));
}

/// A workload with one container of 30 environment variables.
fn object(queue: &str, class: &str, cpu: u32) -> Value {
    let env: Vec<Value> = (0..30)
        .map(|it| json!({"name": format!("VARIABLE_{it}"), "value": format!("the value of variable {it}")}))
        .collect();
    json!({
        "apiVersion": GROUP, "kind": "Workload", "metadata": {"name": "submitted", "namespace": "a"},
        "spec": {"queueName": queue, "priorityClassName": class, "podSets": [{"name": "main", "count": 1,
            "template": {"spec": {"containers": [{"name": "c", "image": "registry.example/train:1", "env": env,
                "resources": {"requests": {"cpu": cpu.to_string()}}}]}}}]},
    })
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn median(mut all: Vec<f64>) -> f64 {
    let middle = all.len() / 2;
    *all.select_nth_unstable_by(middle, f64::total_cmp).1
}
