//! Many are evicted at once, and queues that change all the time.

use crate::objects::NAMESPACE;
use crate::stage::Stage;
use lockkeeper_controller::{Kind, Name};
use lockkeeper_preemption::requeue::Settings;
use serde_json::{Value, json};

/// How many small ones run when a large one comes.
const SMALL: u32 = 60;

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

/// As many small ones as there is quota, all of them new.
fn with_small_ones() -> Stage {
    let mut stage = Stage::new(Settings::default(), SMALL);
    for number in 0..SMALL {
        let small = workload(&format!("small-{number:02}"), "low", 1);
        stage.api.create(Kind::Workload, small).unwrap();
    }
    stage
}

fn counted(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|it| it.starts_with(what)).count()
}

#[test]
fn of_many_evictions_the_first_are_told_one_by_one_and_the_rest_in_sum() {
    let mut stage = with_small_ones();
    assert_eq!(counted(&stage.settle(), "admit "), 60);
    let large = workload("large", "high", SMALL);
    stage.api.create(Kind::Workload, large).unwrap();
    let lines = stage.settle();
    assert_eq!(counted(&lines, "evict "), 60);
    assert_eq!(counted(&lines, "admit large"), 1);
    assert_eq!(counted(&lines, "event"), 50);
    let singly = stage.told.iter();
    let singly = singly.filter(|it| it.starts_with("Workload small-") && it.contains("large"));
    assert_eq!(singly.count(), 50, "{:?}", stage.told);

    stage.told.clear();
    stage.pass(120_000);
    assert_eq!(
        stage.told,
        [
            "LocalQueue main EvictedDueToPreempted 10 more of its workloads were evicted in the last 60 s; \
             the condition Evicted of each says why"
        ]
    );
}

#[test]
fn who_was_not_told_of_his_admission_yet_is_not_admitted_only_to_be_evicted() {
    let mut stage = with_small_ones();
    // As many are under way as may be, and more were decided on.
    let writes = stage.begin();
    assert_eq!(writes.len(), 8);
    let large = workload("large", "high", SMALL);
    stage.api.create(Kind::Workload, large).unwrap();
    stage.api.now_ms += 1_000;
    assert!(stage.begin().is_empty());
    stage.end(writes);
    let lines = stage.settle();
    assert_eq!(counted(&lines, "admit small"), 8);
    assert_eq!(counted(&lines, "evict small"), 8);
    assert_eq!(counted(&lines, "admit large"), 1);
    // Nor is it counted as admitted: sixteen small ones were decided on, and eight of them written.
    let figures = stage.figures();
    let decided = |what| figures.decisions.iter().find(|it| it.0 == what).unwrap().1;
    assert_eq!(figures.admitted, 9);
    assert_eq!((decided("Admit"), decided("Preempt")), (17, 2));
}

#[test]
fn what_comes_of_a_changed_spec_does_not_wait() {
    let mut stage = Stage::new(Settings::default(), 2);
    stage.settle();
    let status = |stage: &Stage| {
        let queue = stage.api.get(Kind::ClusterQueue, &Name::new("", "main"));
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
    let name = Name::new("", "main");
    stage
        .api
        .patch(Kind::ClusterQueue, &name, &stop, false)
        .unwrap();
    stage.settle();
    assert_eq!(status(&stage), (json!(1), json!("Stopped")));
}
