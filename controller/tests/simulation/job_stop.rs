//! When the quota of a suspended Job is released.

use crate::fixture::Fixture;
use crate::job_lifecycle::job;
use crate::jobs::JOB;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// The pause for an acknowledgement in the fixture, in milliseconds.
const JOB_RESPONSE_MS: i64 = 60_000;

/// A Job whose start was never acknowledged and that is suspended again, and the name of its Workload.
fn suspended_after_unacknowledged_start() -> (Fixture, String) {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    let workload = stage.workload_of("j");
    assert_eq!(stage.get(JOB, "j")["spec"]["suspend"], false);
    let inactive = json!({"spec": {"active": false}});
    stage.change(Kind::Workload, &workload, &inactive);
    let lines = stage.advance(JOB_RESPONSE_MS);
    assert!(lines.contains(&"suspend_job j".to_owned()), "{lines:?}");
    (stage, workload)
}

/// When the Workload was admitted, with a precision of seconds.
fn admitted_at(stage: &Fixture, workload: &str) -> Value {
    let conditions = &stage.get(Kind::Workload, workload)["status"]["conditions"];
    let mut all = conditions.as_array().unwrap().iter();
    let admitted = all.find(|it| it["type"] == "Admitted").unwrap();
    admitted["lastTransitionTime"].clone()
}

/// Acts as a controller of Jobs that reports no pods, and a suspension since this time; returns the writes.
fn report_stop(stage: &mut Fixture, since: &Value) -> Vec<String> {
    let suspended = json!([{
        "type": "Suspended", "status": "True", "reason": "Updated", "message": "", "lastTransitionTime": since,
    }]);
    stage.status(JOB, "j", &json!({"active": 0, "conditions": suspended}));
    stage.settle()
}

#[test]
fn suspension_after_admission_releases_quota_at_once() {
    let (mut stage, workload) = suspended_after_unacknowledged_start();
    let lines = report_stop(&mut stage, &"2023-11-14T22:14:21Z".into());
    assert!(lines.contains(&format!("release {workload}")), "{lines:?}");
}

/// The condition may be of the suspension before the start: pods of the start may still appear.
#[test]
fn suspension_in_second_of_admission_releases_quota_after_pause() {
    let (mut stage, workload) = suspended_after_unacknowledged_start();
    let admitted = admitted_at(&stage, &workload);
    assert_eq!(report_stop(&mut stage, &admitted), [""; 0]);
    let lines = stage.advance(JOB_RESPONSE_MS);
    assert!(lines.contains(&format!("release {workload}")), "{lines:?}");
}
