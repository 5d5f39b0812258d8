//! What a tenant may not do with the pods of a queue, without the webhook.

use serde_json::{Value, json};

use super::policies::with_policies;
use super::{NAMESPACE, Tenant, patch_as};
use crate::cluster::CONTROLLER_ACCOUNT;
use crate::fixture::Fixture;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Protocol};
use crate::programs::has_mutating_policies;
use crate::wait;

const QUEUE: &str = "lockkeeper.dev/queue-name";
const GATE: &str = "lockkeeper.dev/admission";

/// A pod without a queue does not get one, or a group, while it runs.
#[track_caller]
fn running_pods_get_no_queue(tenant: &Tenant, of_group: Value) {
    tenant
        .create(&pod("free", false, &json!({})))
        .expect_accepted();
    let label = json!({"metadata": {"labels": {QUEUE: "main"}}});
    for change in [label, of_group] {
        let reply = tenant.patch("pod", "free", &change.to_string());
        let message = "field is immutable once the pod may run";
        assert!(reply.stderr.contains(message), "{}", reply.stderr);
    }
}

/// A pod waits with the gate, which only the controller removes, and its labels do not change after that.
pub fn pods_are_guarded(stage: &mut Fixture, _: Protocol) {
    let policies = lockkeeper::output(&["crds", "policies"]);
    with_policies(stage, &policies, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        wait_for_gate(&tenant);
        let other_gate = json!({"spec": {"schedulingGates": [{"name": "example.com/other"}]}});
        tenant
            .create(&pod("waits", true, &other_gate))
            .expect_accepted();
        assert_eq!(gates(&tenant, "waits"), ["example.com/other", GATE]);
        let expect = |patch: &Value, message: &str| {
            let reply = tenant.patch("pod", "waits", &patch.to_string());
            assert_eq!(reply.code, Some(1), "{patch}: {}", reply.stdout);
            assert!(reply.stderr.contains(message), "{patch}: {}", reply.stderr);
        };
        let ungate = json!({"spec": {"schedulingGates": [{"name": "example.com/other"}]}});
        expect(&ungate, "only the controller may remove the gate");
        let without_label =
            json!({"metadata": {"labels": {QUEUE: null}}, "spec": {"schedulingGates": null}});
        expect(&without_label, "only the controller may remove the gate");
        // While it waits, its queue may change.
        let relabel = json!({"metadata": {"labels": {QUEUE: "other"}}});
        tenant
            .patch("pod", "waits", &relabel.to_string())
            .expect_accepted();
        admit(kubectl, "waits");
        assert!(gates(&tenant, "waits").is_empty());
        for metadata in [
            json!({"labels": {QUEUE: null}}),
            json!({"labels": {QUEUE: "main"}}),
            json!({"labels": {"lockkeeper.dev/priority-class": "high"}}),
            json!({"labels": {"lockkeeper.dev/preemption-priority-class": "high"}}),
            json!({"labels": {"lockkeeper.dev/pod-group-name": "train"}}),
            json!({"annotations": {"lockkeeper.dev/pod-group-total-count": "2"}}),
            json!({"annotations": {"lockkeeper.dev/pod-set": "pods-00000000"}}),
            json!({"labels": {"lockkeeper.dev/job-uid": "0123456789abcdef"}}),
            json!({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "train"}}),
            json!({"annotations": {"gang.scheduling.koordinator.sh/name": "train"}}),
            json!({"labels": {"leaderworkerset.sigs.k8s.io/name": "train"}}),
            json!({"labels": {"leaderworkerset.sigs.k8s.io/group-index": "0"}}),
        ] {
            expect(
                &json!({"metadata": metadata}),
                "field is immutable once the pod may run",
            );
        }
        // A pod that names its node has no gates.
        let reply = tenant.create(&pod("bound", true, &json!({"spec": {"nodeName": "n"}})));
        assert_eq!(reply.code, Some(1), "{}", reply.stdout);
        // Only the controller sets the uid of the group of a pod.
        let of_group =
            json!({"metadata": {"labels": {"lockkeeper.dev/job-uid": "0123456789abcdef"}}});
        for has_queue in [true, false] {
            let reply = tenant.create(&pod("forged", has_queue, &of_group));
            assert_eq!(reply.code, Some(1), "{}", reply.stdout);
            let message = "only the controller sets the label";
            assert!(reply.stderr.contains(message), "{}", reply.stderr);
        }
        running_pods_get_no_queue(&tenant, of_group);
        tenant
            .run(&[
                "delete",
                "pod",
                "waits",
                "free",
                "--grace-period=0",
                "--force",
            ])
            .expect_accepted();
    });
}

/// Pods in a selected namespace need a queue, except those that the controller of Jobs creates for a Job.
pub fn queue_is_required(stage: &mut Fixture, _: Protocol) {
    let selector = format!("kubernetes.io/metadata.name={NAMESPACE}");
    let policies = lockkeeper::output(&["crds", "policies", "--queue-required", &selector]);
    with_policies(stage, &policies, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        if has_mutating_policies() {
            wait_for_gate(&tenant);
        }
        let dry_run = ["create", "--dry-run=server", "-f", "-"];
        let is_rejected = || {
            let reply = tenant.with_input(&dry_run, &pod("free", false, &json!({})));
            Ok(reply.stderr.contains("need a queue").then_some(()))
        };
        wait::until(is_rejected, || "the policy has no effect".to_owned()).unwrap();
        // Without mutating policies it has no gate here.
        let gate = json!({"spec": {"schedulingGates": [{"name": GATE}]}});
        let gate = if has_mutating_policies() {
            json!({})
        } else {
            gate
        };
        tenant
            .with_input(&dry_run, &pod("queued", true, &gate))
            .expect_accepted();
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true});
        let of_job = pod(
            "of-job",
            false,
            &json!({"metadata": {"ownerReferences": [owner]}}),
        );
        // A claimed owner exempts nothing: the sender does.
        let reply = tenant.with_input(&dry_run, &of_job);
        assert!(reply.stderr.contains("need a queue"), "{}", reply.stderr);
        for account in [
            "--as=system:serviceaccount:kube-system:job-controller",
            "--as=system:kube-controller-manager",
        ] {
            let arguments = [&[account, "--as-group=system:masters"][..], &dry_run].concat();
            kubectl.with_input(&arguments, &of_job).expect_accepted();
            let reply = kubectl.with_input(&arguments, &pod("free", false, &json!({})));
            assert!(reply.stderr.contains("need a queue"), "{}", reply.stderr);
        }
        // Other namespaces are not concerned.
        let elsewhere = pod("free", false, &json!({})).replace(NAMESPACE, "default");
        kubectl.with_input(&dry_run, &elsewhere).expect_accepted();
    });
}

/// Waits until the policy adds the gate. A policy takes effect a moment after it is stored.
#[track_caller]
fn wait_for_gate(tenant: &Tenant) {
    let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let is_gated = || {
        let reply = tenant.with_input(&create, &pod("probe", true, &json!({})));
        Ok(reply.stdout.contains(GATE).then_some(()))
    };
    wait::until(is_gated, || "the policy adds no gate".to_owned()).unwrap();
}

/// Removes all gates of a pod as the controller.
#[track_caller]
fn admit(kubectl: &Kubectl, name: &str) -> KubectlOutput {
    let patch = json!({"spec": {"schedulingGates": null}});
    patch_as(kubectl, CONTROLLER_ACCOUNT, "pod", name, &patch).expect_accepted()
}

#[track_caller]
fn gates(tenant: &Tenant, name: &str) -> Vec<String> {
    let reply = tenant.run(&["get", "pod", name, "-o", "json"]);
    let pod: Value = serde_json::from_str(&reply.expect_accepted().stdout).unwrap();
    let gates = pod["spec"]["schedulingGates"].as_array();
    let names = gates
        .into_iter()
        .flatten()
        .map(|it| it["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn pod(name: &str, is_queued: bool, more: &Value) -> String {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": "a", "image": "registry.example.com/a:1"}],
        },
    });
    if is_queued {
        pod["metadata"]["labels"] = json!({QUEUE: "main"});
    }
    crate::objects::merge(&mut pod, more);
    pod.to_string()
}
