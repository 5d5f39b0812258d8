//! What a tenant may not do with the Jobs and JobSets of a queue.

use serde_json::{Value, json};

use super::{NAMESPACE, Tenant, patch_as};
use crate::cluster::CONTROLLER_ACCOUNT;
use crate::kubectl::KubectlOutput;

const QUEUE: &str = "lockkeeper.dev/queue-name";

/// `suspends_jobs` is whether new jobs of a queue are suspended: without the webhook mutating policies do it. `by_policies` is whether
/// the policies apply: they know the sender of a request.
pub fn running_jobs_are_protected(tenant: &Tenant, suspends_jobs: bool, by_policies: bool) {
    for kind in ["job", "jobset"] {
        if by_policies && suspends_jobs {
            only_the_controller_resumes(tenant, kind);
        }
        if by_policies && suspends_jobs && kind == "job" {
            running_jobs_do_not_grow(tenant);
        }
        changes_are_rejected(tenant, kind, suspends_jobs);
        label_is_not_added_to_running_jobs(tenant, kind);
        other_controllers_are_rejected(tenant, kind);
        if suspends_jobs {
            claimed_owners_exempt_nothing(tenant, kind, by_policies);
        }
    }
}

fn changes_are_rejected(tenant: &Tenant, kind: &str, suspends_jobs: bool) {
    tenant
        .create(&object(kind, "runs", true, &json!({})))
        .expect_accepted();
    assert_eq!(
        is_suspended(tenant, kind, "runs"),
        suspends_jobs,
        "a new {kind}"
    );
    resume(tenant, kind, "runs").expect_accepted();
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "u", "controller": true});
    let patches = [
        ("JO001", json!({"metadata": {"labels": {QUEUE: null}}})),
        ("JO001", json!({"metadata": {"labels": {QUEUE: "other"}}})),
        (
            "JO001",
            json!({"metadata": {"labels": {QUEUE: "other"}}, "spec": {"suspend": true}}),
        ),
        (
            "JO002",
            json!({"metadata": {"labels": {"lockkeeper.dev/priority-class": "high"}}}),
        ),
        (
            "JO002",
            json!({"metadata": {"labels": {"lockkeeper.dev/preemption-priority-class": "high"}}}),
        ),
        ("JO003", json!({"metadata": {"ownerReferences": [owner]}})),
    ];
    for (rule, patch) in &patches {
        expect_rule(tenant, kind, "runs", patch, rule);
    }
    // The fix in the messages.
    let suspend = json!({"spec": {"suspend": true}}).to_string();
    tenant.patch(kind, "runs", &suspend).expect_accepted();
    let relabel = json!({"metadata": {"labels": {QUEUE: "other"}}}).to_string();
    tenant.patch(kind, "runs", &relabel).expect_accepted();
    // The other way round: a label must not change while the job is resumed.
    let both = json!({"metadata": {"labels": {QUEUE: null}}, "spec": {"suspend": false}});
    let reply = patch_as_controller(tenant, kind, "runs", &both);
    assert!(reply.stderr.contains("[JO001]"), "{}", reply.stderr);
    tenant.run(&["delete", kind, "runs"]).expect_accepted();
}

/// Starts a job as the controller does.
#[track_caller]
fn resume(tenant: &Tenant, kind: &str, name: &str) -> KubectlOutput {
    patch_as_controller(tenant, kind, name, &json!({"spec": {"suspend": false}}))
}

fn patch_as_controller(tenant: &Tenant, kind: &str, name: &str, patch: &Value) -> KubectlOutput {
    patch_as(tenant.admin(), CONTROLLER_ACCOUNT, kind, name, patch)
}

/// A job that waits does not start before its quota is reserved, whatever else changes with the start. The controller of a job that has
/// created it may start it.
fn only_the_controller_resumes(tenant: &Tenant, kind: &str) {
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Parent", "name": "p", "uid": "u", "controller": true}]);
    for (name, owners) in [("waits", json!([])), ("child", owner)] {
        let mut job: Value =
            serde_json::from_str(&object(kind, name, true, &json!({"suspend": true}))).unwrap();
        job["metadata"]["ownerReferences"] = owners;
        tenant.create(&job.to_string()).expect_accepted();
    }
    for patch in [
        json!({"spec": {"suspend": false}}),
        json!({"spec": {"suspend": null}}),
        json!({"spec": {"suspend": false}, "metadata": {"labels": {"team": "a"}}}),
    ] {
        for name in ["waits", "child"] {
            let reply = tenant
                .patch(kind, name, &patch.to_string())
                .expect_rejected();
            let message = "only the controller may resume a job with a queue";
            assert!(reply.stderr.contains(message), "{patch}: {}", reply.stderr);
        }
    }
    let as_operator = |name: &str| {
        let account = "system:serviceaccount:operators:parent";
        let resume = json!({"spec": {"suspend": false}});
        patch_as(tenant.admin(), account, kind, name, &resume)
    };
    as_operator("waits").expect_rejected();
    as_operator("child").expect_accepted();
    resume(tenant, kind, "waits").expect_accepted();
    tenant
        .run(&["delete", kind, "waits", "child", "--ignore-not-found"])
        .expect_accepted();
}

/// More pods than were started have no quota; a Job that is stopped in the same change may have more.
fn running_jobs_do_not_grow(tenant: &Tenant) {
    let two = json!({"suspend": true, "parallelism": 2, "completions": 9});
    tenant
        .create(&object("job", "grows", true, &two))
        .expect_accepted();
    let parallelism = |count: u32| json!({"spec": {"parallelism": count}}).to_string();
    // It waits.
    tenant
        .patch("job", "grows", &parallelism(3))
        .expect_accepted();
    resume(tenant, "job", "grows").expect_accepted();
    let operator = "system:serviceaccount:operators:parent";
    let more = json!({"spec": {"parallelism": 4}});
    for reply in [
        tenant.patch("job", "grows", &parallelism(4)),
        patch_as(tenant.admin(), operator, "job", "grows", &more),
    ] {
        let stderr = reply.expect_rejected().stderr;
        let message = "spec.parallelism: a job with a queue gets no more pods while it runs";
        assert!(stderr.contains(message), "{stderr}");
    }
    for count in [3, 1] {
        tenant
            .patch("job", "grows", &parallelism(count))
            .expect_accepted();
    }
    patch_as_controller(tenant, "job", "grows", &more).expect_accepted();
    let stopped = json!({"spec": {"suspend": true, "parallelism": 9}}).to_string();
    tenant.patch("job", "grows", &stopped).expect_accepted();
    tenant.run(&["delete", "job", "grows"]).expect_accepted();
}

fn label_is_not_added_to_running_jobs(tenant: &Tenant, kind: &str) {
    tenant
        .create(&object(kind, "free", false, &json!({})))
        .expect_accepted();
    assert!(!is_suspended(tenant, kind, "free"));
    let add = json!({"metadata": {"labels": {QUEUE: "main"}}});
    let reply = expect_rule(tenant, kind, "free", &add, "JO001");
    assert!(reply.contains("set spec.suspend to true first"), "{reply}");
    tenant.run(&["delete", kind, "free"]).expect_accepted();
}

fn other_controllers_are_rejected(tenant: &Tenant, kind: &str) {
    let foreign = json!({"managedBy": "example.com/none"});
    let reply = tenant
        .create(&object(kind, "squatter", true, &foreign))
        .expect_rejected();
    assert!(reply.stderr.contains("[JO004]"), "{}", reply.stderr);
    // Without a queue it is no concern of lockkeeper's, until it gets one.
    let mut foreign = foreign;
    foreign["suspend"] = true.into();
    tenant
        .create(&object(kind, "squatter", false, &foreign))
        .expect_accepted();
    let add = json!({"metadata": {"labels": {QUEUE: "main"}}});
    expect_rule(tenant, kind, "squatter", &add, "JO004");
    tenant.run(&["delete", kind, "squatter"]).expect_accepted();
}

/// Owners that do not exist, and owners of kinds that are not installed.
fn claimed_owners_exempt_nothing(tenant: &Tenant, kind: &str, by_policies: bool) {
    for (api_version, owner) in [
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("example.com/v1", "Unknown"),
    ] {
        let mut job: Value =
            serde_json::from_str(&object(kind, "owned", true, &json!({}))).unwrap();
        job["metadata"]["ownerReferences"] = json!([{
            "apiVersion": api_version, "kind": owner, "name": "none", "controller": true,
            "uid": "00000000-0000-0000-0000-000000000001",
        }]);
        // The garbage collector may delete a stored object before it is read.
        let flags = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let reply = tenant.with_input(&flags, &job.to_string());
        if by_policies && kind == "job" && owner == "JobSet" {
            // JobSet's controller resumes each Job that names a JobSet.
            let reply = reply.expect_rejected();
            assert!(
                reply.stderr.contains("may create a Job of a JobSet"),
                "{}",
                reply.stderr
            );
            continue;
        }
        let reply = reply.expect_accepted();
        let created: Value = serde_json::from_str(&reply.stdout).unwrap();
        assert_eq!(
            created["spec"]["suspend"], true,
            "{owner}: {}",
            reply.stdout
        );
    }
}

/// Patches an object and expects that the rule rejects it. Returns the message.
#[track_caller]
fn expect_rule(tenant: &Tenant, kind: &str, name: &str, patch: &Value, rule: &str) -> String {
    let reply = tenant
        .patch(kind, name, &patch.to_string())
        .expect_rejected();
    assert!(
        reply.stderr.contains(&format!("[{rule}]")),
        "{kind} {patch}: {}",
        reply.stderr
    );
    reply.stderr
}

#[track_caller]
fn is_suspended(tenant: &Tenant, kind: &str, name: &str) -> bool {
    let object = tenant.admin().get(&[kind, name, "--namespace", NAMESPACE]);
    object["spec"]["suspend"] == true
}

/// A Job or JobSet, with the queue label or without, and with these additional fields in its specification.
pub fn object(kind: &str, name: &str, is_queued: bool, spec: &Value) -> String {
    let container = json!({"name": "a", "image": "registry.example.com/a:1"});
    let pods = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    let mut object = if kind == "job" {
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": pods})
    } else {
        let jobs = json!([{"name": "main", "replicas": 1, "template": {"spec": pods}}]);
        json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}})
    };
    object["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    if is_queued {
        object["metadata"]["labels"] = json!({QUEUE: "main"});
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object.to_string()
}
