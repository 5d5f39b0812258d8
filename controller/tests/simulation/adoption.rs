//! `lockkeeper adopt`: a running Job gets its Workload, the admission, and then its label.

use crate::fields::uid;
use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running};
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use lockkeeper_api::workload::{Admission, PodSetAssignment};
use lockkeeper_api::{Workload, labels};
use lockkeeper_controller::job_adapters::{JobKinds, JobView, KINDS};
use lockkeeper_controller::{
    JobKey, Kind, ObjectKey, WritePurpose, adoption_admission_patch, adoption_label_patch,
    adoption_manifest, adoption_request_patch,
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
    let manifest = adoption_manifest(&JobKinds::default(), &key, &view).unwrap();
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

/// Whether a job has quota.
fn is_admitted(stage: &Fixture, job: &str) -> bool {
    let workload = stage.workload_of(job);
    !stage.get(Kind::Workload, &workload)["status"]["admission"].is_null()
}

/// The command counts on the quota that is free when it lists the workloads.
#[test]
fn workloads_of_the_tree_wait_until_an_adoption_has_its_quota() {
    let mut stage = unqueued_job();
    let name = create_workload(&mut stage);
    stage.settle();
    stage.api.create(JOB, job("other", "high")).unwrap();
    stage.advance(60_000);
    assert!(!is_admitted(&stage, "other"));
    let conditions = stage.conditions("other").join("\n");
    assert!(
        conditions.contains("Waits while lockkeeper adopt"),
        "{conditions}"
    );
    admit(&mut stage, &name);
    stage.settle();
    assert!(is_admitted(&stage, "other"));
}

#[test]
fn interrupted_adoption_delays_other_workloads_for_two_minutes() {
    let mut stage = unqueued_job();
    let name = create_workload(&mut stage);
    stage.settle();
    stage.api.create(JOB, job("other", "low")).unwrap();
    stage.advance(119_000);
    assert!(!is_admitted(&stage, "other"));
    stage.advance(2_000);
    assert!(is_admitted(&stage, "other"));
    // The command runs again: the controller confirms the adoption again, and holds the quota.
    let workload: Workload =
        serde_json::from_value(stage.get(Kind::Workload, &name).clone()).unwrap();
    stage.change(Kind::Workload, &name, &adoption_request_patch(&workload));
    stage.settle();
    assert_eq!(*adoption(&stage, &name), "Observed");
    stage.api.create(JOB, job("third", "low")).unwrap();
    stage.advance(60_000);
    assert!(!is_admitted(&stage, "third"));
    // A withdrawn adoption delays nothing.
    let key = ObjectKey::new(NAMESPACE, &name);
    stage.api.delete(Kind::Workload, &key, None, false).unwrap();
    stage.settle();
    assert!(is_admitted(&stage, "third"));
}

/// An admission that is not at the API server yet would not be in the command's list.
#[test]
fn adoption_is_confirmed_after_the_admissions_under_way() {
    let mut stage = unqueued_job();
    stage.api.create(JOB, job("other", "low")).unwrap();
    let writes = stage.poll_until(WritePurpose::Admit);
    let name = create_workload(&mut stage);
    for _ in 0..5 {
        let others = stage.poll_writes();
        stage.finish_writes(others);
        stage.api.now_ms += 1_000;
    }
    assert_eq!(*adoption(&stage, &name), "Requested");
    stage.finish_writes(writes);
    stage.advance(1_000);
    assert!(is_admitted(&stage, "other"));
    assert_eq!(*adoption(&stage, &name), "Observed");
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
