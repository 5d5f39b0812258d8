//! Policies about the sender of a request, without the webhook.

use std::fs;

use serde_json::{Value, json};

use super::{NAMESPACE, Tenant, install_policies};
use crate::cluster::CONTROLLER_ACCOUNT;
use crate::fixture::{self, Fixture};
use crate::helm::Helm;
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::{self, Protocol};
use crate::wait;

/// Only the controller writes the status and the owners of Workloads.
pub fn workloads_are_guarded(stage: &mut Fixture, _: Protocol) {
    let policies = lockkeeper::output(&["crds", "policies"]);
    with_policies(stage, &policies, |kubectl| {
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true});
        let mut child = workload("owned");
        child["metadata"]["ownerReferences"] = json!([owner]);
        let create = ["create", "-f", "-"];
        let by_controller = [&["--as", CONTROLLER_ACCOUNT][..], &create].concat();
        expect_forbidden(&kubectl.with_input(&create, &child.to_string()));
        kubectl
            .with_input(&create, &workload("free").to_string())
            .expect_accepted();
        kubectl
            .with_input(&by_controller, &child.to_string())
            .expect_accepted();

        let status = json!({"status": {"priority": 7}}).to_string();
        let owners = json!({"metadata": {"ownerReferences": null}}).to_string();
        let patch = |flags: &[&str], patch: &str| {
            let all = [
                &[
                    "patch",
                    "workloads.lockkeeper.dev",
                    "owned",
                    "-n",
                    "default",
                ],
                flags,
                &["--type=merge", "--patch", patch],
            ];
            kubectl.run(&all.concat())
        };
        expect_forbidden(&patch(&["--subresource=status"], &status));
        expect_forbidden(&patch(&[], &owners));
        // Other fields stay writable for administrators.
        let active = json!({"spec": {"active": false}}).to_string();
        patch(&[], &active).expect_accepted();
        // kubectl reads a status before it patches it, which the controller has no right to.
        let controller = ["--as", CONTROLLER_ACCOUNT, "--as-group=system:masters"];
        patch(
            &[&controller[..], &["--subresource=status"]].concat(),
            &status,
        )
        .expect_accepted();
        // It orphans the dependents of a deleted job.
        let collector = "--as=system:serviceaccount:kube-system:generic-garbage-collector";
        let groups = ["--as-group=system:masters", collector];
        patch(&groups, &owners).expect_accepted();
        fixture::sweep(kubectl);
    });
}

#[track_caller]
fn expect_forbidden(reply: &KubectlOutput) {
    assert_eq!(reply.code, Some(1), "{}{}", reply.stdout, reply.stderr);
    assert!(
        reply.stderr.contains("only the controller may"),
        "{}",
        reply.stderr
    );
}

fn workload(name: &str) -> Value {
    let container = json!({"name": "a", "image": "registry.example.com/a:1"});
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podSets": [{"template": {"spec": {"containers": [container]}}}]}})
}

/// Jobs and JobSets without a queue get one in a selected namespace.
pub fn default_queue_is_added(stage: &mut Fixture, _: Protocol) {
    stage.cluster_mut().install_jobset();
    let selector = format!("kubernetes.io/metadata.name={NAMESPACE}");
    let flags = [
        "crds",
        "policies",
        "--default-queue=main",
        "--default-queue-namespaces",
        &selector,
    ];
    let policies = lockkeeper::output(&flags);
    with_policies(stage, &policies, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let queue_and_suspend = |reply: &KubectlOutput| {
            let created: Value = serde_json::from_str(&reply.stdout).unwrap();
            let queue = created["metadata"]["labels"]["lockkeeper.dev/queue-name"].clone();
            (queue, created["spec"]["suspend"] == true)
        };
        let make = |kind, is_queued| super::jobs::object(kind, "new", is_queued, &json!({}));
        let has_effect = || {
            let reply = tenant.with_input(&create, &make("job", false));
            Ok((queue_and_suspend(&reply.expect_accepted()).0 == "main").then_some(()))
        };
        wait::until(has_effect, || "the policy has no effect".to_owned()).unwrap();
        for kind in ["job", "jobset"] {
            let reply = tenant.with_input(&create, &make(kind, false));
            let added = queue_and_suspend(&reply.expect_accepted());
            assert_eq!(added, (json!("main"), true), "{kind}");
            let mut named: Value = serde_json::from_str(&make(kind, true)).unwrap();
            named["metadata"]["labels"]["lockkeeper.dev/queue-name"] = json!("other");
            let reply = tenant.with_input(&create, &named.to_string());
            let kept = queue_and_suspend(&reply.expect_accepted());
            assert_eq!(kept, (json!("other"), true), "{kind}");
        }
        // Other labels are kept.
        let mut labelled: Value = serde_json::from_str(&make("job", false)).unwrap();
        labelled["metadata"]["labels"] = json!({"team": "a"});
        let reply = tenant.with_input(&create, &labelled.to_string());
        let created: Value = serde_json::from_str(&reply.expect_accepted().stdout).unwrap();
        let labels = json!({"team": "a", "lockkeeper.dev/queue-name": "main"});
        assert_eq!(created["metadata"]["labels"], labels);
        // The Jobs of a JobSet use the quota of the JobSet, and other namespaces are not selected.
        let by_job_set = [
            "--as=system:serviceaccount:jobset-system:jobset-controller-manager",
            "--as-group=system:masters",
        ];
        let child = [&by_job_set[..], &create].concat();
        let elsewhere = make("job", false).replace(NAMESPACE, "default");
        for (arguments, object) in [(&child[..], make("job", false)), (&create[..], elsewhere)] {
            let reply = kubectl.with_input(arguments, &object).expect_accepted();
            assert_eq!(queue_and_suspend(&reply), (Value::Null, false));
        }
    });
}

/// Jobs and JobSets in a selected namespace need a queue.
pub fn queue_is_required(stage: &mut Fixture, _: Protocol) {
    stage.cluster_mut().install_jobset();
    let selector = format!("kubernetes.io/metadata.name={NAMESPACE}");
    let policies = lockkeeper::output(&["crds", "policies", "--queue-required", &selector]);
    let plain = lockkeeper::output(&["crds", "policies"]);
    with_policies(stage, &plain, |kubectl| {
        let tenant = Tenant::new(kubectl.clone());
        for kind in ["job", "jobset"] {
            let suspended = super::jobs::object(kind, "older", false, &json!({"suspend": true}));
            tenant.create(&suspended).expect_accepted();
        }
        // A job without a queue is now older than the policy.
        kubectl
            .apply(&policies, &["--server-side"])
            .expect_accepted();
        let unlabelled = super::jobs::object("job", "free", false, &json!({}));
        let is_rejected = || {
            let reply = tenant.with_input(&["create", "--dry-run=server", "-f", "-"], &unlabelled);
            Ok(reply.stderr.contains("need a queue").then_some(()))
        };
        wait::until(is_rejected, || "the policy has no effect".to_owned()).unwrap();
        for kind in ["job", "jobset"] {
            let unlabelled = super::jobs::object(kind, "free", false, &json!({}));
            expect_required(&tenant.create(&unlabelled));
            let queued = super::jobs::object(kind, "queued", true, &json!({"suspend": true}));
            tenant.create(&queued).expect_accepted();
            // Not even while it is suspended.
            let unlabel = json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": null}}});
            expect_required(&tenant.patch(kind, "queued", &unlabel.to_string()));
            let resume = json!({"spec": {"suspend": false}}).to_string();
            expect_required(&tenant.patch(kind, "older", &resume));
            tenant
                .run(&["delete", kind, "older", "queued"])
                .expect_accepted();
        }
        // A claimed owner exempts nothing; the account of JobSet's controller does.
        let mut child: Value = serde_json::from_str(&unlabelled).unwrap();
        child["metadata"]["ownerReferences"] = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet", "name": "none", "uid": "u", "controller": true}]);
        let dry_run = ["create", "--dry-run=server", "-f", "-"];
        // Another policy rejects an invented Job of a JobSet as well; the API server reports one of them.
        let reply = tenant
            .with_input(&dry_run, &child.to_string())
            .expect_rejected();
        let messages = ["need a queue", "may create a Job of a JobSet"];
        assert!(
            messages.iter().any(|it| reply.stderr.contains(it)),
            "{}",
            reply.stderr
        );
        let by_job_set = "--as=system:serviceaccount:jobset-system:jobset-controller-manager";
        let as_job_set = [&[by_job_set, "--as-group=system:masters"][..], &dry_run].concat();
        kubectl
            .with_input(&as_job_set, &child.to_string())
            .expect_accepted();
        // Other namespaces are not concerned.
        let elsewhere = unlabelled.replace(NAMESPACE, "default");
        kubectl.with_input(&dry_run, &elsewhere).expect_accepted();
        kubectl
            .with_input(&["delete", "-f", "-", "--ignore-not-found"], &policies)
            .expect_accepted();
    });
}

#[track_caller]
fn expect_required(reply: &KubectlOutput) {
    assert_eq!(reply.code, Some(1), "{}{}", reply.stdout, reply.stderr);
    assert!(reply.stderr.contains("need a queue"), "{}", reply.stderr);
}

/// Runs a trial with these policies and without the webhook.
#[track_caller]
pub fn with_policies(stage: &mut Fixture, policies: &str, trial: impl FnOnce(&Kubectl)) {
    let kubectl = stage.without_webhook();
    stage.cluster_mut().stop_workers();
    fixture::sweep(&kubectl);
    install_policies(&kubectl, policies);
    trial(&kubectl);
    kubectl
        .with_input(&["delete", "-f", "-", "--ignore-not-found"], policies)
        .expect_accepted();
}

/// The rights of each role, as `kubectl auth can-i` reports them in a namespace: role, verb, resource, whether it may.
const RIGHTS: &[(&str, &str, &str, bool)] = &[
    ("view", "get", "workloads.lockkeeper.dev", true),
    ("view", "list", "localqueues.lockkeeper.dev", true),
    ("view", "create", "localqueues.lockkeeper.dev", false),
    ("view", "patch", "workloads.lockkeeper.dev", false),
    ("edit", "get", "workloads.lockkeeper.dev", true),
    ("edit", "create", "jobs.batch", true),
    ("edit", "create", "workloads.lockkeeper.dev", false),
    ("edit", "patch", "workloads.lockkeeper.dev", false),
    ("edit", "create", "localqueues.lockkeeper.dev", false),
    ("admin", "create", "localqueues.lockkeeper.dev", true),
    ("admin", "delete", "localqueues.lockkeeper.dev", true),
    ("admin", "create", "workloads.lockkeeper.dev", false),
    ("admin", "patch", "workloads.lockkeeper.dev/status", false),
    ("lockkeeper-batch-user", "create", "jobs.batch", true),
    (
        "lockkeeper-batch-user",
        "create",
        "jobsets.jobset.x-k8s.io",
        true,
    ),
    (
        "lockkeeper-batch-user",
        "get",
        "workloads.lockkeeper.dev",
        true,
    ),
    (
        "lockkeeper-batch-user",
        "create",
        "workloads.lockkeeper.dev",
        false,
    ),
    (
        "lockkeeper-batch-user",
        "create",
        "localqueues.lockkeeper.dev",
        false,
    ),
    (
        "lockkeeper-batch-admin",
        "create",
        "localqueues.lockkeeper.dev",
        true,
    ),
    (
        "lockkeeper-batch-admin",
        "patch",
        "workloads.lockkeeper.dev",
        true,
    ),
    (
        "lockkeeper-batch-admin",
        "patch",
        "workloads.lockkeeper.dev/status",
        false,
    ),
    ("lockkeeper-batch-admin", "create", "jobs.batch", true),
];

/// The label by which a role is aggregated to another.
fn aggregation_label(role: &str) -> String {
    match role.strip_prefix("lockkeeper-") {
        Some(role) => format!("rbac.lockkeeper.dev/{role}"),
        None => format!("rbac.authorization.k8s.io/aggregate-to-{role}"),
    }
}

/// The roles of the chart grant what docs/trust.md lists. No aggregation controller runs here, so each user is bound to all
/// roles that it would aggregate.
pub fn roles_grant_the_documented_rights(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook();
    stage.cluster_mut().install_jobset();
    let folder = stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    let rendered = Helm::without_cluster(&folder).template("").assert_silent();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&rendered.stdout).unwrap();
    let is_role = |it: &&Value| {
        let labels = &it["metadata"]["labels"];
        let labels = labels.as_object().into_iter().flatten();
        let mut keys = labels.map(|(key, _)| key);
        it["kind"] == "ClusterRole" && keys.any(|key| key.starts_with("rbac."))
    };
    let roles: Vec<&Value> = documents.iter().filter(is_role).collect();
    assert_eq!(roles.len(), 4);
    let apply = |object: &Value| {
        let applied = kubectl.apply(&object.to_string(), &["--server-side"]);
        applied.expect_accepted();
    };
    apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}));
    for role in &roles {
        apply(role);
    }
    let mut users: Vec<&str> = RIGHTS.iter().map(|(role, ..)| *role).collect();
    users.dedup();
    for user in users {
        let label = aggregation_label(user);
        let aggregated = roles
            .iter()
            .filter(|it| it["metadata"]["labels"][&label] == "true");
        let mut bound: Vec<String> = aggregated
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        if !user.starts_with("lockkeeper-") {
            // The API server creates this one: the rights on Kubernetes' own kinds.
            bound.push(format!("system:aggregate-to-{user}"));
        }
        for role in bound {
            apply(
                &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": format!("{user}-{}", role.replace(':', "-")), "namespace": NAMESPACE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]}),
            );
        }
    }
    for (role, verb, resource, expected) in RIGHTS {
        let user = format!("--as={role}");
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let subresource = format!("--subresource={subresource}");
        let ask = [
            "auth",
            "can-i",
            verb,
            resource,
            &subresource,
            &user,
            "-n",
            NAMESPACE,
        ];
        let answer = if *expected { "yes" } else { "no" };
        let is_expected = || {
            let reply = kubectl.run(&ask);
            Ok((reply.stdout.trim() == answer).then_some(()))
        };
        // The authorizer observes a new binding a moment later.
        wait::until(is_expected, || {
            format!("{role} {verb} {resource}: not {answer}")
        })
        .unwrap();
    }
}
