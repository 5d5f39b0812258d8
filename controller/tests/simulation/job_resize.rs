//! Running Jobs with a changed number of pods, and Jobs with pods that never terminate.

use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running, set_job_stopped};
use crate::jobs::JOB;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

fn scale(stage: &mut Fixture, count: i64) {
    let spec = json!({"parallelism": count, "completions": count});
    stage.change(JOB, "j", &json!({"spec": spec}));
}

/// The admitted and the current number of pods.
fn admitted_and_actual_pods(stage: &Fixture) -> [Value; 2] {
    let workload = stage.get(Kind::Workload, &stage.workload_of("j"));
    let given = &workload["status"]["admission"]["podSetAssignments"][0]["count"];
    let has = &stage.get(JOB, "j")["spec"]["parallelism"];
    [given.clone(), has.clone()]
}

/// A Job of two pods that runs.
fn running_job(cpu: u32) -> (Fixture, String) {
    let mut stage = Fixture::new(RequeueSettings::default(), cpu);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    set_job_running(&mut stage, "j", 2);
    stage.settle();
    let name = stage.workload_of("j");
    (stage, name)
}

fn stop_writes(workload: &str) -> [String; 3] {
    [
        format!("evict {workload}"),
        "suspend_job j".into(),
        "event".into(),
    ]
}

const JOB_CHANGED_MESSAGE: &str = "JobChanged: The job requests more than was admitted; it is queued again: pod set main has \
                   3 pods, and 2 were admitted";

#[test]
fn job_scaled_up_is_stopped_and_requeued() {
    let (mut stage, it) = running_job(4);
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stop_writes(&it));
    assert!(
        stage
            .conditions("j")
            .contains(&format!("Evicted=True {JOB_CHANGED_MESSAGE}")),
        "{:?}",
        stage.conditions("j")
    );
    set_job_stopped(&mut stage, "j");
    let again = [
        "reset_job j".into(),
        "restore_job j".into(),
        format!("release {it}"),
        format!("update_workload {it}"),
        format!("admit {it}"),
        "start_job j".into(),
    ];
    assert_eq!(stage.settle(), again);
    assert_eq!(admitted_and_actual_pods(&stage), [json!(3), json!(3)]);
    assert_eq!(stage.get(JOB, "j")["spec"]["suspend"], false);
}

#[test]
fn job_scaled_beyond_quota_waits_and_releases_quota() {
    let (mut stage, it) = running_job(2);
    stage.api.create(JOB, job("next", "low")).unwrap();
    stage.settle();
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stop_writes(&it));
    set_job_stopped(&mut stage, "j");
    stage.advance(5_000);
    let conditions = stage.conditions("j");
    let waits = "QuotaReserved=False WaitingForQuota: Couldn't assign flavors; main on flavor spot: requests 3 cpu, and \
                 the maximum capacity is 2 cpu (ExceedsMaxQuota)";
    for expected in [
        waits.to_owned(),
        format!("Requeued=True {JOB_CHANGED_MESSAGE}"),
    ] {
        assert!(conditions.contains(&expected), "{conditions:?}");
    }
    assert_eq!(admitted_and_actual_pods(&stage), [json!(null), json!(3)]);
    assert_eq!(stage.get(JOB, "next")["spec"]["suspend"], false);
}

#[test]
fn job_scaled_down_keeps_running() {
    let (mut stage, _) = running_job(2);
    scale(&mut stage, 1);
    assert_eq!(stage.advance(60_000), [""; 0]);
    assert_eq!(admitted_and_actual_pods(&stage), [json!(2), json!(1)]);
    // Scaling up to the admitted count is allowed, too.
    scale(&mut stage, 2);
    assert_eq!(stage.advance(60_000), [""; 0]);
}

/// Two of four were admitted. The count that the user set last is restored.
#[test]
fn partially_admitted_job_keeps_parallelism_set_by_user() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    let mut job = job("j", "mid");
    job["spec"]["parallelism"] = json!(4);
    job["spec"]["completions"] = json!(4);
    job["metadata"]["annotations"] = json!({"lockkeeper.dev/job-min-parallelism": "1"});
    stage.api.create(JOB, job).unwrap();
    stage.settle();
    assert_eq!(admitted_and_actual_pods(&stage), [json!(2), json!(2)]);
    set_job_running(&mut stage, "j", 2);
    stage.settle();
    let name = stage.workload_of("j");
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stop_writes(&name));
    set_job_stopped(&mut stage, "j");
    let again = [
        "reset_job j".into(),
        "restore_job j".into(),
        format!("release {name}"),
        format!("update_workload {name}"),
        format!("admit {name}"),
        "start_job j".into(),
    ];
    assert_eq!(stage.settle(), again);
    let workload = stage.get(Kind::Workload, &name);
    assert_eq!(workload["spec"]["podSets"][0]["count"], 3);
    assert_eq!(admitted_and_actual_pods(&stage), [json!(2), json!(2)]);
}

/// Its nodes are dead: its pods are never reported as gone.
#[test]
fn stuck_terminating_pods_release_quota() {
    let (mut stage, it) = running_job(2);
    stage.api.create(JOB, job("high", "high")).unwrap();
    let high = {
        stage.advance(5_000);
        stage.workload_of("high")
    };
    stage.status(JOB, "j", &json!({"active": 0, "terminating": 2}));
    // Its controller has not acknowledged the suspension yet.
    assert_eq!(stage.advance(5_000), [""; 0]);
    set_job_stopped(&mut stage, "j");
    assert_eq!(stage.get(JOB, "j")["status"]["terminating"], 2);
    let lines = stage.settle();
    assert!(lines.contains(&format!("release {it}")), "{lines:?}");
    assert!(lines.contains(&format!("admit {high}")), "{lines:?}");
}
