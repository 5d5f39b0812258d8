//! Mass evictions, and queues with a status that keeps changing.

use crate::fixture::Fixture;
use crate::objects::NAMESPACE;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// The number of small running workloads when a large one is created.
const SMALL_WORKLOADS: u32 = 60;

fn workload(name: &str, class: &str, cpu: u32) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}});
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"queueName": "main", "priorityClassName": class, "podSets": [{
            "name": "main", "count": 1,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }]},
    })
}

/// Fills the quota with new small workloads.
fn fixture_with_small_workloads() -> Fixture {
    let mut stage = Fixture::new(RequeueSettings::default(), SMALL_WORKLOADS);
    for number in 0..SMALL_WORKLOADS {
        let small = workload(&format!("small-{number:02}"), "low", 1);
        stage.api.create(Kind::Workload, small).unwrap();
    }
    stage
}

fn count_prefix(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|it| it.starts_with(what)).count()
}

#[test]
fn mass_eviction_records_first_events_then_a_summary() {
    let mut stage = fixture_with_small_workloads();
    assert_eq!(count_prefix(&stage.settle(), "admit "), 60);
    let large = workload("large", "high", SMALL_WORKLOADS);
    stage.api.create(Kind::Workload, large).unwrap();
    let lines = stage.settle();
    assert_eq!(count_prefix(&lines, "evict "), 60);
    assert_eq!(count_prefix(&lines, "admit large"), 1);
    assert_eq!(count_prefix(&lines, "event"), 50);
    let singly = stage.events.iter();
    let singly = singly.filter(|it| it.starts_with("Workload small-") && it.contains("large"));
    assert_eq!(singly.count(), 50, "{:?}", stage.events);

    stage.events.clear();
    stage.advance(120_000);
    assert_eq!(
        stage.events,
        [
            "LocalQueue main EvictedDueToPreempted 10 more of its workloads were evicted in the last 60 s; \
             see the condition Evicted of each"
        ]
    );
}

#[test]
fn unwritten_admission_of_victim_is_withdrawn_without_write() {
    let mut stage = fixture_with_small_workloads();
    // The limit of in-flight writes is reached, and more admissions were decided.
    let writes = stage.poll_writes();
    assert_eq!(writes.len(), 8);
    let large = workload("large", "high", SMALL_WORKLOADS);
    stage.api.create(Kind::Workload, large).unwrap();
    stage.api.now_ms += 1_000;
    assert!(stage.poll_writes().is_empty());
    stage.finish_writes(writes);
    let lines = stage.settle();
    assert_eq!(count_prefix(&lines, "admit small"), 8);
    assert_eq!(count_prefix(&lines, "evict small"), 8);
    assert_eq!(count_prefix(&lines, "admit large"), 1);
    // It is not counted as admitted: sixteen admissions were decided, and eight of them written.
    let figures = stage.counters();
    let decided = |what| figures.decisions.iter().find(|it| it.0 == what).unwrap().1;
    assert_eq!(figures.admitted, 9);
    assert_eq!((decided("Admit"), decided("Preempt")), (17, 2));
}

#[test]
fn status_after_spec_change_is_written_at_once() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.settle();
    let status = |stage: &Fixture| {
        let queue = stage
            .api
            .get(Kind::ClusterQueue, &ObjectKey::new("", "main"));
        let status = &queue.unwrap()["status"];
        let conditions = status["conditions"].as_array().unwrap();
        let active = conditions.iter().find(|it| it["type"] == "Active").unwrap();
        (status["pendingWorkloads"].clone(), active["reason"].clone())
    };
    assert_eq!(status(&stage), (json!(0), json!("Ready")));
    let waiting = workload("waiting", "low", 3);
    stage.api.create(Kind::Workload, waiting).unwrap();
    stage.settle();
    assert_eq!(status(&stage), (json!(0), json!("Ready")), "the interval");
    let stop = json!({"spec": {"stopPolicy": "Hold"}});
    let name = ObjectKey::new("", "main");
    stage
        .api
        .patch(Kind::ClusterQueue, &name, &stop, false)
        .unwrap();
    stage.settle();
    assert_eq!(status(&stage), (json!(1), json!("Stopped")));
}
