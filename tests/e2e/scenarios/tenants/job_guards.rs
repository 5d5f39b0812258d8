//! What a tenant may not do with the Jobs of a JobSet and with the pods of a Job, without the webhook.

use serde_json::{Value, json};

use super::jobs::object;
use super::policies::with_policies;
use super::{NAMESPACE, Tenant};
use crate::fixture::Fixture;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Protocol};
use crate::wait;

const JOBSET_ACCOUNT: &str = "system:serviceaccount:jobset-system:jobset-controller-manager";
const JOB_ACCOUNT: &str = "system:serviceaccount:kube-system:job-controller";

/// Runs kubectl as the controller with this account.
fn as_account(kubectl: &Kubectl, account: &str, arguments: &[&str], input: &str) -> KubectlOutput {
    let account = format!("--as={account}");
    let all = [&[&*account, "--as-group=system:masters"], arguments].concat();
    kubectl.with_input(&all, input)
}

fn patch_arguments<'a>(kind: &'a str, name: &'a str, patch: &'a str) -> Vec<&'a str> {
    vec![
        "patch",
        kind,
        name,
        "--namespace",
        NAMESPACE,
        "--type=merge",
        "--patch",
        patch,
    ]
}

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
            serde_json::from_str(&object("job", "s-main-0", false, &suspended)).unwrap();
        child["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/restart-attempt": "0"});
        child["metadata"]["ownerReferences"] = json!([owner(kubectl, "jobset", "s")]);
        as_account(
            kubectl,
            JOBSET_ACCOUNT,
            &["create", "-f", "-"],
            &child.to_string(),
        )
        .expect_accepted();
        child["metadata"]["name"] = json!("invented");
        let resume = json!({"spec": {"suspend": false}});
        until_rejected(&tenant, "job", "s-main-0", &resume, "change the JobSet");

        let other = owner(kubectl, "jobset", "other");
        for (metadata, message) in [
            (
                json!({"labels": {"jobset.sigs.k8s.io/restart-attempt": "x"}}),
                "metadata.labels: only JobSet's controller",
            ),
            (
                json!({"labels": {"jobset.sigs.k8s.io/restart-attempt": null}}),
                "metadata.labels: only JobSet's controller",
            ),
            (
                json!({"labels": {"lockkeeper.dev/queue-name": "main"}}),
                "metadata.labels: only JobSet's controller",
            ),
            (
                json!({"ownerReferences": null}),
                "metadata.ownerReferences: only JobSet's controller",
            ),
            (
                json!({"ownerReferences": [other]}),
                "metadata.ownerReferences: only JobSet's controller",
            ),
            (
                json!({"finalizers": ["example.com/kept"]}),
                "gets no further finalizers",
            ),
        ] {
            let patch = json!({"metadata": metadata}).to_string();
            expect_message(&tenant.patch("job", "s-main-0", &patch), message);
        }
        for spec in [json!({"suspend": false}), json!({"parallelism": 50})] {
            let patch = json!({"spec": spec}).to_string();
            expect_message(
                &tenant.patch("job", "s-main-0", &patch),
                "spec: only JobSet's controller",
            );
        }
        // No other Job becomes one of a JobSet.
        let created = tenant.create(&child.to_string());
        expect_message(&created, "may create a Job of a JobSet");
        let attach =
            json!({"metadata": {"ownerReferences": [owner(kubectl, "jobset", "s")]}}).to_string();
        expect_message(
            &tenant.patch("job", "free", &attach),
            "metadata.ownerReferences: only JobSet's controller",
        );
        let delete =
            |cascade: &str| tenant.run(&["delete", "job", "s-main-0", "--dry-run=server", cascade]);
        expect_message(&delete("--cascade=orphan"), "cannot be orphaned");
        delete("--cascade=background").expect_accepted();

        let annotate = json!({"metadata": {"annotations": {"team": "a"}, "labels": {"team": "a"}}})
            .to_string();
        tenant.patch("job", "s-main-0", &annotate).expect_accepted();
        // JobSet's controller may have another account, but not one of the namespace.
        let resume = resume.to_string();
        let own = format!("system:serviceaccount:{NAMESPACE}:default");
        let reply = as_account(
            kubectl,
            &own,
            &patch_arguments("job", "s-main-0", &resume),
            "",
        );
        expect_message(&reply, "spec: only JobSet's controller");
        for account in [JOBSET_ACCOUNT, "system:serviceaccount:managed:jobset"] {
            as_account(
                kubectl,
                account,
                &patch_arguments("job", "s-main-0", &resume),
                "",
            )
            .expect_accepted();
        }
        // A JobSet is deleted with its Jobs.
        let orphan = [
            "delete",
            "jobset",
            "s",
            "--dry-run=server",
            "--cascade=orphan",
        ];
        expect_message(
            &tenant.run(&orphan),
            "propagationPolicy: the Jobs of a JobSet",
        );
        let finalizer = json!({"metadata": {"finalizers": ["orphan"]}}).to_string();
        expect_message(
            &tenant.patch("jobset", "s", &finalizer),
            "metadata.finalizers: the Jobs of a JobSet",
        );
        tenant
            .run(&["delete", "jobset", "s", "other"])
            .expect_accepted();
        tenant
            .run(&["delete", "job", "s-main-0", "free", "--ignore-not-found"])
            .expect_accepted();
    });
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
        let release = json!({"metadata": {"ownerReferences": null}}).to_string();
        let reply = tenant.patch("pod", "j-0", &release);
        expect_message(
            &reply,
            "metadata.ownerReferences: only the controller of Jobs",
        );
        tenant
            .patch("pod", "j-0", &labels(json!({"team": "a"})).to_string())
            .expect_accepted();
        as_account(
            kubectl,
            JOB_ACCOUNT,
            &patch_arguments("pod", "j-0", &release),
            "",
        )
        .expect_accepted();
        // The labels stay guarded: by them the pod is found once its Job is gone.
        expect_message(&tenant.patch("pod", "j-0", &detach.to_string()), message);
        tenant
            .run(&["delete", "pod", "j-0", "--grace-period=0", "--force"])
            .expect_accepted();
        tenant.run(&["delete", "job", "j"]).expect_accepted();
    });
}
