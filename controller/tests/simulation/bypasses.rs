//! Attempts of a tenant with rights on Jobs, and partly on Workloads, to run pods without quota or to keep quota from
//! others.

use crate::fields::{text, uid};
use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running, set_job_stopped};
use crate::jobs::JOB;
use crate::objects::{NAMESPACE, local_queue};
use crate::pods::OrphanedPods;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A queue of four CPUs, and a Job of two that runs.
fn running(name: &str, class: &str) -> Fixture {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    start(&mut stage, name, class);
    stage
}

fn start(stage: &mut Fixture, name: &str, class: &str) {
    stage.api.create(JOB, job(name, class)).unwrap();
    stage.settle();
    set_job_running(stage, name, 2);
    stage.settle();
}

fn relabel(stage: &mut Fixture, name: &str, queue: Option<&str>) {
    let labels = json!({"lockkeeper.dev/queue-name": queue});
    stage.change(JOB, name, &json!({"metadata": {"labels": labels}}));
}

fn is_suspended(stage: &Fixture, name: &str) -> bool {
    stage.get(JOB, name)["spec"]["suspend"] == true
}

fn has_quota(stage: &Fixture, workload: &str) -> bool {
    let name = ObjectKey::new(NAMESPACE, workload);
    let found = stage.api.get(Kind::Workload, &name);
    found.is_some_and(|it| crate::fields::holds_quota(it))
}

fn fake_owner(kind: &str, name: &str, uid: &str) -> Value {
    let version = if kind == "Job" {
        "batch/v1"
    } else {
        "jobset.x-k8s.io/v1alpha2"
    };
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true,
    }]}})
}

#[test]
fn job_without_label_keeps_quota_until_it_has_stopped() {
    let mut stage = running("j", "mid");
    let workload = stage.workload_of("j");
    relabel(&mut stage, "j", None);
    stage.settle();
    assert!(is_suspended(&stage, "j"));
    stage.advance(5_000);
    assert!(has_quota(&stage, &workload));
    // Its tenant resumes it: it is suspended again, and holds its quota.
    stage.change(JOB, "j", &json!({"spec": {"suspend": false}}));
    stage.advance(5_000);
    assert!(is_suspended(&stage, "j") && has_quota(&stage, &workload));
    set_job_stopped(&mut stage, "j");
    stage.advance(5_000);
    let name = ObjectKey::new(NAMESPACE, &workload);
    assert!(stage.api.get(Kind::Workload, &name).is_none());
}

#[test]
fn job_with_label_of_another_queue_is_queued_there() {
    let mut stage = running("j", "mid");
    let mut other = local_queue("main");
    other["metadata"]["name"] = json!("other");
    stage.api.create(Kind::LocalQueue, other).unwrap();
    let workload = stage.workload_of("j");
    relabel(&mut stage, "j", Some("other"));
    stage.settle();
    assert!(is_suspended(&stage, "j") && has_quota(&stage, &workload));
    let evicted = stage.conditions("j").into_iter();
    let mut evicted = evicted.filter(|it| it.starts_with("Evicted=True"));
    let expected = "Evicted=True JobChanged: The job names another LocalQueue; it is queued again: other, and it was \
                    admitted through main";
    assert_eq!(evicted.next().as_deref(), Some(expected));
    set_job_stopped(&mut stage, "j");
    stage.settle();
    let workload = stage.get(Kind::Workload, &workload);
    assert_eq!(workload["spec"]["queueName"], "other");
    assert!(!is_suspended(&stage, "j"));
}

#[test]
fn invented_owner_exempts_no_job() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    stage.api.create(JOB, job("anchor", "mid")).unwrap();
    stage.settle();
    let anchor = uid(stage.get(JOB, "anchor")).to_owned();
    for (at, owner) in [
        fake_owner("JobSet", "nope", "invented"),
        fake_owner("Job", "nope", "invented"),
        fake_owner("Job", "anchor", &anchor),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("fake-{at}");
        let mut fake = job(&name, "mid");
        fake["spec"]["suspend"] = json!(false);
        fake["metadata"]["ownerReferences"] = owner["metadata"]["ownerReferences"].clone();
        stage.api.create(JOB, fake).unwrap();
        set_job_running(&mut stage, &name, 2);
        stage.settle();
        assert!(is_suspended(&stage, &name), "{owner}");
    }
}

#[test]
fn owner_added_to_running_job_releases_no_quota() {
    let mut stage = running("j", "mid");
    start(&mut stage, "anchor", "mid");
    let workload = stage.workload_of("j");
    let anchor = uid(stage.get(JOB, "anchor")).to_owned();
    stage.change(JOB, "j", &fake_owner("Job", "anchor", &anchor));
    stage.advance(10_000);
    assert!(has_quota(&stage, &workload));
}

#[test]
fn job_whose_workload_lost_its_owner_stops_before_it_gets_another() {
    let mut stage = running("j", "mid");
    let workload = stage.workload_of("j");
    let none = json!({"metadata": {"ownerReferences": null}});
    stage.change(Kind::Workload, &workload, &none);
    stage.change(JOB, "j", &json!({"spec": {"parallelism": 50}}));
    stage.settle();
    assert!(is_suspended(&stage, "j") && has_quota(&stage, &workload));
    stage.advance(60_000);
    assert!(has_quota(&stage, &workload));
    let before = uid(stage.get(Kind::Workload, &workload)).to_owned();
    set_job_stopped(&mut stage, "j");
    stage.settle();
    let after = stage.get(Kind::Workload, &workload);
    assert_ne!(uid(after), before);
    assert_eq!(after["spec"]["podSets"][0]["count"], 2);
}

#[test]
fn orphaned_pods_keep_quota_until_they_end() {
    let mut stage = running("j", "mid");
    let workload = stage.workload_of("j");
    let pods = OrphanedPods {
        milli_cpu: 2_000,
        end_ms: stage.api.now_ms + 30_000,
    };
    let name = ObjectKey::new(NAMESPACE, "j");
    stage.api.delete_with_orphans(&name, pods);
    stage.advance(29_000);
    assert!(has_quota(&stage, &workload));
    stage.advance(3_000);
    assert!(!has_quota(&stage, &workload));
}

#[test]
fn workload_deleted_by_hand_keeps_quota_in_use() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    start(&mut stage, "j", "mid");
    let workload = stage.workload_of("j");
    let name = ObjectKey::new(NAMESPACE, &workload);
    stage
        .api
        .delete(Kind::Workload, &name, None, false)
        .unwrap();
    stage.api.create(JOB, job("next", "mid")).unwrap();
    stage.advance(5_000);
    assert!(is_suspended(&stage, "j"));
    assert!(!has_quota(&stage, &stage.workload_of("next")));
    set_job_stopped(&mut stage, "j");
    stage.advance(5_000);
    assert!(has_quota(&stage, &stage.workload_of("next")));
}

#[test]
fn job_with_foreign_manager_is_not_admitted() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    let mut squat = job("squat", "high");
    squat["spec"]["managedBy"] = json!("example.com/none");
    stage.api.create(JOB, squat).unwrap();
    stage.advance(10_000);
    let message = "The job is managed by another controller, example.com/none, which may never stop it; create the job \
                   without spec.managedBy";
    let expected = format!("QuotaReserved=False ManagedExternally: {message}");
    assert_eq!(stage.conditions("squat"), [expected]);
    assert!(is_suspended(&stage, "squat"));
    start(&mut stage, "other", "low");
    assert!(has_quota(&stage, &stage.workload_of("other")));
}

/// Its controller never writes a status: it loses its quota two minutes after the eviction.
#[test]
fn job_whose_controller_is_silent_loses_its_quota() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("silent", "low")).unwrap();
    stage.settle();
    let workload = stage.workload_of("silent");
    stage.api.create(JOB, job("high", "high")).unwrap();
    stage.advance(58_000);
    assert!(!is_suspended(&stage, "silent") && has_quota(&stage, &workload));
    stage.advance(4_000);
    assert!(is_suspended(&stage, "silent") && has_quota(&stage, &workload));
    stage.advance(62_000);
    assert!(!has_quota(&stage, &workload));
    assert!(has_quota(&stage, &stage.workload_of("high")));
}

/// Its pods never stop, so it keeps its quota; it is reported, and another victim is chosen.
#[test]
fn stuck_eviction_is_reported_and_shields_no_other_workload() {
    let mut stage = running("stuck", "low");
    stage.advance(1_000);
    start(&mut stage, "low", "mid");
    stage.api.create(JOB, job("high", "high")).unwrap();
    stage.advance(100_000);
    assert!(is_suspended(&stage, "stuck") && !is_suspended(&stage, "low"));
    assert_eq!(stage.stuck_evictions(), 0);
    stage.advance(30_000);
    assert!(has_quota(&stage, &stage.workload_of("stuck")));
    assert!(is_suspended(&stage, "low"), "the other victim");
    assert_eq!(stage.stuck_evictions(), 1);
    let conditions = stage.conditions("stuck");
    let is_report = |it: &String| {
        it.starts_with("EvictionStuck=True JobNotStopped: Quota not released within 120 s")
    };
    assert!(conditions.iter().any(is_report), "{conditions:?}");
    set_job_stopped(&mut stage, "low");
    stage.advance(5_000);
    assert!(has_quota(&stage, &stage.workload_of("high")));
    // It stops after all.
    set_job_stopped(&mut stage, "stuck");
    stage.advance(5_000);
    assert_eq!(stage.stuck_evictions(), 0);
    let conditions = stage.conditions("stuck");
    assert!(!conditions.iter().any(is_report), "{conditions:?}");
}

#[test]
fn workload_of_an_unknown_owner_releases_quota_on_eviction() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    let mut squat = workload("squat", "low");
    squat["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u", "controller": true,
    }]);
    stage.api.create(Kind::Workload, squat).unwrap();
    stage.settle();
    assert!(has_quota(&stage, "squat"));
    stage.api.create(JOB, job("high", "high")).unwrap();
    stage.advance(5_000);
    assert!(!has_quota(&stage, "squat"));
    assert!(has_quota(&stage, &stage.workload_of("high")));
}

fn workload(name: &str, class: &str) -> Value {
    let template = job(name, class)["spec"]["template"].clone();
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"queueName": "main", "priorityClassName": class,
            "podSets": [{"name": "main", "count": 2, "template": template}]},
    })
}

/// A child of a JobSet that is not in the watch yet is a Job like any other.
#[test]
fn job_that_arrives_before_its_job_set_is_left_to_it() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    let probe = json!({"metadata": {"name": "probe"}});
    stage.api.create(Kind::Namespace, probe).unwrap();
    let probe = stage.api.get(Kind::Namespace, &ObjectKey::new("", "probe"));
    // The API server of the simulation counts uids: the child gets the next one, and the JobSet that after it.
    let number: u64 = uid(probe.unwrap())
        .trim_start_matches("uid-")
        .parse()
        .unwrap();
    let set_uid = format!("uid-{}", number + 2);
    let mut child = job("s-w-0", "mid");
    child["spec"]["suspend"] = json!(false);
    let owner = fake_owner("JobSet", "s", &set_uid);
    child["metadata"]["ownerReferences"] = owner["metadata"]["ownerReferences"].clone();
    stage.api.create(JOB, child).unwrap();
    set_job_running(&mut stage, "s-w-0", 2);
    stage.settle();
    assert!(is_suspended(&stage, "s-w-0"));

    let template = job("s-w-0", "mid")["spec"].clone();
    let set = json!({
        "metadata": {"name": "s", "namespace": NAMESPACE, "labels": {"lockkeeper.dev/queue-name": "main"}},
        "spec": {"suspend": true, "replicatedJobs": [{
            "name": "w", "replicas": 1, "template": {"spec": template},
        }]},
    });
    stage.api.create(Kind::Job(1), set).unwrap();
    assert_eq!(uid(stage.get(Kind::Job(1), "s")), set_uid);
    stage.settle();
    assert_eq!(stage.get(Kind::Job(1), "s")["spec"]["suspend"], false);
    // Its controller resumes the child: the quota of the JobSet covers it.
    stage.change(JOB, "s-w-0", &json!({"spec": {"suspend": false}}));
    stage.advance(120_000);
    assert!(!is_suspended(&stage, "s-w-0"));
    assert_eq!(stage.api.all(Kind::Workload).count(), 1);
    // A further Job with the same owner reference is not covered.
    let mut other = job("s-w-1", "mid");
    other["spec"]["suspend"] = json!(false);
    other["metadata"]["ownerReferences"] = owner["metadata"]["ownerReferences"].clone();
    stage.api.create(JOB, other).unwrap();
    set_job_running(&mut stage, "s-w-1", 2);
    stage.settle();
    assert!(is_suspended(&stage, "s-w-1"));
}

/// A JobSet `s` with one Job, and that Job with the queue label, as the tenant of the JobSet may add it.
fn job_set_with_labelled_child(stage: &mut Fixture, class: &str) {
    let template = job("s-w-0", class)["spec"].clone();
    let labels =
        json!({"lockkeeper.dev/queue-name": "main", "lockkeeper.dev/priority-class": class});
    let set = json!({
        "metadata": {"name": "s", "namespace": NAMESPACE, "labels": labels},
        "spec": {"suspend": true, "replicatedJobs": [{
            "name": "w", "replicas": 1, "template": {"spec": template},
        }]},
    });
    stage.api.create(Kind::Job(1), set).unwrap();
    let set_uid = uid(stage.get(Kind::Job(1), "s")).to_owned();
    let mut child = job("s-w-0", class);
    let owner = fake_owner("JobSet", "s", &set_uid);
    child["metadata"]["ownerReferences"] = owner["metadata"]["ownerReferences"].clone();
    stage.api.create(JOB, child).unwrap();
    stage.settle();
}

/// The controller of JobSets cannot suspend a Job with broken labels, and a tenant can resume it.
#[test]
fn job_of_a_pending_job_set_does_not_run() {
    let mut stage = running("first", "mid");
    start(&mut stage, "second", "mid");
    job_set_with_labelled_child(&mut stage, "mid");
    assert_eq!(stage.get(Kind::Job(1), "s")["spec"]["suspend"], true);
    for _ in 0..2 {
        stage.change(JOB, "s-w-0", &json!({"spec": {"suspend": false}}));
        set_job_running(&mut stage, "s-w-0", 2);
        stage.advance(5_000);
        assert!(is_suspended(&stage, "s-w-0"));
    }
    // It has the quota of its JobSet only.
    assert_eq!(stage.api.all(Kind::Workload).count(), 3);
}

/// An annotation with other pod sets says nothing about the placement before the start: the job starts with that of its flavor.
#[test]
fn job_with_a_malformed_saved_placement_starts_on_its_flavor() {
    for saved in ["[]", "[{}, {}]", "{}", "no JSON"] {
        let mut stage = Fixture::new(RequeueSettings::default(), 4);
        let mut tricky = job("j", "mid");
        tricky["metadata"]["annotations"] = json!({"lockkeeper.dev/original-placement": saved});
        stage.api.create(JOB, tricky).unwrap();
        stage.settle();
        let started = stage.get(JOB, "j");
        assert_eq!(started["spec"]["suspend"], false, "{saved}");
        let selector = &started["spec"]["template"]["spec"]["nodeSelector"];
        assert_eq!(selector["kind"], "spot", "{saved}");
    }
}

/// A JobSet that has ended has no quota left.
#[test]
fn job_of_an_ended_job_set_does_not_run() {
    let mut stage = Fixture::new(RequeueSettings::default(), 4);
    job_set_with_labelled_child(&mut stage, "mid");
    assert_eq!(stage.get(Kind::Job(1), "s")["spec"]["suspend"], false);
    stage.change(JOB, "s-w-0", &json!({"spec": {"suspend": false}}));
    set_job_running(&mut stage, "s-w-0", 2);
    stage.advance(5_000);
    assert!(!is_suspended(&stage, "s-w-0"), "its JobSet runs");
    let completed = json!({"conditions": [{
        "type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }]});
    stage.status(Kind::Job(1), "s", &completed);
    stage.advance(5_000);
    set_job_running(&mut stage, "s-w-0", 2);
    stage.advance(5_000);
    assert!(is_suspended(&stage, "s-w-0"));
}

/// A preemptor and its victim in two namespaces learn the uid of each other, and no name.
#[test]
fn conditions_name_no_objects_of_other_namespaces() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    stage.api.create(JOB, job("victim", "low")).unwrap();
    stage.settle();
    set_job_running(&mut stage, "victim", 2);
    let namespace = json!({"metadata": {"name": "secret-team"}});
    stage.api.create(Kind::Namespace, namespace).unwrap();
    let mut queue = local_queue("main");
    queue["metadata"]["namespace"] = json!("secret-team");
    stage.api.create(Kind::LocalQueue, queue).unwrap();
    let mut other = workload("secret-work", "high");
    other["metadata"]["namespace"] = json!("secret-team");
    stage.api.create(Kind::Workload, other).unwrap();
    stage.advance(5_000);
    let name = ObjectKey::new("secret-team", "secret-work");
    let preemptor = stage.api.get(Kind::Workload, &name).unwrap().clone();
    let conditions = stage.conditions("victim").join("\n");
    assert!(!conditions.contains("secret-"), "{conditions}");
    assert!(
        conditions.contains(&format!("preemptor: {};", uid(&preemptor))),
        "{conditions}"
    );
    let victim = stage.workload_of("victim");
    let waits = text(&preemptor, "/status/conditions/0/message").to_owned();
    assert!(!waits.contains("victim"), "{waits}");
    let victim = uid(stage.get(Kind::Workload, &victim));
    assert!(waits.contains(victim), "{waits}");
    assert!(
        !stage.events.join("\n").contains("secret-"),
        "{:?}",
        stage.events
    );
}
