//! A tenant with rights on Jobs alone tries to run pods without quota, and to keep quota that others need. There are no
//! admission policies and no webhook: the controller alone repairs the cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Trial;
use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION};
use super::quota_use::{holds_quota, pod_cpu, queue_and_cpu};
use super::render;
use crate::fixture::Fixture;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::objects::merge;
use crate::wait;

pub const TRIALS: [Trial; 10] = [
    ("a foreign managedBy gets no quota", foreign_manager),
    (
        "a removed label keeps the quota until the pods are gone",
        label_removed,
    ),
    ("a changed label requeues the Job", label_changed),
    (
        "an owner added to a running Job releases nothing",
        owner_added,
    ),
    (
        "a JobSet that is not managed exempts nothing",
        unmanaged_job_set,
    ),
    (
        "a Job owned by a Job is suspended again and again",
        owned_by_job,
    ),
    ("a Workload of an unknown owner is evicted", unknown_owner),
    (
        "a Workload without its owner reference lets no Job grow",
        detached_workload,
    ),
    (
        "a Job without label and reference is found after a restart",
        detached_while_down,
    ),
    ("orphaned pods keep their quota", orphaned_job),
];

/// Short bounds, so that a trial need not wait for minutes.
const BOUNDS: &str = "controller: {jobResponseSeconds: 3, stuckEvictionSeconds: 5}\n";

const TENANT: &str = "--as=tenant1";

/// Two queues of 8 cpu in one cohort, and a tenant who may create, change and delete Jobs.
#[track_caller]
fn open(stage: &mut Fixture) -> (ControllerFixture<'_>, Kubectl) {
    let site = ControllerFixture::open_without_webhook(stage, BOUNDS);
    site.flavor("default");
    site.classes();
    let more = json!({
        "cohortName": "lab",
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    });
    site.queue("qa", 8, &more);
    site.queue("qb", 8, &more);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "tenant", "namespace": "default"},
        "rules": [{"apiGroups": ["batch"], "resources": ["jobs"],
            "verbs": ["create", "get", "list", "patch", "delete"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "tenant", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant1"}],
    });
    let kubectl = site.stage.cluster().kubectl().clone();
    for object in [role, binding] {
        kubectl.apply(&object.to_string(), &[]).expect_accepted();
    }
    (site, kubectl)
}

/// Runs kubectl as the tenant.
#[track_caller]
fn as_tenant(kubectl: &Kubectl, arguments: &[&str]) -> KubectlOutput {
    let mut all = arguments.to_vec();
    all.push(TENANT);
    kubectl.run(&all).expect_accepted()
}

#[track_caller]
fn patch(kubectl: &Kubectl, job: &str, change: &Value) {
    let change = change.to_string();
    as_tenant(
        kubectl,
        &["patch", "job", job, "--type=merge", "-p", &change],
    );
}

/// Creates a Job of `pods` pods of one cpu as the tenant.
#[track_caller]
fn submit(kubectl: &Kubectl, name: &str, queue: &str, pods: u32, more: &Value) {
    let mut job = fixture::job(name, queue, 1, "low", &json!({}));
    merge(
        &mut job,
        &json!({"spec": {"parallelism": pods, "completions": pods}}),
    );
    merge(&mut job, more);
    let arguments = ["create", "-f", "-", TENANT];
    kubectl
        .with_input(&arguments, &job.to_string())
        .expect_accepted();
}

/// The cpus of all pods that run, and of the quota that all Workloads hold. Workloads are listed before and after the
/// pods, because one may start or stop in between.
fn pods_and_quota(site: &ControllerFixture<'_>) -> (u64, u64) {
    let mut workloads = site.objects.list("Workload");
    let pods = site.objects.list("Pod");
    workloads.extend(site.objects.list("Workload"));
    let held = workloads
        .iter()
        .filter(|it| holds_quota(it))
        .map(|it| (it["metadata"]["uid"].to_string(), queue_and_cpu(it).1));
    let held: BTreeMap<String, u64> = held.collect();
    (pods.iter().map(pod_cpu).sum(), held.values().sum())
}

/// Waits until `holds`; until then the pods never use more than the quota that is held.
#[track_caller]
fn wait_within_quota(site: &ControllerFixture<'_>, what: &str, holds: impl Fn() -> bool) {
    let found = wait::until(
        || {
            let (pods, held) = pods_and_quota(site);
            if pods > held {
                return Err(format!("{pods} cpus of pods run on {held} of quota"));
            }
            Ok(holds().then_some(()))
        },
        || format!("{what} does not happen"),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn is_suspended(site: &ControllerFixture<'_>, job: &str) -> bool {
    site.objects.get("Job", job)["spec"]["suspend"] == true
}

fn foreign_manager(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    let squat = json!({"spec": {"managedBy": "example.com/none"}});
    submit(&kubectl, "squat", "qa", 16, &squat);
    let workload = site.wait_until_pending("squat", "ManagedExternally");
    let message = render::message(&workload, "QuotaReserved");
    assert!(message.contains("example.com/none"), "{message}");
    // The owner of the quota, and both priorities in the queue of the squatter, are not affected.
    submit(&kubectl, "owner", "qb", 8, &json!({}));
    site.wait_until_running("owner");
    submit(&kubectl, "low", "qa", 8, &json!({}));
    site.wait_until_running("low");
    let high = json!({"metadata": {"labels": {"lockkeeper.dev/priority-class": "high"}}});
    submit(&kubectl, "high", "qa", 8, &high);
    site.wait_until_running("high");
    site.wait_until_stopped("low");
    site.stop();
}

fn label_removed(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "runs", "qa", 8, &json!({}));
    site.wait_until_running("runs");
    let workload = site.workload_name("runs");
    submit(&kubectl, "fills", "qb", 8, &json!({}));
    site.wait_until_running("fills");
    as_tenant(
        &kubectl,
        &["label", "job", "runs", "lockkeeper.dev/queue-name-"],
    );
    submit(&kubectl, "second", "qa", 8, &json!({}));
    wait_within_quota(&site, "the stop", || is_suspended(&site, "runs"));
    wait_within_quota(&site, "the start of the next Job", || {
        !is_suspended(&site, "second")
    });
    assert!(site.objects.find("Workload", &workload).is_none());
    assert_eq!(site.pods("runs").len(), 0);
    site.stop();
}

fn label_changed(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "runs", "qa", 2, &json!({}));
    site.wait_until_running("runs");
    patch(
        &kubectl,
        "runs",
        &json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "qb"}}}),
    );
    wait_within_quota(&site, "the move", || {
        let name = site.workload_name("runs");
        let workload = site.objects.get("Workload", &name);
        workload["status"]["admission"]["clusterQueue"] == "qb"
    });
    site.wait_until_running("runs");
    site.stop();
}

/// A controller reference to another object with this uid.
fn owned_by(version: &str, kind: &str, name: &str, uid: &Value) -> Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true,
    }]}})
}

fn owner_added(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "runs", "qa", 8, &json!({}));
    site.wait_until_running("runs");
    submit(&kubectl, "anchor", "qa", 16, &json!({}));
    site.wait_until_pending("anchor", "WaitingForQuota");
    let uid = site.objects.get("Job", "anchor")["metadata"]["uid"].clone();
    patch(
        &kubectl,
        "runs",
        &owned_by("batch/v1", "Job", "anchor", &uid),
    );
    // The queue has handled the change once a later Job waits for its quota.
    submit(&kubectl, "second", "qa", 9, &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    wait_within_quota(&site, "the count", || {
        let (_, held) = pods_and_quota(&site);
        held == 8
    });
    site.stop();
}

/// The JobSet exists, so that the garbage collector keeps the Job, but the controller does not manage it.
fn unmanaged_job_set(stage: &mut Fixture) {
    stage.without_webhook();
    stage.cluster_mut().install_jobset();
    let (mut site, kubectl) = open(stage);
    let set = site.objects.create(&json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "anchor", "namespace": "default"},
        "spec": {"replicatedJobs": []},
    }));
    let uid = &set["metadata"]["uid"];
    let mut more = owned_by("jobset.x-k8s.io/v1alpha2", "JobSet", "anchor", uid);
    merge(&mut more, &json!({"spec": {"suspend": false}}));
    submit(&kubectl, "fake", "nowhere", 8, &more);
    site.objects
        .wait_until("Job", "fake", |it| it["spec"]["suspend"] == true);
    site.wait_until_no_pods("fake");
    site.wait_until_pending("fake", "Inadmissible");
    site.stop();
}

fn owned_by_job(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "anchor", "nowhere", 1, &json!({}));
    let uid = site.objects.get("Job", "anchor")["metadata"]["uid"].clone();
    let more = owned_by("batch/v1", "Job", "anchor", &uid);
    submit(&kubectl, "fake", "nowhere", 8, &more);
    site.wait_until_pending("fake", "Inadmissible");
    for _ in 0..2 {
        patch(&kubectl, "fake", &json!({"spec": {"suspend": false}}));
        site.objects
            .wait_until("Job", "fake", |it| it["spec"]["suspend"] == true);
        site.wait_until_no_pods("fake");
    }
    site.stop();
}

/// The tenant may also create Workloads here.
fn unknown_owner(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    let template = fixture::job("x", "qa", 1, "", &json!({}))["spec"]["template"].clone();
    let mut squat = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": "squat", "namespace": "default"},
        "spec": {"queueName": "qa", "podSets": [{"count": 16, "template": template}]},
    });
    let owner = owned_by("example.com/v1", "Anything", "cm", &json!("invented"));
    merge(&mut squat, &owner);
    site.objects.create(&squat);
    site.objects.wait_until("Workload", "squat", |it| {
        render::has_status(it, "QuotaReserved", "True")
    });
    submit(&kubectl, "owner", "qb", 8, &json!({}));
    site.wait_until_running("owner");
    site.stop();
}

/// The tenant may also change Workloads here.
fn detached_workload(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "runs", "qa", 1, &json!({}));
    site.wait_until_running("runs");
    let name = site.workload_name("runs");
    let before = site.objects.get("Workload", &name)["metadata"]["uid"].clone();
    // The held queue admits no second Workload, so the Job stays suspended until the tenant has acted.
    let stop = |policy: &str| {
        let stop = json!({"spec": {"stopPolicy": policy}});
        site.objects.patch("ClusterQueue", "qa", &stop);
    };
    stop("Hold");
    site.objects.patch(
        "Workload",
        &name,
        &json!({"metadata": {"ownerReferences": null}}),
    );
    site.objects
        .wait_until("Job", "runs", |it| it["spec"]["suspend"] == true);
    patch(&kubectl, "runs", &json!({"spec": {"parallelism": 50}}));
    stop("None");
    wait_within_quota(&site, "another workload", || {
        let workload = site.objects.find("Workload", &name).unwrap_or_default();
        workload["metadata"]["uid"].is_string() && workload["metadata"]["uid"] != before
    });
    site.stop();
}

fn detached_while_down(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    // The name of a workload has the whole name of the first Job, and a part of that of the second.
    let long = format!("runs-{}", "long".repeat(12));
    let jobs = ["runs", &long];
    for job in jobs {
        submit(&kubectl, job, "qa", 2, &json!({}));
        site.wait_until_running(job);
    }
    let workloads = jobs.map(|job| site.workload_name(job));
    site.stop();
    for (job, workload) in jobs.iter().zip(&workloads) {
        let unlabelled = json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": null}}});
        patch(&kubectl, job, &unlabelled);
        let detached = json!({"metadata": {"ownerReferences": null}});
        site.objects.patch("Workload", workload, &detached);
    }
    site.start_controller(BOUNDS, &[NO_LEADER_ELECTION]);
    wait_within_quota(&site, "the release", || {
        workloads
            .iter()
            .all(|it| site.objects.find("Workload", it).is_none())
    });
    for job in jobs {
        assert!(is_suspended(&site, job), "{job}");
    }
    site.stop();
}

fn orphaned_job(stage: &mut Fixture) {
    let (mut site, kubectl) = open(stage);
    submit(&kubectl, "runs", "qa", 8, &json!({}));
    site.wait_until_running("runs");
    submit(&kubectl, "fills", "qb", 8, &json!({}));
    site.wait_until_running("fills");
    let workload = site.workload_name("runs");
    as_tenant(&kubectl, &["delete", "job", "runs", "--cascade=orphan"]);
    // Another Job of a higher priority needs the quota: the pods cannot be stopped, which is reported.
    let high = json!({"metadata": {"labels": {"lockkeeper.dev/priority-class": "high"}}});
    submit(&kubectl, "second", "qa", 8, &high);
    site.objects.wait_until("Workload", &workload, |it| {
        render::has_status(it, "EvictionStuck", "True")
    });
    let (pods, held) = pods_and_quota(&site);
    assert!(pods <= held && held >= 8, "{pods} of {held}");
    let controller = site.controller.as_ref().unwrap();
    assert_eq!(controller.metric("stuck_evictions"), Some(1));
    site.annotate_pods("runs", &json!({"test.lockkeeper.dev/run-for": "0s"}));
    wait_within_quota(&site, "the release", || {
        site.objects.find("Workload", &workload).is_none()
    });
    site.wait_until_running("second");
    site.stop();
}
