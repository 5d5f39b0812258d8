//! Admissions that the API server refuses.

use crate::jobs::JOB;
use crate::life::job;
use crate::stage::Stage;
use lockkeeper_controller::Kind;
use lockkeeper_preemption::requeue::Settings;
use serde_json::json;

#[test]
fn others_get_the_quota_of_who_was_refused() {
    let mut stage = Stage::new(Settings::default(), 2);
    stage.api.create(JOB, job("first", "mid")).unwrap();
    stage.refuses = Some("admit job-first-".to_owned());
    let lines = stage.settle();
    let first = stage.workload_of("first");
    let refused = [
        format!("create_workload {first}"),
        format!("admit {first}"),
        "event".into(),
    ];
    assert_eq!(lines, refused);

    // Nobody else wants it: it is tried again, with a pause that grows.
    assert_eq!(stage.pass(900), [""; 0]);
    let mut tries = Vec::new();
    for second in 1..=16 {
        let lines = stage.pass(1_000);
        if lines.contains(&format!("admit {first}")) {
            tries.push(second);
        }
    }
    assert_eq!(tries, [2, 4, 8, 16]);

    // Somebody does.
    stage.api.create(JOB, job("second", "mid")).unwrap();
    let lines = stage.settle();
    let second = stage.workload_of("second");
    let got = [
        format!("create_workload {second}"),
        format!("admit {second}"),
        "start_job second".into(),
    ];
    assert_eq!(lines, got);

    // When it may be admitted again, it waits like everybody else.
    stage.refuses = None;
    let lines = stage.pass(60_000);
    assert_eq!(lines, [format!("notice {first}")]);
    assert_eq!(
        stage.conditions("first"),
        [
            "QuotaReserved=False WaitingForQuota: Waits for quota: asks for 2 cpu of flavor spot, 0 cpu free; \
             nobody may be preempted for it"
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

/// Its user mends it: that is another object, and it is tried at once.
#[test]
fn who_was_refused_is_tried_again_when_it_changes() {
    let mut stage = Stage::new(Settings::default(), 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.refuses = Some("admit job-j-".to_owned());
    stage.settle();
    stage.pass(3_500);
    let it = stage.workload_of("j");
    stage.refuses = None;
    assert_eq!(stage.settle(), [""; 0]);
    let labels = json!({"metadata": {"labels": {"mended": "yes"}}});
    stage.change(Kind::Workload, &it, &labels);
    let lines = stage.settle();
    assert_eq!(lines, [format!("admit {it}"), "start_job j".into()]);
}
