//! Admissions that the API server rejects.

use crate::fixture::Fixture;
use crate::job_lifecycle::job;
use crate::jobs::JOB;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::json;

#[test]
fn rejected_admission_leaves_quota_to_others() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("first", "mid")).unwrap();
    stage.rejects_prefix = Some("admit job-first-".to_owned());
    let lines = stage.settle();
    let first = stage.workload_of("first");
    let expected = [
        format!("create_workload {first}"),
        format!("admit {first}"),
        "event".into(),
    ];
    assert_eq!(lines, expected);

    // No other workload needs the quota: it is retried with a growing pause.
    assert_eq!(stage.advance(900), [""; 0]);
    let mut tries = Vec::new();
    for second in 1..=16 {
        let lines = stage.advance(1_000);
        if lines.contains(&format!("admit {first}")) {
            tries.push(second);
        }
    }
    assert_eq!(tries, [2, 4, 8, 16]);

    // Another workload needs the quota.
    stage.api.create(JOB, job("second", "mid")).unwrap();
    let lines = stage.settle();
    let second = stage.workload_of("second");
    let got = [
        format!("create_workload {second}"),
        format!("admit {second}"),
        "start_job second".into(),
    ];
    assert_eq!(lines, got);

    // After the pause it is pending like any other workload.
    stage.rejects_prefix = None;
    let lines = stage.advance(60_000);
    assert_eq!(lines, [format!("pending_reason {first}")]);
    assert_eq!(
        stage.conditions("first"),
        [
            "QuotaReserved=False WaitingForQuota: Waiting for quota: requests 2 cpu of flavor spot, 0 cpu free; \
             there are no candidate workloads for preemption"
        ]
    );
    let ended = json!([{
        "type": "Complete", "status": "True", "reason": "C", "message": "",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }]);
    stage.status(JOB, "second", &json!({"active": 0, "conditions": ended}));
    let lines = stage.settle();
    let turn = [
        format!("finish {second}"),
        format!("admit {first}"),
        "start_job first".into(),
    ];
    assert_eq!(lines, turn);
}

/// Its user corrects the object: the new version is tried at once.
#[test]
fn rejected_admission_is_retried_when_workload_changes() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.rejects_prefix = Some("admit job-j-".to_owned());
    stage.settle();
    stage.advance(3_500);
    let workload = stage.workload_of("j");
    stage.rejects_prefix = None;
    assert_eq!(stage.settle(), [""; 0]);
    let labels = json!({"metadata": {"labels": {"fixed": "yes"}}});
    stage.change(Kind::Workload, &workload, &labels);
    let lines = stage.settle();
    assert_eq!(lines, [format!("admit {workload}"), "start_job j".into()]);
}
