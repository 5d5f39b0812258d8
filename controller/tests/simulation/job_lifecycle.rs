//! Life cycles of single jobs: their writes and conditions.

use crate::fields::text;
use crate::fixture::Fixture;
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};
use std::time::Duration;

const JOB_SET: Kind = Kind::Job(1);

fn template() -> Value {
    json!({"spec": {
        "restartPolicy": "Never",
        "nodeSelector": {"disk": "fast"},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }})
}

pub fn job(name: &str, class: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
            "lockkeeper.dev/queue-name": "main", "lockkeeper.dev/priority-class": class,
        }},
        "spec": {"parallelism": 2, "completions": 2, "suspend": true, "template": template()},
    })
}

/// A suspended `JobSet` with a job of one pod for each of the replicas.
pub fn job_set(name: &str, members: &[(&str, u32)]) -> Value {
    let member = |(name, replicas): &(&str, u32)| {
        json!({"name": name, "replicas": replicas, "template": {
            "spec": {"parallelism": 1, "completions": 1, "template": template()},
        }})
    };
    let jobs: Vec<Value> = members.iter().map(member).collect();
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
            "lockkeeper.dev/queue-name": "main",
        }},
        "spec": {"suspend": true, "replicatedJobs": jobs},
    })
}

fn placement(stage: &Fixture, name: &str) -> Value {
    let pod = &stage.get(JOB, name)["spec"]["template"]["spec"];
    json!([pod["nodeSelector"], pod["tolerations"]])
}

pub fn set_job_running(stage: &mut Fixture, name: &str, ready: u32) {
    let mut status = json!({"startTime": "2023-11-14T22:13:20Z", "active": 2, "ready": ready});
    status["conditions"] = suspended_condition("False");
    stage.status(JOB, name, &status);
}

fn suspended_condition(is_so: &str) -> Value {
    json!([{
        "type": "Suspended", "status": is_so, "reason": "Updated", "message": "",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }])
}

/// Acts as the controller of Jobs after a suspension.
pub fn set_job_stopped(stage: &mut Fixture, name: &str) {
    assert_eq!(stage.get(JOB, name)["spec"]["suspend"], true);
    let status = json!({"active": 0, "ready": 0, "conditions": suspended_condition("True")});
    stage.status(JOB, name, &status);
}

fn set_job_complete(stage: &mut Fixture, name: &str) {
    let complete = json!([{
        "type": "Complete", "status": "True", "reason": "C", "message": "well done",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }]);
    let status = json!({"active": 0, "ready": 0, "succeeded": 2, "conditions": complete});
    stage.status(JOB, name, &status);
}

#[test]
fn job_lifecycle_takes_five_writes() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    let lines = stage.settle();
    let workload = stage.workload_of("j");
    let expected = ["create_workload", "admit", "start_job"];
    let names = [workload.as_str(), &workload, "j"];
    let expected: Vec<String> = expected
        .iter()
        .zip(names)
        .map(|(what, name)| format!("{what} {name}"))
        .collect();
    assert_eq!(lines, expected);
    let toleration = json!({"effect": "NoSchedule", "key": "spot", "operator": "Exists"});
    let placed = json!([{"disk": "fast", "kind": "spot"}, [toleration]]);
    assert_eq!(placement(&stage, "j"), placed);

    set_job_running(&mut stage, "j", 1);
    assert_eq!(stage.settle(), [""; 0]);
    set_job_running(&mut stage, "j", 2);
    assert_eq!(stage.settle(), [format!("pods_ready {workload}")]);
    set_job_complete(&mut stage, "j");
    assert_eq!(stage.settle(), [format!("finish {workload}")]);
    assert_eq!(
        stage.conditions("j"),
        [
            "Admitted=True Admitted: Admitted by ClusterQueue main",
            "Finished=True Succeeded: well done",
            "PodsReady=True Started: All pods are ready or succeeded",
            "QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue main, 0 s after creation",
        ]
    );
    assert_eq!(stage.advance(600_000), [""; 0]);
}

#[test]
fn finished_workload_is_deleted_after_its_retention() {
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, |settings| {
        settings.finished_retention_ms = Some(60_000);
    });
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    let workload = stage.workload_of("j");
    set_job_running(&mut stage, "j", 2);
    stage.settle();
    assert_eq!(stage.advance(120_000), [""; 0]);
    set_job_complete(&mut stage, "j");
    assert_eq!(stage.settle(), [format!("finish {workload}")]);
    assert_eq!(stage.advance(58_000), [""; 0]);
    assert_eq!(
        stage.advance(3_000),
        [format!("delete_workload {workload}")]
    );
    // The finished Job gets no other workload.
    assert_eq!(stage.advance(600_000), [""; 0]);
}

#[test]
fn evictions_are_counted_in_status_and_metrics() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("low", "low")).unwrap();
    stage.settle();
    set_job_running(&mut stage, "low", 2);
    stage.settle();
    for round in 1..=2 {
        let high = format!("high-{round}");
        stage.api.create(JOB, job(&high, "high")).unwrap();
        stage.advance(5_000);
        set_job_stopped(&mut stage, "low");
        stage.advance(5_000);
        let low = stage.get(Kind::Workload, &stage.workload_of("low"));
        assert_eq!(
            low["status"]["schedulingStats"],
            json!({"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": round}]})
        );
        let unadmitted = stage.unadmitted_workloads();
        assert_eq!(unadmitted, [("main WaitingForQuota".to_owned(), 1)]);
        assert_eq!(stage.quota_usage(), ["main spot cpu 2 of 2"]);
        set_job_running(&mut stage, &high, 2);
        set_job_complete(&mut stage, &high);
        stage.advance(5_000);
        set_job_running(&mut stage, "low", 2);
        stage.advance(5_000);
        assert_eq!(stage.unadmitted_workloads(), []);
    }
    let evictions = stage.take_evictions();
    let first: Vec<bool> = evictions.iter().map(|it| it.is_first).collect();
    assert_eq!(first, [true, false]);
    assert!(evictions.iter().all(|it| it.cluster_queue == "main"));
}

#[test]
fn preemption_message_names_preemptor_reason_and_paths() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("low", "low")).unwrap();
    stage.settle();
    set_job_running(&mut stage, "low", 2);
    stage.settle();
    stage.api.create(JOB, job("high", "high")).unwrap();
    let lines = stage.advance(5_000);
    let (low, high) = (stage.workload_of("low"), stage.workload_of("high"));
    let expected = [
        format!("create_workload {high}"),
        format!("evict {low}"),
        format!("pending_reason {high}"),
        "suspend_job low".to_owned(),
        "event".to_owned(),
    ];
    assert_eq!(lines, expected);
    let waits = format!(
        "QuotaReserved=False WaitingForPreemptedWorkloads: Waiting for preempted workloads to release quota: team/{low}"
    );
    assert_eq!(stage.conditions("high"), [waits]);

    set_job_stopped(&mut stage, "low");
    let expected = [
        "reset_job low".to_owned(),
        "restore_job low".to_owned(),
        format!("release {low}"),
        format!("admit {high}"),
        format!("pending_reason {low}"),
        "start_job high".to_owned(),
    ];
    assert_eq!(stage.advance(5_000), expected);
    assert_eq!(placement(&stage, "low"), json!([{"disk": "fast"}, null]));
    let of = |kind, name: &str| text(stage.get(kind, name), "/metadata/uid").to_owned();
    let (preemptor, owner) = (of(Kind::Workload, &high), of(JOB, "high"));
    let why = format!(
        "Preempted to accommodate a workload (UID: {preemptor}, JobUID: {owner}) due to prioritization in \
         the ClusterQueue; preemptor: team/{high}; preemptor path: /main; preemptee path: /main"
    );
    assert_eq!(
        stage.conditions("low"),
        [
            "Admitted=False NoReservation: The workload has no reservation".to_owned(),
            format!("Evicted=True Preempted: {why}"),
            format!("Preempted=True InClusterQueue: {why}"),
            "QuotaReserved=False WaitingForQuota: Waiting for quota: requests 2 cpu of flavor spot, 0 cpu free; \
             there are no candidate workloads for preemption"
                .to_owned(),
            format!("Requeued=True Preempted: {why}"),
        ]
    );
}

#[test]
fn pods_not_ready_in_time_requeues_then_deactivates() {
    let requeue = RequeueSettings {
        is_enabled: true,
        timeout: Duration::from_secs(10),
        backoff_limit_count: Some(1),
        ..RequeueSettings::default()
    };
    let mut stage = Fixture::new(requeue, 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    let workload = stage.workload_of("j");
    set_job_running(&mut stage, "j", 1);
    let stopped = |stage: &mut Fixture| {
        set_job_stopped(stage, "j");
        stage.settle()
    };
    let evicted = [
        format!("evict {workload}"),
        "suspend_job j".into(),
        "event".into(),
    ];
    assert_eq!(stage.advance(11_000), evicted);
    let given_back = [
        "reset_job j".into(),
        "restore_job j".into(),
        format!("release {workload}"),
        format!("pending_reason {workload}"),
    ];
    assert_eq!(stopped(&mut stage), given_back);
    assert!(stage.conditions("j").contains(&format!(
        "Requeued=False PodsReadyTimeout: Exceeded the PodsReady timeout team/{workload}"
    )));

    let lines = stage.advance(61_000);
    let again = [
        format!("requeue {workload}"),
        format!("admit {workload}"),
        "start_job j".into(),
    ];
    assert_eq!(lines, again);
    set_job_running(&mut stage, "j", 1);
    let lines = stage.advance(11_000);
    let given_up = [
        format!("deactivate {workload}"),
        format!("deactivate {workload}"),
        "event".into(),
        format!("evict {workload}"),
        "suspend_job j".into(),
        "event".into(),
    ];
    assert_eq!(lines, given_up);
    stopped(&mut stage);
    stage.advance(600_000);
    assert_eq!(
        stage.get(Kind::Workload, &workload)["spec"]["active"],
        false
    );
    let why =
        "The workload is deactivated due to exceeding the maximum number of re-queuing retries";
    let conditions = stage.conditions("j");
    for of in ["Evicted=True", "Requeued=False"] {
        let expected = format!("{of} DeactivatedDueToRequeuingLimitExceeded: {why}");
        assert!(conditions.contains(&expected), "{conditions:?}");
    }

    reactivate_and_expect_restart(&mut stage, &workload);
}

/// A user activates it again.
fn reactivate_and_expect_restart(stage: &mut Fixture, workload: &str) {
    let name = ObjectKey::new(NAMESPACE, workload);
    let active = json!({"spec": {"active": true}});
    stage
        .api
        .patch(Kind::Workload, &name, &active, false)
        .unwrap();
    let lines = stage.settle();
    let back = [
        format!("requeue {workload}"),
        format!("admit {workload}"),
        "start_job j".into(),
    ];
    assert_eq!(lines, back);
}

#[test]
fn job_set_placement_is_per_template_and_restored() {
    let mut stage = Fixture::new(RequeueSettings::default(), 3);
    let set = job_set("s", &[("driver", 1), ("worker", 2)]);
    let jobs = set["spec"]["replicatedJobs"].clone();
    stage.api.create(JOB_SET, set).unwrap();
    let lines = stage.settle();
    let workload = stage.workload_of("s");
    let started = [
        format!("create_workload {workload}"),
        format!("admit {workload}"),
        "start_job s".into(),
    ];
    assert_eq!(lines, started);
    let spec = &stage.get(JOB_SET, "s")["spec"];
    assert_eq!(spec["suspend"], false);
    for at in 0..2 {
        let pod = &spec["replicatedJobs"][at]["template"]["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"disk": "fast", "kind": "spot"}));
    }
    let admitted =
        &stage.get(Kind::Workload, &workload)["status"]["admission"]["podSetAssignments"];
    assert_eq!(admitted[0]["resourceUsage"]["cpu"], "1");
    assert_eq!(admitted[1]["resourceUsage"]["cpu"], "2");

    let running = json!({"replicatedJobsStatus": [
        {"name": "driver", "ready": 1, "succeeded": 0, "active": 1},
        {"name": "worker", "ready": 2, "succeeded": 0, "active": 2},
    ]});
    stage.status(JOB_SET, "s", &running);
    assert_eq!(stage.settle(), [format!("pods_ready {workload}")]);
    let name = ObjectKey::new(NAMESPACE, &workload);
    let inactive = json!({"spec": {"active": false}});
    stage
        .api
        .patch(Kind::Workload, &name, &inactive, false)
        .unwrap();
    let lines = stage.settle();
    assert_eq!(
        lines,
        [
            format!("evict {workload}"),
            "suspend_job s".into(),
            "event".into()
        ]
    );
    let stopped = json!({"replicatedJobsStatus": [
        {"name": "driver", "ready": 0, "succeeded": 0, "active": 0},
        {"name": "worker", "ready": 0, "succeeded": 0, "active": 0},
    ]});
    stage.status(JOB_SET, "s", &stopped);
    let lines = stage.settle();
    assert_eq!(
        lines,
        [
            "restore_job s".into(),
            format!("release {workload}"),
            format!("pending_reason {workload}")
        ]
    );
    assert_eq!(stage.get(JOB_SET, "s")["spec"]["replicatedJobs"], jobs);
}

#[test]
fn deleted_cluster_queue_admits_no_more_workloads() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    stage.api.create(JOB, job("runs", "mid")).unwrap();
    stage.settle();
    let queue = ObjectKey::new("", "main");
    let api = &mut stage.api;
    api.delete(Kind::ClusterQueue, &queue, None, false).unwrap();
    stage.settle();
    stage.api.create(JOB, job("waits", "high")).unwrap();
    let lines = stage.settle();
    let waits = stage.workload_of("waits");
    // The released quota is used.
    assert_eq!(lines, [format!("create_workload {waits}")]);
    let runs = stage.workload_of("runs");
    assert!(
        stage
            .conditions("runs")
            .iter()
            .any(|it| it.starts_with("Admitted=True")),
        "{runs}"
    );
}

/// Removes the finalizers of cluster-scoped objects, as `kubectl replace` with a file of a user does.
fn drop_finalizers(stage: &mut Fixture, objects: &[(Kind, &str)]) {
    for (kind, name) in objects {
        let none = json!({"metadata": {"finalizers": []}});
        let name = ObjectKey::new("", name);
        stage.api.patch(*kind, &name, &none, false).unwrap();
    }
}

#[test]
fn finalizer_of_objects_in_use_is_restored() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    stage.api.create(JOB, job("runs", "mid")).unwrap();
    stage.settle();
    let objects = [(Kind::ClusterQueue, "main"), (Kind::ResourceFlavor, "spot")];
    drop_finalizers(&mut stage, &objects);
    let mut lines = stage.settle();
    lines.sort_unstable();
    assert_eq!(lines, ["finalizer main", "finalizer spot"]);
    for (kind, name) in objects {
        let object = stage.api.get(kind, &ObjectKey::new("", name)).unwrap();
        let finalizers = &object["metadata"]["finalizers"];
        assert_eq!(finalizers, &json!([labels::RESOURCE_IN_USE]));
    }
}

#[test]
fn finalizer_of_unused_queue_is_not_restored() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    stage.settle();
    drop_finalizers(&mut stage, &[(Kind::ClusterQueue, "main")]);
    assert_eq!(stage.settle(), [""; 0]);
}

#[test]
fn deletion_of_queue_updates_pending_reason() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("runs", "mid")).unwrap();
    stage.settle();
    stage.api.create(JOB, job("waits", "mid")).unwrap();
    stage.settle();
    let reason = |stage: &Fixture| stage.conditions("waits").join("; ");
    assert!(
        reason(&stage).contains("WaitingForQuota"),
        "{}",
        reason(&stage)
    );
    let queue = ObjectKey::new("", "main");
    stage
        .api
        .delete(Kind::ClusterQueue, &queue, None, false)
        .unwrap();
    stage.settle();
    stage
        .api
        .delete(JOB, &ObjectKey::new(NAMESPACE, "runs"), None, false)
        .unwrap();
    stage.settle();
    let waits = stage.workload_of("waits");
    let workload = stage.get(Kind::Workload, &waits);
    let conditions = workload["status"]["conditions"].as_array().unwrap();
    let message = |it: &Value| it["message"].as_str().unwrap().to_owned();
    let reserved = conditions.iter().find(|it| it["type"] == "QuotaReserved");
    assert_eq!(
        reserved.map(message).unwrap(),
        "ClusterQueue main of LocalQueue main does not exist or is invalid"
    );
}

/// Its controller may be creating pods, and would never report them for a Job that is suspended again.
#[test]
fn job_is_not_suspended_before_its_start_is_confirmed() {
    let (mut stage, it) = (Fixture::new(RequeueSettings::default(), 2), "j");
    stage.api.create(JOB, job(it, "mid")).unwrap();
    let conditions = json!({"conditions": suspended_condition("True")});
    stage.status(JOB, it, &conditions);
    stage.settle();
    let workload = stage.workload_of(it);
    assert_eq!(stage.get(JOB, it)["spec"]["suspend"], false);
    let inactive = json!({"spec": {"active": false}});
    stage.change(Kind::Workload, &workload, &inactive);
    let lines = stage.settle();
    assert_eq!(lines, [format!("evict {workload}"), "event".into()]);
    set_job_running(&mut stage, it, 0);
    assert_eq!(stage.settle(), [format!("suspend_job {it}")]);
    set_job_stopped(&mut stage, it);
    let lines = stage.settle();
    assert!(lines.contains(&format!("release {workload}")), "{lines:?}");
}
