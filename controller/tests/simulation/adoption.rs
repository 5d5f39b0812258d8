//! `lockkeeper adopt`: a running Job gets its Workload, the admission, and then its label.

use crate::fields::uid;
use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running};
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use lockkeeper_api::workload::{Admission, PodSetAssignment};
use lockkeeper_api::{Workload, labels};
use lockkeeper_controller::job_adapters::{JobView, KINDS};
use lockkeeper_controller::{
    JobKey, Kind, ObjectKey, adoption_admission_patch, adoption_label_patch, adoption_manifest,
};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A Job of two pods that runs without a queue, in a cluster with a queue of four CPUs.
fn unqueued_job() -> Fixture {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    let mut running = job("j", "mid");
    running["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove(labels::QUEUE_NAME);
    running["spec"]["suspend"] = json!(false);
    stage.api.create(JOB, running).unwrap();
    set_job_running(&mut stage, "j", 2);
    assert_eq!(stage.settle(), [""; 0]);
    stage
}

fn view(stage: &Fixture) -> JobView {
    let mut view = KINDS[0].parse(stage.get(JOB, "j").clone()).unwrap();
    "main".clone_into(&mut view.queue);
    view
}

fn create_workload(stage: &mut Fixture) -> String {
    let view = view(stage);
    let key = JobKey {
        kind: 0,
        name: view.name.clone(),
    };
    let manifest = adoption_manifest(&key, &view).unwrap();
    stage.api.create(Kind::Workload, manifest).unwrap();
    view.workload_name(0).name().to_owned()
}

fn admit(stage: &mut Fixture, name: &str) {
    let workload: Workload =
        serde_json::from_value(stage.get(Kind::Workload, name).clone()).unwrap();
    let admission: Admission = Admission {
        cluster_queue: "main".to_owned(),
        pod_set_assignments: vec![PodSetAssignment {
            name: "main".to_owned(),
            count: 2,
            flavors: [("cpu".to_owned(), "spot".to_owned())].into(),
            resource_usage: [("cpu".to_owned(), "2".parse().unwrap())].into(),
        }],
    };
    let cluster = stage.objects().clone();
    let now_ms = stage.api.now_ms;
    let patch = adoption_admission_patch(&cluster, &workload, admission, now_ms).unwrap();
    let key = ObjectKey::new(NAMESPACE, name);
    stage.api.patch(Kind::Workload, &key, &patch, true).unwrap();
}

fn label(stage: &mut Fixture) {
    let patch = adoption_label_patch(&view(stage), "main");
    stage.change(JOB, "j", &patch);
}

fn adoption<'a>(stage: &'a Fixture, name: &str) -> &'a Value {
    let all = &stage.get(Kind::Workload, name)["metadata"]["annotations"];
    &all[labels::ADOPTION]
}

fn is_suspended(stage: &Fixture) -> bool {
    stage.get(JOB, "j")["spec"]["suspend"] == true
}

#[test]
fn adopted_job_runs_on_with_quota() {
    let mut stage = unqueued_job();
    let name = create_workload(&mut stage);
    let lines = [
        format!("update_workload {name}"),
        format!("pending_reason {name}"),
    ];
    assert_eq!(stage.advance(5_000), lines);
    assert_eq!(*adoption(&stage, &name), "Observed");
    // It is admitted by the command alone, and preempts no workload.
    stage.api.create(JOB, job("other", "low")).unwrap();
    stage.advance(60_000);
    admit(&mut stage, &name);
    assert_eq!(stage.advance(60_000), [""; 0]);
    label(&mut stage);
    let lines = stage.advance(60_000);
    let expected = [
        format!("update_workload {name}"),
        format!("pods_ready {name}"),
    ];
    assert_eq!(lines, expected);
    assert!(adoption(&stage, &name).is_null());
    assert!(!is_suspended(&stage));
}

/// The controller sees the label before the admission, or sees both at its start.
#[test]
fn job_waits_for_admission_of_its_adoption() {
    let mut stage = unqueued_job();
    let name = create_workload(&mut stage);
    stage.advance(5_000);
    label(&mut stage);
    assert_eq!(stage.advance(60_000), [""; 0]);
    assert!(!is_suspended(&stage));
    admit(&mut stage, &name);
    stage.advance(60_000);
    assert!(adoption(&stage, &name).is_null());
    assert!(!is_suspended(&stage));
}

#[test]
fn abandoned_adoption_releases_quota_and_stops_no_job() {
    for is_admitted in [false, true] {
        let mut stage = unqueued_job();
        let name = create_workload(&mut stage);
        stage.advance(5_000);
        if is_admitted {
            admit(&mut stage, &name);
            stage.settle();
        }
        assert_eq!(stage.advance(3_500_000), [""; 0]);
        let lines = stage.advance(200_000);
        assert_eq!(lines, [format!("delete_workload {name}")]);
        let key = ObjectKey::new(NAMESPACE, &name);
        assert!(stage.api.get(Kind::Workload, &key).is_none());
        assert!(!is_suspended(&stage));
    }
}

#[test]
fn label_without_admission_stops_job_after_the_bound() {
    let mut stage = unqueued_job();
    create_workload(&mut stage);
    stage.settle();
    label(&mut stage);
    stage.advance(3_700_000);
    assert!(is_suspended(&stage));
}

#[test]
fn victim_without_label_is_deleted_and_its_job_runs_on() {
    let mut stage = unqueued_job();
    let name = create_workload(&mut stage);
    stage.settle();
    admit(&mut stage, &name);
    stage.settle();
    let deactivate = json!({"spec": {"active": false}});
    stage.change(Kind::Workload, &name, &deactivate);
    let lines = stage.advance(60_000);
    assert!(
        lines.contains(&format!("delete_workload {name}")),
        "{lines:?}"
    );
    assert!(!lines.contains(&"suspend_job j".to_owned()), "{lines:?}");
    assert!(!is_suspended(&stage));
    assert!(!uid(stage.get(JOB, "j")).is_empty());
}
