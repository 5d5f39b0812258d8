//! Fields that the controller writes, and fields of flavors that reach the pods. `docs/fields.md` names these tests.

use crate::fields::{number, text};
use crate::fixture::Fixture;
use crate::job_lifecycle::{job, set_job_running, set_job_stopped};
use crate::jobs::JOB;
use crate::objects;
use lockkeeper_controller::{Kind, ObjectKey};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Algorithm, FairStrategy};
use serde_json::{Value, json};
use std::time::Duration;

fn cluster_object<'a>(stage: &'a Fixture, kind: Kind, name: &str) -> &'a Value {
    let name = ObjectKey::new("", name);
    stage.api.get(kind, &name).unwrap()
}

fn change_spec(stage: &mut Fixture, kind: Kind, name: &str, spec: &Value) {
    let name = ObjectKey::new("", name);
    let patch = json!({"spec": spec});
    stage.api.patch(kind, &name, &patch, false).unwrap();
}

/// The queue `main` of 2 cpus borrows 2 more from the cohort `all` through its cohort `team`; 8 can be borrowed.
#[test]
fn weighted_share_of_borrowing_queue_is_written() {
    let mut stage = Fixture::with_settings(RequeueSettings::default(), 2, |settings| {
        let strategies = vec![FairStrategy::LessThanOrEqualToFinalShare];
        settings.options.algorithm = Algorithm::FairSharing(strategies);
    });
    let flavor = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "8"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    for (name, spec) in [
        ("all", json!({"resourceGroups": groups})),
        ("team", json!({"parentName": "all"})),
    ] {
        let cohort = json!({"metadata": {"name": name}, "spec": spec});
        stage.api.create(Kind::Cohort, cohort).unwrap();
    }
    let cohort = json!({"cohortName": "team"});
    change_spec(&mut stage, Kind::ClusterQueue, "main", &cohort);
    stage.api.create(JOB, job("first", "mid")).unwrap();
    stage.advance(5_000);
    let share = |stage: &Fixture, kind, name: &str| {
        let object = cluster_object(stage, kind, name);
        number(object, "/status/fairSharing/weightedShare")
    };
    assert_eq!(share(&stage, Kind::ClusterQueue, "main"), 0);
    stage.api.create(JOB, job("second", "mid")).unwrap();
    stage.advance(5_000);
    assert_eq!(stage.quota_usage(), ["main spot cpu 4 of 2"]);
    assert_eq!(share(&stage, Kind::ClusterQueue, "main"), 200);
    assert_eq!(share(&stage, Kind::Cohort, "team"), 200);
    // Twice the weight halves the share.
    let weight = json!({"fairSharing": {"weight": "2"}});
    change_spec(&mut stage, Kind::ClusterQueue, "main", &weight);
    change_spec(&mut stage, Kind::Cohort, "team", &weight);
    stage.advance(5_000);
    assert_eq!(share(&stage, Kind::ClusterQueue, "main"), 100);
    assert_eq!(share(&stage, Kind::Cohort, "team"), 100);
}

#[test]
fn observed_generation_follows_the_spec() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    let cohort = json!({"metadata": {"name": "all"}, "spec": {}});
    stage.api.create(Kind::Cohort, cohort).unwrap();
    stage.advance(5_000);
    let local = ObjectKey::new(objects::NAMESPACE, "main");
    for generation in 1..=2 {
        let written = [
            cluster_object(&stage, Kind::ClusterQueue, "main"),
            cluster_object(&stage, Kind::Cohort, "all"),
            stage.api.get(Kind::LocalQueue, &local).unwrap(),
        ];
        for object in written {
            assert_eq!(number(object, "/metadata/generation"), generation);
            assert_eq!(number(object, "/status/observedGeneration"), generation);
            let condition = "/status/conditions/0/observedGeneration";
            assert_eq!(number(object, condition), generation, "{object}");
        }
        let stop = json!({"stopPolicy": "Hold"});
        change_spec(&mut stage, Kind::ClusterQueue, "main", &stop);
        let top = json!({"parentName": "top"});
        change_spec(&mut stage, Kind::Cohort, "all", &top);
        stage.change(Kind::LocalQueue, "main", &json!({"spec": stop}));
        stage.advance(5_000);
    }
}

/// The time limit of requeuing counts from the first eviction, which is stored in the status.
#[test]
fn first_eviction_time_is_stored_and_limits_requeuing() {
    let mut requeue = RequeueSettings {
        is_enabled: true,
        timeout: Duration::from_secs(10),
        backoff_limit: Some(Duration::from_mins(1)),
        ..RequeueSettings::default()
    };
    requeue.backoff.base = Duration::from_secs(1);
    let mut stage = Fixture::new(requeue, 2);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.settle();
    let workload = stage.workload_of("j");
    set_job_running(&mut stage, "j", 1);
    stage.advance(11_000);
    let first = "/status/requeueState/firstEvictedAt";
    let evicted_at = text(stage.get(Kind::Workload, &workload), first).to_owned();
    assert_ne!(evicted_at, "");
    let mut rounds = 0;
    while stage.get(Kind::Workload, &workload)["spec"]["active"] != false {
        let now = text(stage.get(Kind::Workload, &workload), first);
        assert_eq!(now, evicted_at);
        set_job_stopped(&mut stage, "j");
        stage.advance(5_000);
        set_job_running(&mut stage, "j", 1);
        stage.advance(11_000);
        rounds += 1;
        assert!(rounds < 10, "the limit has no effect");
    }
    assert!(rounds > 1, "{rounds}");
}

#[test]
fn tolerations_of_flavor_are_added_to_the_job_as_written() {
    let mut stage = Fixture::new(RequeueSettings::default(), 2);
    let toleration = json!({
        "key": "spot", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 30,
    });
    let taint = json!({"key": "spot", "value": "yes", "effect": "NoExecute"});
    let spec = json!({"nodeTaints": [taint], "tolerations": [toleration]});
    change_spec(&mut stage, Kind::ResourceFlavor, "spot", &spec);
    stage.api.create(JOB, job("j", "mid")).unwrap();
    stage.advance(5_000);
    let pod = &stage.get(JOB, "j")["spec"]["template"]["spec"];
    assert_eq!(pod["tolerations"], json!([toleration]));
    assert_eq!(pod["nodeSelector"]["kind"], "spot");
}

/// `Hold` admits no further workload, and `HoldAndDrain` evicts the admitted ones too.
#[test]
fn stop_policy_of_either_queue_holds_or_drains_workloads() {
    for kind in [Kind::ClusterQueue, Kind::LocalQueue] {
        let mut stage = Fixture::new(RequeueSettings::default(), 4);
        let set_policy = |stage: &mut Fixture, policy: &str| {
            let spec = json!({"stopPolicy": policy});
            match kind {
                Kind::ClusterQueue => change_spec(stage, kind, "main", &spec),
                _ => stage.change(kind, "main", &json!({"spec": spec})),
            }
            stage.advance(5_000);
        };
        stage.api.create(JOB, job("runs", "mid")).unwrap();
        stage.settle();
        set_job_running(&mut stage, "runs", 2);
        stage.settle();
        set_policy(&mut stage, "Hold");
        stage.api.create(JOB, job("waits", "mid")).unwrap();
        stage.advance(5_000);
        let is_suspended = |stage: &Fixture, name| stage.get(JOB, name)["spec"]["suspend"] == true;
        assert!(!is_suspended(&stage, "runs") && is_suspended(&stage, "waits"));
        set_policy(&mut stage, "HoldAndDrain");
        assert!(is_suspended(&stage, "runs"));
        set_job_stopped(&mut stage, "runs");
        stage.advance(5_000);
        assert!(is_suspended(&stage, "runs"));
        set_policy(&mut stage, "None");
        assert!(!is_suspended(&stage, "runs") && !is_suspended(&stage, "waits"));
    }
}
