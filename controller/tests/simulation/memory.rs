//! What is remembered of objects after they are gone.

use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running};
use crate::jobs::JOB;
use crate::objects::NAMESPACE;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::NamesView;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::json;

/// Jobs that come and go in one round.
const JOBS: usize = 50;
const ROUNDS: usize = 4;

/// The longest time that a Job may run, in seconds: 68 years.
const LONGEST: &str = "2147483647";

fn create_jobs(stage: &mut Fixture, round: usize) -> Vec<String> {
    let names: Vec<String> = (0..JOBS).map(|it| format!("j{round}-{it}")).collect();
    for name in &names {
        let mut object = job(name, "mid");
        object["metadata"]["labels"]["lockkeeper.dev/max-exec-time-seconds"] = json!(LONGEST);
        // A resource that no ClusterQueue covers is a name that a tenant chooses.
        if round == 0 && name.ends_with('9') {
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["resources"]["requests"][format!("example.com/{name}")] = json!("1");
        }
        stage.api.create(JOB, object).unwrap();
    }
    names
}

fn delete_jobs(stage: &mut Fixture, names: &[String]) {
    for name in names {
        let key = ObjectKey::new(NAMESPACE, name);
        stage.api.delete(JOB, &key, None, false).unwrap();
    }
    while stage.api.collect_garbage().is_some() {}
}

fn names_count(stage: &Fixture) -> [usize; 2] {
    let names = NamesView::new(stage.objects().state());
    [names.resource_count(), names.node_count()]
}

#[test]
fn deleted_jobs_leave_no_timers_and_no_names() {
    let cpu = u32::try_from(2 * JOBS).unwrap();
    let mut stage = Fixture::new(RequeueSettings::default(), cpu);
    stage.advance(120_000);
    let before = names_count(&stage);
    assert_eq!(stage.queued_objects(), 0);
    for round in 0..ROUNDS {
        let names = create_jobs(&mut stage, round);
        stage.advance(5_000);
        let running = names.iter().filter(|name| {
            let is_suspended = stage.get(JOB, name)["spec"]["suspend"] == true;
            !is_suspended
        });
        let running: Vec<String> = running.cloned().collect();
        for name in &running {
            set_job_running(&mut stage, name, 2);
        }
        stage.advance(120_000);
        // Each running Job has a timer: the test watches something.
        assert!(stage.queued_objects() >= running.len(), "{round}");
        assert!(running.len() >= JOBS / 2, "{round}");
        delete_jobs(&mut stage, &names);
        stage.advance(120_000);
        assert_eq!(stage.queued_objects(), 0, "{round}");
        assert_eq!(names_count(&stage), before, "{round}");
    }
    assert_eq!(stage.api.all(Kind::Workload).count(), 0);
}

#[test]
fn replica_that_does_not_lead_remembers_no_deleted_object() {
    let cpu = u32::try_from(2 * JOBS).unwrap();
    let mut stage = Fixture::new(RequeueSettings::default(), cpu);
    let last = create_jobs(&mut stage, 1);
    stage.advance(5_000);
    assert_ne!(stage.queued_objects(), 0);
    stage.set_leading(false);
    delete_jobs(&mut stage, &last);
    for round in 2..ROUNDS {
        let names = create_jobs(&mut stage, round);
        stage.settle();
        delete_jobs(&mut stage, &names);
        stage.settle();
        assert_eq!(stage.queued_objects(), 0, "{round}");
    }
    // It has forgotten nothing that exists.
    let names = create_jobs(&mut stage, 0);
    stage.settle();
    stage.set_leading(true);
    stage.advance(5_000);
    let is_running = |name: &String| stage.get(JOB, name)["spec"]["suspend"] == false;
    assert!(names.iter().filter(|it| is_running(it)).count() >= JOBS / 2);
}
