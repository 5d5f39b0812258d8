//! Jobs whose user changes how many pods they have while they run, and Jobs whose pods never go.

use crate::jobs::JOB;
use crate::life::{job, runs, stops};
use crate::stage::Stage;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::Settings;
use serde_json::{Value, json};

fn scale(stage: &mut Stage, count: i64) {
    let spec = json!({"parallelism": count, "completions": count});
    stage.change(JOB, "j", &json!({"spec": spec}));
}

/// What it was admitted for, and what it has.
fn pods(stage: &Stage) -> [Value; 2] {
    let workload = stage.get(Kind::Workload, &stage.workload_of("j"));
    let given = &workload["status"]["admission"]["podSetAssignments"][0]["count"];
    let has = &stage.get(JOB, "j")["spec"]["parallelism"];
    [given.clone(), has.clone()]
}

/// A Job of two pods that runs.
fn running(cpu: u32) -> (Stage, String) {
    let mut stage = Stage::new(Settings::default(), cpu);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    runs(&mut stage, "j", 2);
    stage.settle();
    let it = stage.workload_of("j");
    (stage, it)
}

fn stopping(it: &str) -> [String; 3] {
    [
        format!("evict {it}"),
        "suspend_job j".into(),
        "event".into(),
    ]
}

const WHY: &str = "JobChanged: The job asks for more than was admitted, and queues again: pod set main has \
                   3 pods, and 2 were admitted";

#[test]
fn a_job_with_more_pods_than_were_admitted_stops_and_queues_again() {
    let (mut stage, it) = running(4);
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stopping(&it));
    assert!(
        stage
            .conditions("j")
            .contains(&format!("Evicted=True {WHY}")),
        "{:?}",
        stage.conditions("j")
    );
    stops(&mut stage, "j");
    let again = [
        "reset_job j".into(),
        "restore_job j".into(),
        format!("release {it}"),
        format!("update_workload {it}"),
        format!("admit {it}"),
        "start_job j".into(),
    ];
    assert_eq!(stage.settle(), again);
    assert_eq!(pods(&stage), [json!(3), json!(3)]);
    assert_eq!(stage.get(JOB, "j")["spec"]["suspend"], false);
}

#[test]
fn it_waits_where_more_does_not_fit_and_others_get_what_it_had() {
    let (mut stage, it) = running(2);
    stage.api.create(JOB, job("next", "low")).unwrap();
    stage.settle();
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stopping(&it));
    stops(&mut stage, "j");
    stage.pass(5_000);
    let conditions = stage.conditions("j");
    let waits = "QuotaReserved=False WaitingForQuota: Does not fit; main on flavor spot: asks for 3 cpu, and \
                 2 cpu is the most there could ever be (ExceedsMaxQuota)";
    for expected in [waits.to_owned(), format!("Requeued=True {WHY}")] {
        assert!(conditions.contains(&expected), "{conditions:?}");
    }
    assert_eq!(pods(&stage), [json!(null), json!(3)]);
    assert_eq!(stage.get(JOB, "next")["spec"]["suspend"], false);
}

#[test]
fn a_job_with_fewer_pods_than_were_admitted_runs_on() {
    let (mut stage, _) = running(2);
    scale(&mut stage, 1);
    assert_eq!(stage.pass(60_000), [""; 0]);
    assert_eq!(pods(&stage), [json!(2), json!(1)]);
    // And back, as far as it was admitted.
    scale(&mut stage, 2);
    assert_eq!(stage.pass(60_000), [""; 0]);
}

/// Two of four were admitted. What comes back is what its user has said last.
#[test]
fn what_a_user_says_of_a_part_is_not_undone() {
    let mut stage = Stage::new(Settings::default(), 2);
    let mut job = job("j", "mid");
    job["spec"]["parallelism"] = json!(4);
    job["spec"]["completions"] = json!(4);
    job["metadata"]["annotations"] = json!({"lockkeeper.dev/job-min-parallelism": "1"});
    stage.api.create(JOB, job).unwrap();
    stage.settle();
    assert_eq!(pods(&stage), [json!(2), json!(2)]);
    runs(&mut stage, "j", 2);
    stage.settle();
    let it = stage.workload_of("j");
    scale(&mut stage, 3);
    assert_eq!(stage.settle(), stopping(&it));
    stops(&mut stage, "j");
    let again = [
        "reset_job j".into(),
        "restore_job j".into(),
        format!("release {it}"),
        format!("update_workload {it}"),
        format!("admit {it}"),
        "start_job j".into(),
    ];
    assert_eq!(stage.settle(), again);
    let workload = stage.get(Kind::Workload, &it);
    assert_eq!(workload["spec"]["podSets"][0]["count"], 3);
    assert_eq!(pods(&stage), [json!(2), json!(2)]);
}

/// Its nodes are dead: nobody ever says that its pods are gone.
#[test]
fn pods_that_never_go_keep_no_quota() {
    let (mut stage, it) = running(2);
    stage.api.create(JOB, job("high", "high")).unwrap();
    let high = {
        stage.pass(5_000);
        stage.workload_of("high")
    };
    stage.status(JOB, "j", &json!({"active": 0, "terminating": 2}));
    // Its controller has not said yet that it is suspended.
    assert_eq!(stage.pass(5_000), [""; 0]);
    stops(&mut stage, "j");
    assert_eq!(stage.get(JOB, "j")["status"]["terminating"], 2);
    let lines = stage.settle();
    assert!(lines.contains(&format!("release {it}")), "{lines:?}");
    assert!(lines.contains(&format!("admit {high}")), "{lines:?}");
}
