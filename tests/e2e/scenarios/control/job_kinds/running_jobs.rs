//! The policies of the shipped declarations, on the projects' own definitions: what a user may change while a job runs.

use super::policies::{OPERATOR, emitted_for};
use super::shipped::Shipped;
use super::training_run::apply;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::scenarios::control::fixture::ControllerFixture;
use crate::wait;
use serde_json::{Value, json};

/// Installs the policies of an example; returns them. `job` is one of its kind.
#[track_caller]
pub(super) fn install_policies(
    site: &mut ControllerFixture<'_>,
    example: &str,
    job: &Value,
) -> String {
    let emitted = emitted_for(example, &[]);
    apply(site, &emitted);
    let kubectl = site.stage.cluster().kubectl();
    // Mutating policies know a new kind a moment later.
    let is_known = wait::until(
        || {
            let reply = write_as(kubectl, "create", "tenant", job, &["--dry-run=server"]);
            Ok((!reply.stderr.contains("There can be a delay")).then_some(()))
        },
        || "the policies do not know the kind".to_owned(),
    );
    is_known.unwrap_or_else(|e| panic!("{e}"));
    emitted
}

/// The job `train` gets no more and no other pods while it runs.
#[track_caller]
pub(super) fn keeps_its_pods(site: &mut ControllerFixture<'_>, of: &Shipped) {
    let job = site.objects.get(of.kind, "train");
    let kubectl = site.stage.cluster().kubectl();
    let replace = |pointer: &str, value: Value| {
        let mut changed = job.clone();
        changed["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("resourceVersion");
        *changed.pointer_mut(pointer).unwrap() = value;
        replace_as(kubectl, "tenant", &changed)
    };
    let replicas = job.pointer(of.replicas).and_then(Value::as_i64).unwrap();
    let message = "a job with a queue gets no other and no more pods while it is not suspended";
    // The policy is in effect a moment after it is created.
    let is_rejected = wait::until(
        || {
            let reply = replace(of.replicas, json!(replicas + 1));
            Ok(reply.stderr.contains(message).then_some(()))
        },
        || format!("{}: more pods are accepted", of.kind),
    );
    is_rejected.unwrap_or_else(|e| panic!("{e}"));
    for selector in of.selectors {
        let stderr = replace(selector, json!({"pool": "other"}))
            .expect_rejected()
            .stderr;
        assert!(stderr.contains(message), "{selector}: {stderr}");
    }
    replace(of.replicas, json!(replicas - 1)).expect_accepted();
    let orphan = [
        "delete",
        of.resource,
        "train",
        "--cascade=orphan",
        "--dry-run=server",
    ];
    let stderr = kubectl.run(&orphan).expect_rejected().stderr;
    assert!(stderr.contains("cannot be orphaned"), "{stderr}");
    pods_keep_labels(kubectl, of);
    if of.kind == "RayJob" {
        children_are_kept(kubectl, &job);
    }
}

/// A dry run of a change by this user.
fn replace_as(kubectl: &Kubectl, account: &str, object: &Value) -> KubectlOutput {
    write_as(kubectl, "replace", account, object, &["--dry-run=server"])
}

fn write_as(
    kubectl: &Kubectl,
    verb: &str,
    account: &str,
    object: &Value,
    flags: &[&str],
) -> KubectlOutput {
    let arguments = [
        verb,
        "-f",
        "-",
        "--as",
        account,
        "--as-group=system:masters",
    ];
    kubectl.with_input(&[&arguments[..], flags].concat(), &object.to_string())
}

#[track_caller]
fn pods_keep_labels(kubectl: &Kubectl, of: &Shipped) {
    let group = of.resource.split_once('.').unwrap().1;
    let label = format!("{group}/part");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "part", "namespace": "default", "labels": {&label: "a"}},
        "spec": {"containers": [{"name": "a", "image": "registry.example.com/a:1"}]}});
    write_as(kubectl, "create", OPERATOR, &pod, &[]).expect_accepted();
    let change = json!({"metadata": {"labels": {&label: null}}}).to_string();
    let patch = |account: &str| {
        let patch = ["patch", "pod", "part", "--type=merge", "-p", &change];
        let user = [
            "--dry-run=server",
            "--as",
            account,
            "--as-group=system:masters",
        ];
        kubectl.run(&[&patch[..], &user].concat())
    };
    let stderr = patch("tenant").expect_rejected().stderr;
    let message = format!("metadata.labels: only the controller of {} may", of.kind);
    assert!(stderr.contains(&message), "{stderr}");
    patch(OPERATOR).expect_accepted();
    kubectl
        .run(&["delete", "pod", "part", "--grace-period=0", "--force"])
        .expect_accepted();
}

/// The `RayCluster` of a `RayJob` is created, changed and orphaned by `KubeRay` only.
#[track_caller]
fn children_are_kept(kubectl: &Kubectl, parent: &Value) {
    let metadata = &parent["metadata"];
    let mut child = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "spec": parent["spec"]["rayClusterSpec"],
        "metadata": {"name": "child", "namespace": "default", "ownerReferences": [{
            "apiVersion": "ray.io/v1", "kind": "RayJob", "name": metadata["name"], "uid": metadata["uid"],
            "controller": true}]}});
    let stderr = write_as(kubectl, "create", "tenant", &child, &[])
        .expect_rejected()
        .stderr;
    let message = "only the controller of RayJob may create the children of its jobs";
    assert!(stderr.contains(message), "{stderr}");
    write_as(kubectl, "create", OPERATOR, &child, &[]).expect_accepted();
    child["spec"]["workerGroupSpecs"][0]["replicas"] = json!(3);
    let stderr = replace_as(kubectl, "tenant", &child)
        .expect_rejected()
        .stderr;
    let message = "spec: only the controller of RayJob may change the children of its jobs";
    assert!(stderr.contains(message), "{stderr}");
    replace_as(kubectl, OPERATOR, &child).expect_accepted();
    let delete = |cascade: &str| kubectl.run(&["delete", "rayclusters.ray.io", "child", cascade]);
    let stderr = delete("--cascade=orphan").expect_rejected().stderr;
    assert!(stderr.contains("cannot be orphaned"), "{stderr}");
    delete("--cascade=background").expect_accepted();
}
