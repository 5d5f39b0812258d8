//! Jobs whose pod templates are not kept are read again before the templates are written.

use crate::fields::text;
use crate::fixture::Fixture;
use crate::job_lifecycle::{job, job_set};
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use crate::queued_pods::POD;
use lockkeeper_api::labels;
use lockkeeper_controller::{Kind, ObjectKey, WritePurpose};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// Keeps the text of one job, the newest, and has one write in flight.
fn one_text(cpu: u32) -> Fixture {
    Fixture::with_settings(RequeueSettings::default(), cpu, |settings| {
        settings.template_bytes_max = 1;
        settings.writes_max = 1;
    })
}

fn template_of(stage: &Fixture, workload: &str) -> Value {
    let workload = stage.get(Kind::Workload, workload);
    workload["spec"]["podSets"][0]["template"].clone()
}

fn stop_queue(stage: &mut Fixture, policy: &str) {
    let queue = ObjectKey::new("", "main");
    let stop = json!({"spec": {"stopPolicy": policy}});
    let api = &mut stage.api;
    api.patch(Kind::ClusterQueue, &queue, &stop, false).unwrap();
}

fn is_read(line: &str) -> bool {
    line.starts_with("read_templates ")
}

#[test]
fn every_job_gets_its_workload_though_one_text_is_kept() {
    let mut stage = one_text(2);
    let names = ["a", "b", "c", "d"];
    for name in names {
        stage.api.create(JOB, job(name, "mid")).unwrap();
    }
    let lines = stage.settle();
    // The newest is kept, and each of the others is read once.
    let reads = lines.iter().filter(|it| is_read(it)).count();
    assert_eq!(reads, names.len() - 1, "{lines:?}");
    for name in names {
        let workload = stage.workload_of(name);
        let of_job = &stage.get(JOB, name)["spec"]["template"];
        let of_workload = template_of(&stage, &workload);
        let image = "/spec/containers/0/image";
        assert_eq!(text(&of_workload, image), text(of_job, image));
    }
}

#[test]
fn job_set_is_read_before_its_start_and_its_restoration() {
    let mut stage = one_text(3);
    let set = job_set("s", &[("driver", 1), ("worker", 2)]);
    let before = set["spec"]["replicatedJobs"].clone();
    let kind = Kind::Job(1);
    stage.api.create(kind, set).unwrap();
    stop_queue(&mut stage, "Hold");
    stage.settle();
    // A later job replaces the text of the job set.
    stage.api.create(JOB, job("later", "low")).unwrap();
    stage.settle();
    stop_queue(&mut stage, "None");
    let lines = stage.settle();
    let workload = stage.workload_of("s");
    let expected = [
        format!("admit {workload}"),
        "read_placement s".into(),
        "start_job s".into(),
    ];
    assert_eq!(lines[..3], expected, "{lines:?}");
    let pods = |count: u32| {
        let of =
            |name, active| json!({"name": name, "ready": active, "succeeded": 0, "active": active});
        json!({"replicatedJobsStatus": [of("driver", count), of("worker", 2 * count)]})
    };
    stage.status(kind, "s", &pods(1));
    let name = ObjectKey::new(NAMESPACE, &workload);
    let inactive = json!({"spec": {"active": false}});
    let api = &mut stage.api;
    api.patch(Kind::Workload, &name, &inactive, false).unwrap();
    stage.settle();
    stage.status(kind, "s", &pods(0));
    let last = job_set("last", &[("driver", 1)]);
    stage.api.create(kind, last).unwrap();
    let lines = stage.settle();
    let at = |line: &str| lines.iter().position(|it| it == line);
    assert!(at("read_placement s") < at("restore_job s"), "{lines:?}");
    assert!(at("read_placement s").is_some(), "{lines:?}");
    assert_eq!(stage.get(kind, "s")["spec"]["replicatedJobs"], before);
}

/// A text that was read is used before the next one is read.
#[test]
fn job_sets_start_and_stop_though_one_text_is_kept() {
    let mut stage = one_text(6);
    stop_queue(&mut stage, "Hold");
    let kind = Kind::Job(1);
    let names = ["a", "b", "c"];
    for name in names {
        stage
            .api
            .create(kind, job_set(name, &[("main", 2)]))
            .unwrap();
    }
    stage.settle();
    stop_queue(&mut stage, "None");
    stage.advance(10_000);
    let pods = |active: u32| json!({"replicatedJobsStatus": [{"name": "main", "ready": active, "succeeded": 0, "active": active}]});
    for name in names {
        assert_eq!(stage.get(kind, name)["spec"]["suspend"], false, "{name}");
        stage.status(kind, name, &pods(2));
    }
    stop_queue(&mut stage, "HoldAndDrain");
    stage.advance(10_000);
    for name in names {
        stage.status(kind, name, &pods(0));
    }
    let lines = stage.advance(10_000);
    for name in names {
        let restored = format!("restore_job {name}");
        assert!(lines.contains(&restored), "{lines:?}");
    }
}

#[test]
fn job_changed_before_the_read_gets_a_workload_of_its_new_version() {
    let mut stage = one_text(1);
    stage.api.create(JOB, job("a", "mid")).unwrap();
    stage.api.create(JOB, job("b", "mid")).unwrap();
    let read = loop {
        let writes = stage.poll_writes();
        let (reads, others): (Vec<_>, Vec<_>) = writes
            .into_iter()
            .partition(|it| it.purpose == WritePurpose::ReadTemplates);
        stage.finish_writes(others);
        if !reads.is_empty() {
            break reads;
        }
    };
    // The watch of the controller has not shown this version when the read is answered.
    let changed = json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": "60"}}});
    stage.change(JOB, "a", &changed);
    stage.finish_writes(read);
    stage.advance(10_000);
    let workload = stage.get(Kind::Workload, &stage.workload_of("a"));
    assert_eq!(workload["spec"]["maximumExecutionTimeSeconds"], 60);
}

#[test]
fn workload_follows_a_job_whose_text_is_not_kept() {
    let mut stage = one_text(1);
    // It needs two cpu, and waits.
    stage.api.create(JOB, job("a", "mid")).unwrap();
    stage.settle();
    let workload = stage.workload_of("a");
    let longer = json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": "60"}}});
    stage.change(JOB, "a", &longer);
    stage.api.create(JOB, job("b", "mid")).unwrap();
    let lines = stage.advance(10_000);
    assert!(
        lines.contains(&format!("read_templates {workload}")),
        "{lines:?}"
    );
    let spec = &stage.get(Kind::Workload, &workload)["spec"];
    assert_eq!(spec["maximumExecutionTimeSeconds"], 60);
}

#[test]
fn text_of_a_pod_is_not_kept_after_it_has_its_workload() {
    let has_pods = |settings: &mut lockkeeper_controller::Settings| settings.job_kinds = vec![2];
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 0, has_pods);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "namespace": NAMESPACE, "labels": {labels::QUEUE_NAME: "main"},
        },
        "spec": {
            "schedulingGates": [{"name": labels::ADMISSION_GATE}],
            "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    });
    stage.api.create(POD, pod).unwrap();
    let lines = stage.settle();
    assert!(!lines.iter().any(|it| is_read(it)), "{lines:?}");
    let (workload, _) = stage.api.all(Kind::Workload).next().unwrap();
    let workload = workload.clone();
    // Neither the list of a restart nor an event brings it back.
    stage.restart();
    stage.settle();
    let api = &mut stage.api;
    api.delete(Kind::Workload, &workload, None, false).unwrap();
    let lines = stage.advance(10_000);
    let name = workload.name();
    for line in ["read_templates a", &format!("create_workload {name}")] {
        assert!(lines.contains(&line.to_owned()), "{lines:?}");
    }
}
