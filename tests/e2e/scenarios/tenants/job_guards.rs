//! What a tenant may not do with the Jobs of a JobSet and with the pods of a Job, without the webhook.

use serde_json::{Value, json};

use super::jobs::object;
use super::policies::with_policies;
use super::{NAMESPACE, Tenant, as_account, patch_as};
use crate::fixture::Fixture;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Protocol};
use crate::wait;

const JOBSET_ACCOUNT: &str = "system:serviceaccount:jobset-system:jobset-controller-manager";
const JOB_ACCOUNT: &str = "system:serviceaccount:kube-system:job-controller";

/// A stored owner, as an owner reference.
fn owner(kubectl: &Kubectl, kind: &str, name: &str) -> Value {
    let owner = kubectl.get(&[kind, name, "--namespace", NAMESPACE]);
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name,
        "uid": owner["metadata"]["uid"], "controller": true})
}

#[track_caller]
fn expect_message(reply: &KubectlOutput, message: &str) {
    assert_eq!(reply.code, Some(1), "{message}: {}", reply.stdout);
    assert!(
        reply.stderr.contains(message),
        "{message}: {}",
        reply.stderr
    );
}

/// Waits until the API server evaluates the policies that this patch of the tenant breaches.
fn until_rejected(tenant: &Tenant, kind: &str, name: &str, patch: &Value, message: &str) {
    let patch = patch.to_string();
    let arguments = [
        "patch",
        kind,
        name,
        "--dry-run=server",
        "--type=merge",
        "--patch",
        &patch,
    ];
    let is_rejected = || {
        Ok(tenant
            .run(&arguments)
            .stderr
            .contains(message)
            .then_some(()))
    };
    wait::until(is_rejected, || "the policy has no effect".to_owned()).unwrap();
}

/// The Job of the JobSet `s`.
const CHILD: &str = "s-main-0";

/// The Jobs of a JobSet use its quota: only JobSet's controller changes them.
pub fn jobs_of_job_sets_are_guarded(stage: &mut Fixture, _: Protocol) {
    stage.cluster_mut().install_jobset();
    let policies = lockkeeper::output(&["crds", "policies"]);
    with_policies(stage, &policies, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        let suspended = json!({"suspend": true});
        for (kind, name) in [("jobset", "s"), ("jobset", "other"), ("job", "free")] {
            let queued = kind == "jobset";
            tenant
                .create(&object(kind, name, queued, &suspended))
                .expect_accepted();
        }
        let mut child: Value =
            serde_json::from_str(&object("job", CHILD, false, &suspended)).unwrap();
        child["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/restart-attempt": "0"});
        child["metadata"]["ownerReferences"] = json!([owner(kubectl, "jobset", "s")]);
        let create = ["create", "-f", "-"];
        as_account(kubectl, JOBSET_ACCOUNT, &create, &child.to_string()).expect_accepted();
        let resume = json!({"spec": {"suspend": false}});
        until_rejected(&tenant, "job", CHILD, &resume, "change the JobSet");

        child_is_not_changed(&tenant, &owner(kubectl, "jobset", "other"));
        child["metadata"]["name"] = json!("invented");
        no_job_joins_a_job_set(&tenant, &child);
        jobs_are_not_orphaned(&tenant);
        // JobSet's controller may have another account, but not one of the namespace.
        let own = format!("system:serviceaccount:{NAMESPACE}:default");
        let reply = patch_as(kubectl, &own, "job", CHILD, &resume);
        expect_message(&reply, "spec: only JobSet's controller");
        for account in [JOBSET_ACCOUNT, "system:serviceaccount:managed:jobset"] {
            patch_as(kubectl, account, "job", CHILD, &resume).expect_accepted();
        }
        tenant
            .run(&["delete", "jobset", "s", "other"])
            .expect_accepted();
        tenant
            .run(&["delete", "job", CHILD, "free", "--ignore-not-found"])
            .expect_accepted();
    });
}

#[track_caller]
fn child_is_not_changed(tenant: &Tenant, other: &Value) {
    const ATTEMPT: &str = "jobset.sigs.k8s.io/restart-attempt";
    let labels = "metadata.labels: only JobSet's controller";
    let owners = "metadata.ownerReferences: only JobSet's controller";
    for (metadata, message) in [
        (json!({"labels": {ATTEMPT: "x"}}), labels),
        (json!({"labels": {ATTEMPT: null}}), labels),
        (
            json!({"labels": {"lockkeeper.dev/queue-name": "main"}}),
            labels,
        ),
        (json!({"ownerReferences": null}), owners),
        (json!({"ownerReferences": [other]}), owners),
        (
            json!({"finalizers": ["example.com/kept"]}),
            "gets no further finalizers",
        ),
    ] {
        let patch = json!({"metadata": metadata}).to_string();
        expect_message(&tenant.patch("job", CHILD, &patch), message);
    }
    for spec in [json!({"suspend": false}), json!({"parallelism": 50})] {
        let patch = json!({"spec": spec}).to_string();
        let reply = tenant.patch("job", CHILD, &patch);
        expect_message(&reply, "spec: only JobSet's controller");
    }
    let other = json!({"metadata": {"annotations": {"team": "a"}, "labels": {"team": "a"}}});
    tenant
        .patch("job", CHILD, &other.to_string())
        .expect_accepted();
}

/// Neither a new Job nor one without a controller becomes one of a JobSet.
#[track_caller]
fn no_job_joins_a_job_set(tenant: &Tenant, invented: &Value) {
    let created = tenant.create(&invented.to_string());
    expect_message(&created, "may create a Job of a JobSet");
    let owners = &invented["metadata"]["ownerReferences"];
    let attach = json!({"metadata": {"ownerReferences": owners}}).to_string();
    let reply = tenant.patch("job", "free", &attach);
    expect_message(&reply, "metadata.ownerReferences: only JobSet's controller");
}

/// A Job of a JobSet is deleted with its pods, and a JobSet with its Jobs.
#[track_caller]
fn jobs_are_not_orphaned(tenant: &Tenant) {
    let delete =
        |kind, name, cascade| tenant.run(&["delete", kind, name, "--dry-run=server", cascade]);
    let (orphan, background) = ("--cascade=orphan", "--cascade=background");
    expect_message(&delete("job", CHILD, orphan), "cannot be orphaned");
    delete("job", CHILD, background).expect_accepted();
    let message = "propagationPolicy: the Jobs of a JobSet";
    expect_message(&delete("jobset", "s", orphan), message);
    delete("jobset", "s", background).expect_accepted();
    let finalizer = json!({"metadata": {"finalizers": ["orphan"]}}).to_string();
    let reply = tenant.patch("jobset", "s", &finalizer);
    expect_message(&reply, "metadata.finalizers: the Jobs of a JobSet");
}

/// The pods of a Job keep the labels and the owner by which its controller, and lockkeeper, find them.
pub fn pods_of_jobs_are_guarded(stage: &mut Fixture, _: Protocol) {
    let policies = lockkeeper::output(&["crds", "policies"]);
    with_policies(stage, &policies, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        tenant
            .create(&object("job", "j", true, &json!({"suspend": true})))
            .expect_accepted();
        let owner = owner(kubectl, "job", "j");
        let container = json!({"name": "a", "image": "registry.example.com/a:1"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "j-0", "namespace": NAMESPACE, "ownerReferences": [owner], "labels": {
                "batch.kubernetes.io/controller-uid": owner["uid"], "batch.kubernetes.io/job-name": "j",
                "controller-uid": owner["uid"], "job-name": "j", "jobset.sigs.k8s.io/jobset-uid": "u"}},
            "spec": {"restartPolicy": "Never", "containers": [container]}});
        as_account(
            kubectl,
            JOB_ACCOUNT,
            &["create", "-f", "-"],
            &pod.to_string(),
        )
        .expect_accepted();
        let labels = |change: Value| json!({"metadata": {"labels": change}});
        let detach = labels(json!({"batch.kubernetes.io/controller-uid": null}));
        let message = "metadata.labels: only the controller of Jobs";
        until_rejected(&tenant, "pod", "j-0", &detach, message);
        for change in [
            json!({"batch.kubernetes.io/controller-uid": null}),
            json!({"batch.kubernetes.io/job-name": "other"}),
            json!({"batch.kubernetes.io/further": "x"}),
            json!({"controller-uid": null}),
            json!({"job-name": "other"}),
            json!({"jobset.sigs.k8s.io/jobset-uid": null}),
        ] {
            expect_message(
                &tenant.patch("pod", "j-0", &labels(change).to_string()),
                message,
            );
        }
        let release = json!({"metadata": {"ownerReferences": null}});
        let reply = tenant.patch("pod", "j-0", &release.to_string());
        expect_message(
            &reply,
            "metadata.ownerReferences: only the controller of Jobs",
        );
        tenant
            .patch("pod", "j-0", &labels(json!({"team": "a"})).to_string())
            .expect_accepted();
        patch_as(kubectl, JOB_ACCOUNT, "pod", "j-0", &release).expect_accepted();
        // The labels stay guarded: by them the pod is found once its Job is gone.
        expect_message(&tenant.patch("pod", "j-0", &detach.to_string()), message);
        tenant
            .run(&["delete", "pod", "j-0", "--grace-period=0", "--force"])
            .expect_accepted();
        tenant.run(&["delete", "job", "j"]).expect_accepted();
    });
}
