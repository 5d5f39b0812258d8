//! Pods that have succeeded release their quota while the others run.

use crate::fixture::Fixture;
use crate::job_lifecycle::{job, job_set, set_job_running};
use crate::jobs::JOB;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A running Job with three pods of one cpu each, and its workload, in a queue of four cpu.
fn with_three_pods(completions: &Value) -> (Fixture, String) {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    let mut wide = job("wide", "mid");
    wide["spec"]["parallelism"] = json!(3);
    wide["spec"]["completions"] = completions.clone();
    stage.api.create(JOB, wide).unwrap();
    stage.settle();
    set_job_running(&mut stage, "wide", 3);
    stage.settle();
    let workload = stage.workload_of("wide");
    (stage, workload)
}

fn succeed(stage: &mut Fixture, active: u32, succeeded: u32) -> Vec<String> {
    let status = json!({"active": active, "ready": active, "succeeded": succeeded});
    stage.status(JOB, "wide", &status);
    stage.settle()
}

fn reclaimable(stage: &Fixture, workload: &str) -> Value {
    stage.get(Kind::Workload, workload)["status"]["reclaimablePods"].clone()
}

#[test]
fn quota_of_succeeded_pods_admits_another_workload() {
    let (mut stage, workload) = with_three_pods(&json!(5));
    stage.api.create(JOB, job("waits", "mid")).unwrap();
    stage.settle();
    let waits = stage.workload_of("waits");
    // Three of five completions are left: all pods are still needed.
    assert_eq!(succeed(&mut stage, 3, 2), [""; 0]);
    let lines = succeed(&mut stage, 2, 3);
    let expected = [
        format!("reclaim_pods {workload}"),
        format!("admit {waits}"),
        "start_job waits".to_owned(),
    ];
    assert_eq!(lines, expected);
    let one = json!([{"name": "main", "count": 1}]);
    assert_eq!(reclaimable(&stage, &workload), one);
    assert_eq!(stage.quota_usage(), ["main spot cpu 4 of 4"]);
    // The last pods are about to end: the end of the Job releases the rest.
    assert_eq!(succeed(&mut stage, 0, 5), [""; 0]);
}

#[test]
fn job_without_completions_keeps_its_quota() {
    let (mut stage, workload) = with_three_pods(&Value::Null);
    assert_eq!(succeed(&mut stage, 1, 2), [""; 0]);
    assert_eq!(reclaimable(&stage, &workload), Value::Null);
}

#[test]
fn job_that_needs_released_quota_again_is_evicted() {
    let (mut stage, workload) = with_three_pods(&json!(3));
    assert_eq!(
        succeed(&mut stage, 1, 2),
        [format!("reclaim_pods {workload}")]
    );
    stage.change(JOB, "wide", &json!({"spec": {"completions": 5}}));
    let lines = stage.settle();
    assert!(lines.contains(&"suspend_job wide".to_owned()), "{lines:?}");
    let conditions = stage.conditions("wide");
    let evicted = conditions.iter().find(|it| it.starts_with("Evicted=True"));
    assert!(
        evicted
            .is_some_and(|it| it
                .contains("3 pods of pod set main are left to run, and the quota of 1 is kept")),
        "{conditions:?}"
    );
}

#[test]
fn job_set_without_restarts_releases_the_quota_of_succeeded_jobs() {
    for (policy, expected) in [
        (
            json!({"maxRestarts": 0}),
            json!([{"name": "worker", "count": 2}]),
        ),
        (
            json!({"maxRestarts": 0, "rules": [{"action": "FailJobSet"}]}),
            json!([{"name": "worker", "count": 2}]),
        ),
        (json!({"maxRestarts": 1}), Value::Null),
        (
            json!({"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}),
            Value::Null,
        ),
    ] {
        let mut stage = Fixture::new(RequeueSettings::default(), 4);
        let mut set = job_set("s", &[("driver", 1), ("worker", 3)]);
        set["spec"]["failurePolicy"] = policy.clone();
        let kind = Kind::Job(1);
        stage.api.create(kind, set).unwrap();
        stage.settle();
        let workload = stage.workload_of("s");
        let of = |name, ready, succeeded| json!({"name": name, "ready": ready, "succeeded": succeeded, "active": ready});
        let status = json!({"replicatedJobsStatus": [of("driver", 1, 0), of("worker", 1, 2)]});
        stage.status(kind, "s", &status);
        stage.settle();
        assert_eq!(reclaimable(&stage, &workload), expected, "{policy}");
    }
}
