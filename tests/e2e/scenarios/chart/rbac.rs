//! Compares the rights that the chart grants with the requests of the processes in the audit log.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::agreement::{ALL_RIGHTS, Right, rights};
use crate::cluster::{CONTROLLER_ACCOUNT, Cluster, SERVER_ACCOUNT};
use crate::fixture::{self, VALIDATING_CONFIGURATION};
use crate::helm::{self, CHART, Helm, NAMESPACE, RELEASE};
use crate::kubectl::Kubectl;
use crate::manifests::{self, CLUSTER_OBJECTS, workload};
use crate::nodes::Nodes;
use crate::scenarios::certificates::server::CertificateServer;
use crate::scenarios::rbac::{self as controlled, ControllerProcess};
use crate::wait;

/// Rights that are granted and not used here, as verb, resource and group, with the reason.
const UNUSED_RIGHTS: &[(&str, &str, &str)] = &[
    (
        "update jobs/finalizers.batch",
        "the API server checks it with the admission plugin OwnerReferencesPermissionEnforcement",
        "lockkeeper-controller",
    ),
    (
        "update jobsets/finalizers.jobset.x-k8s.io",
        "the same",
        "lockkeeper-controller",
    ),
    (
        "update pods/finalizers",
        "the same",
        "lockkeeper-controller",
    ),
];

/// Rights whose use depends on timing.
const OCCASIONALLY_USED_RIGHTS: &[(&str, &str)] = &[
    (
        "patch jobs/status.batch",
        "the job controller may remove a start time first",
    ),
    (
        "get jobs.batch",
        "only a Job that has left the watch while its Workload holds quota is read",
    ),
    ("get jobsets.jobset.x-k8s.io", "the same"),
    ("get pods", "the same for pods"),
    (
        "get validatingwebhookconfigurations.admissionregistration.k8s.io",
        "read again when another writer was first",
    ),
    (
        "get localqueues.lockkeeper.dev",
        "looked up when a job names a queue that the watch has not delivered",
    ),
    (
        "get mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "the same",
    ),
];

pub fn granted_rights_are_used() {
    let mut cluster = Cluster::start_audited().unwrap_or_else(|e| panic!("no cluster: {e}"));
    let kubectl = cluster.kubectl().clone();
    cluster
        .start_workers()
        .unwrap_or_else(|e| panic!("no workers: {e}"));
    cluster.add_nodes(&Nodes::default());
    cluster.install_jobset();
    kubectl
        .apply(&third_party_crds(), &[])
        .expect_accepted_without_warning();
    let folder = cluster.folder().to_owned();
    let rendered = install(
        &kubectl,
        &Helm::on_cluster(&folder.join("helm"), kubectl.kubeconfig()),
    );

    let config = "webhook: {foreignKinds: [koordinator, kueue], preview: true}\n";
    let begun =
        CertificateServer::start_unready_as(cluster.server(), folder.join("webhook"), config, &[]);
    let mut server = CertificateServer::wait(begun);
    server.wait_ready();
    redirect_webhooks_to(&kubectl, &server.url());
    wait_until_webhook_called(&kubectl);
    let controller = ControllerProcess::start(cluster.controller(), &folder.join("controller"));
    exercise_rights(&kubectl);
    let log = controller.stop();
    assert!(!log.contains("forbidden"), "{log}");
    server.stop();

    let audited = cluster.audit_log().unwrap_or_else(|e| panic!("{e}"));
    for (account, role) in [
        (SERVER_ACCOUNT, "lockkeeper"),
        (CONTROLLER_ACCOUNT, "lockkeeper-controller"),
    ] {
        compare_rights(
            &rights(&rendered, role),
            &used_rights(&audited, account),
            role,
        );
    }
}

/// The rights to watch kinds of other projects.
fn third_party_crds() -> String {
    let all = [
        (
            "kueue.x-k8s.io",
            "v1beta2",
            "clusterqueue",
            "ClusterQueue",
            "Cluster",
        ),
        ("kueue.x-k8s.io", "v1beta2", "cohort", "Cohort", "Cluster"),
        (
            "kueue.x-k8s.io",
            "v1beta2",
            "resourceflavor",
            "ResourceFlavor",
            "Cluster",
        ),
        (
            "kueue.x-k8s.io",
            "v1beta2",
            "localqueue",
            "LocalQueue",
            "Namespaced",
        ),
        (
            "kueue.x-k8s.io",
            "v1beta2",
            "workloadpriorityclass",
            "WorkloadPriorityClass",
            "Cluster",
        ),
        (
            "scheduling.sigs.k8s.io",
            "v1alpha1",
            "elasticquota",
            "ElasticQuota",
            "Namespaced",
        ),
    ];
    let items = all.map(|(group, version, name, kind, scope)| {
        let plural = if name.ends_with("class") {
            format!("{name}es")
        } else {
            format!("{name}s")
        };
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                // Kubernetes itself requires these groups.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": group,
                "names": {"kind": kind, "plural": plural, "singular": name},
                "scope": scope,
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        })
    });
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Installs the chart, and returns the rendered objects.
fn install(kubectl: &Kubectl, helm: &Helm) -> Vec<Value> {
    kubectl
        .apply(fixture::NAMESPACE, &[])
        .expect_accepted_without_warning();
    let values = helm.values(ALL_RIGHTS);
    let values = values.to_str().unwrap();
    let flags = [
        "install",
        RELEASE,
        CHART,
        "--namespace",
        NAMESPACE,
        "--values",
        values,
    ];
    helm.run(&flags).assert_silent();
    let rendered = helm.template(ALL_RIGHTS).assert_silent().stdout;
    helm::objects(&rendered)
}

/// Points both webhook configurations at a server beside the cluster; the bundle stays the injected one.
fn redirect_webhooks_to(kubectl: &Kubectl, url: &str) {
    for kind in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ] {
        let mut registration = kubectl.get(&[kind, "lockkeeper"]);
        for entry in registration["webhooks"].as_array_mut().unwrap() {
            let client = entry["clientConfig"].as_object_mut().unwrap();
            let service = client.remove("service").unwrap();
            let path = service["path"].as_str().unwrap();
            client.insert("url".to_owned(), json!(format!("{url}{path}")));
        }
        let text = registration.to_string();
        kubectl
            .with_input(&["replace", "-f", "-"], &text)
            .expect_accepted_without_warning();
    }
}

fn wait_until_webhook_called(kubectl: &Kubectl) {
    let result = wait::until(
        || {
            let reply = kubectl.apply(VALIDATING_CONFIGURATION, &["--dry-run=server"]);
            Ok(reply.stderr.contains("WL001").then_some(()))
        },
        || "the API server does not ask the webhook".to_owned(),
    );
    result.unwrap_or_else(|e| panic!("{e}"));
}

/// A right to everything, by wildcard or by escalation.
fn exercise_rights(kubectl: &Kubectl) {
    declare_job_kind(kubectl);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_with_preview();
    controlled::wait_until(kubectl, controlled::LEASE, "it is held", |lease| {
        lease["spec"]["holderIdentity"].is_string()
    });
    trigger_lookups(kubectl);
    controlled::pod(kubectl);
    controlled::job(kubectl);
    controlled::job_set(kubectl);
    controlled::assert_events_recorded(kubectl);
    controlled::preempt_on_node(kubectl);
    job_changes_reach_workload(kubectl);
    controlled::run(kubectl, "delete jobs --all -n team");
    controlled::run(kubectl, "delete jobset set -n team");
    controlled::run(
        kubectl,
        "delete --timeout=90s clusterqueues.lockkeeper.dev research",
    );
    controlled::run(
        kubectl,
        "delete --timeout=90s resourceflavors.lockkeeper.dev default",
    );
}

/// The webhook and the controller look for the definition of the kind, and the controller reports that there is none.
fn declare_job_kind(kubectl: &Kubectl) {
    let declaration = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "JobKind",
        "metadata": {"name": "trainingruns.example.com"},
        "spec": {"version": "v1", "kind": "TrainingRun", "podSets": [{"name": "main", "template": "spec.template"}]},
    });
    kubectl
        .apply(&declaration.to_string(), &[])
        .expect_accepted_without_warning();
    let is_reported = [
        "wait",
        "jobkind/trainingruns.example.com",
        "--for=condition=Active=false",
        "--timeout=60s",
    ];
    kubectl.run(&is_reported).expect_accepted();
    kubectl
        .run(&["delete", "jobkind", "trainingruns.example.com"])
        .expect_accepted();
}

/// A pending job is changed, and its Workload with it.
fn job_changes_reach_workload(kubectl: &Kubectl) {
    let mut waits = manifests::job("waits", Some("main"), None);
    waits.push_str("          resources: {requests: {cpu: 100}}\n");
    let reply = kubectl.apply(&waits, &[]).expect_accepted();
    assert!(reply.stderr.contains("QU005"), "{}", reply.stderr);
    let all = "workloads.lockkeeper.dev -n team";
    controlled::wait_until(kubectl, all, "it has one", |all| {
        owned_workload_name(all).is_some()
    });
    let all: Vec<&str> = all.split(' ').collect();
    let workload = owned_workload_name(&kubectl.get(&all)).unwrap();
    controlled::run(
        kubectl,
        "label job waits -n team lockkeeper.dev/max-exec-time-seconds=60",
    );
    let workload = format!("workloads.lockkeeper.dev {workload} -n team");
    controlled::wait_until(kubectl, &workload, "it follows its job", |object| {
        object["spec"]["maximumExecutionTimeSeconds"] == 60
    });
}

/// The name of the Workload of that job.
fn owned_workload_name(all: &Value) -> Option<String> {
    let mut all = all["items"].as_array()?.iter();
    let its = all.find(|it| it["metadata"]["ownerReferences"][0]["name"] == "waits")?;
    its["metadata"]["name"].as_str().map(str::to_owned)
}

/// Objects with missing references: the webhook does a live lookup before it reports them.
fn trigger_lookups(kubectl: &Kubectl) {
    let unknown = workload("team", "lost") + "  priorityClassName: lost\n";
    kubectl
        .apply(&unknown, &["--dry-run=server"])
        .expect_rejected();
    // On an empty cluster there are no references.
    let theirs = "kueue.x-k8s.io/v1beta2";
    let known = EXISTING_OBJECTS.replace("GROUP", theirs);
    kubectl.apply(&known, &[]).expect_accepted_with_preview();
    for group in ["lockkeeper.dev/v1alpha1", theirs] {
        let objects = MISSING_REFERENCES.replace("GROUP", group);
        let reply = kubectl.apply(&objects, &["--dry-run=server"]);
        assert!(reply.stderr.contains("CQ014"), "{}", reply.stderr);
        assert!(reply.stderr.contains("LQ001"), "{}", reply.stderr);
    }
}

const EXISTING_OBJECTS: &str = r"
apiVersion: GROUP
kind: ResourceFlavor
metadata: {name: known}
---
apiVersion: GROUP
kind: ClusterQueue
metadata: {name: known}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - name: known
          resources: [{name: cpu, nominalQuota: 1}]
";

const MISSING_REFERENCES: &str = r"
apiVersion: GROUP
kind: LocalQueue
metadata: {name: lost, namespace: team}
spec: {clusterQueue: lost}
---
apiVersion: GROUP
kind: ClusterQueue
metadata: {name: lost}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - name: lost
          resources: [{name: cpu, nominalQuota: 1}]
";

/// A request of an account, as the rule that allows it. A forbidden request is an error of the chart.
fn used_rights(audited: &str, account: &str) -> BTreeSet<Right> {
    let mut out = BTreeSet::new();
    for line in audited.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let Some(right) = right_from_audit_event(&event) else {
            continue;
        };
        if event["user"]["username"] == account {
            let code = &event["responseStatus"]["code"];
            // A failed conversion has no status.
            assert_ne!(*code, 403, "it was rejected: {event:#}");
            out.insert(right);
        }
    }
    out
}

fn right_from_audit_event(event: &Value) -> Option<Right> {
    let object = event.get("objectRef")?;
    let word = |key: &str| object[key].as_str().map(str::to_owned);
    let resource = word("resource")?;
    Some(Right {
        group: word("apiGroup").unwrap_or_default(),
        resource: match word("subresource") {
            Some(part) => format!("{resource}/{part}"),
            None => resource,
        },
        name: word("name"),
        verb: event["verb"].as_str()?.to_owned(),
        namespace: word("namespace"),
    })
}

/// Each granted right is used, except for [`UNUSED_RIGHTS`], which are never used, and [`OCCASIONALLY_USED_RIGHTS`].
#[track_caller]
fn compare_rights(granted: &BTreeSet<Right>, used: &BTreeSet<Right>, role: &str) {
    let allows = |right: &Right, it: &Right| {
        let within = |mine: &Option<String>, its: &Option<String>| mine.is_none() || mine == its;
        (&right.group, &right.resource, &right.verb) == (&it.group, &it.resource, &it.verb)
            && within(&right.name, &it.name)
            && within(&right.namespace, &it.namespace)
    };
    let describe = |right: &Right| {
        let dot = if right.group.is_empty() { "" } else { "." };
        format!("{} {}{dot}{}", right.verb, right.resource, right.group)
    };
    let unused = granted
        .iter()
        .filter(|right| !used.iter().any(|it| allows(right, it)));
    let unused: BTreeSet<String> = unused.map(describe).collect();
    let explained: BTreeSet<String> = UNUSED_RIGHTS
        .iter()
        .filter(|(_, _, of)| *of == role)
        .map(|(right, ..)| (*right).to_owned())
        .collect();
    let sometimes = |right: &&String| OCCASIONALLY_USED_RIGHTS.iter().any(|(it, _)| it == right);
    let unexplained: Vec<&String> = unused
        .difference(&explained)
        .filter(|it| !sometimes(it))
        .collect();
    assert!(unexplained.is_empty(), "{role} never uses {unexplained:#?}");
    let wrong: Vec<&String> = explained.difference(&unused).collect();
    assert!(wrong.is_empty(), "{role} does use {wrong:#?}");
}
