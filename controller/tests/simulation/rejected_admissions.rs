//! Admissions that the API server rejects.

use crate::fixture::Fixture;
use crate::job_lifecycle::job;
use crate::jobs::JOB;
use crate::placed_workloads::change_queue;
use lockkeeper_controller::{Kind, WritePurpose};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

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

fn groups_of(cpu: u32) -> Value {
    let quota = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": cpu}]});
    json!({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]})
}

/// The outcome of a lost admission is found out by the write of a pending reason, which is not held back while the decision
/// log waits for it.
#[test]
fn decision_log_begins_although_the_result_of_an_admission_is_not_known() {
    let has_log = |settings: &mut lockkeeper_controller::Settings| settings.has_decision_log = true;
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, has_log);
    stage.api.create(JOB, job("first", "mid")).unwrap();
    let writes = stage.poll_until(WritePurpose::Admit);
    // The quota changes during the write, so that the decision is not written again.
    change_queue(&mut stage, &groups_of(1));
    let more = stage.poll_writes();
    stage.lose_writes(writes);
    stage.restart_decision_log();
    stage.finish_writes(more);
    stage.advance(60_000);
    change_queue(&mut stage, &groups_of(2));
    stage.advance(10_000);
    let conditions = stage.conditions("first");
    assert!(conditions[0].starts_with("Admitted=True"), "{conditions:?}");
}
