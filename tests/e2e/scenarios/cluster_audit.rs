//! `check` with a cluster: references are resolved on the cluster, and stored objects are validated.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Scenario;
use crate::cluster::UNPRIVILEGED_ACCOUNT;
use crate::fixture::{self, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::manifests::{self, CLUSTER_OBJECTS};
use crate::objects::Objects;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    [
        Scenario::new(
            "check reports references that are missing on the cluster",
            references_resolved_from_cluster,
        ),
        Scenario::new(
            "check uses the definitions of the cluster",
            definitions_of_the_cluster_are_used,
        ),
        Scenario::new(
            "stored objects are checked, page by page",
            stored_objects_are_checked,
        ),
        Scenario::new(
            "a client without list permission gets the missing permission",
            missing_list_rights_are_reported,
        ),
    ]
    .into_iter()
    .map(|it| it.only(Protocol::Http1))
    .collect()
}

/// More than two pages of 250.
const FLAVORS: usize = 510;

/// A cluster with the CRDs and without the webhook, and the objects that every trial needs.
#[track_caller]
fn start_without_webhook(stage: &mut Fixture) -> Kubectl {
    let kubectl = stage.without_webhook_and_rules();
    fixture::sweep(&kubectl);
    kubectl.apply(CLUSTER_OBJECTS, &[]).expect_accepted();
    kubectl
}

/// Runs `check` with JSON output; returns the report and the exit code.
#[track_caller]
fn check(arguments: &[&str], kubeconfig: &Path) -> (Value, Option<i32>) {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let with = ["check", "--output", "json", "--kubeconfig", kubeconfig];
    let output = lockkeeper::run(&[&with[..], arguments].concat());
    let report = serde_json::from_slice(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    (
        report.unwrap_or_else(|e| panic!("{e}: {stderr}")),
        output.status.code(),
    )
}

/// The rule, the severity, the object and the field of each finding.
fn findings(report: &Value) -> Vec<String> {
    let all = report["findings"].as_array().unwrap().iter();
    all.map(|line| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [rule, severity, field] = ["rule", "severity", "field"].map(|key| text(&line[key]));
        format!(
            "{rule} {severity} {} {field}",
            text(&line["object"]["name"])
        )
    })
    .collect()
}

fn references_resolved_from_cluster(stage: &mut Fixture, _: Protocol) {
    let kubectl = start_without_webhook(stage);
    let folder = stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("workloads.yaml");
    let known = manifests::workload_of_class("team", "known", "high");
    let lost = manifests::workload_of_class("team", "lost", "highest");
    fs::write(&file, manifests::file(&[&known, &lost])).unwrap();
    let path = file.to_str().unwrap();

    // Without a cluster the references are not checked.
    let alone = lockkeeper::run(&["check", path]);
    assert!(alone.status.success(), "{alone:?}");
    let (report, code) = check(&[path], kubectl.kubeconfig());
    let missing = "WL004 error lost spec.priorityClassName";
    assert_eq!(
        (findings(&report), code),
        (vec![missing.to_owned()], Some(1)),
        "{report:#}"
    );

    // The same file is valid if the class exists.
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: highest}\nvalue: 2000\n";
    kubectl.apply(class, &[]).expect_accepted_without_warning();
    let (report, code) = check(&[path], kubectl.kubeconfig());
    assert_eq!((findings(&report), code), (vec![], Some(0)), "{report:#}");
}

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}
";

fn definitions_of_the_cluster_are_used(stage: &mut Fixture, _: Protocol) {
    let kubectl = start_without_webhook(stage);
    kubectl
        .apply(DEFINITION, &[])
        .expect_accepted_without_warning();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("widget.yaml");
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: first}\nsize: many\n";
    fs::write(&file, widget).unwrap();
    let path = file.to_str().unwrap();
    // Without a definition the kind is unknown.
    let alone = lockkeeper::run(&["check", path]);
    assert!(alone.status.success(), "{alone:?}");
    let (report, code) = check(&[path], kubectl.kubeconfig());
    let expected = vec!["SC002 error first size".to_owned()];
    assert_eq!((findings(&report), code), (expected, Some(1)), "{report:#}");

    // A definition of `--crds` is preferred to that of the cluster.
    let source = folder.path().join("crd.yaml");
    fs::write(&source, DEFINITION.replace("integer", "string")).unwrap();
    let arguments = ["--crds", source.to_str().unwrap(), path];
    let (report, code) = check(&arguments, kubectl.kubeconfig());
    assert_eq!((findings(&report), code), (vec![], Some(0)), "{report:#}");
    kubectl
        .with_input(&["delete", "-f", "-"], DEFINITION)
        .expect_accepted();
}

fn stored_objects_are_checked(stage: &mut Fixture, _: Protocol) {
    let kubectl = start_without_webhook(stage);
    let objects = Objects::new(stage.cluster().client());
    let before = check(&["--stored"], kubectl.kubeconfig()).0;
    let objects_before = before["summary"]["objects"].as_u64().unwrap();
    for number in 0..FLAVORS {
        objects.create(&flavor(&format!("f{number:03}"), &json!([])));
    }
    // They were created before the webhook was installed: the last of a list, and the first.
    let taint = json!({"key": "gpu", "effect": "NoSchedule"});
    for name in ["a", "z"] {
        objects.create(&flavor(name, &json!([taint, taint])));
    }
    kubectl
        .apply(
            &manifests::workload_of_class("team", "lost", "highest"),
            &[],
        )
        .expect_accepted_without_warning();

    let select = ["--stored", "--select", "RF002,WL004"];
    let (report, code) = check(&select, kubectl.kubeconfig());
    let expected = [
        "RF002 error a spec.nodeTaints[1]",
        "RF002 error z spec.nodeTaints[1]",
        "WL004 error lost spec.priorityClassName",
    ];
    assert_eq!(
        (findings(&report), code),
        (expected.map(str::to_owned).to_vec(), Some(1))
    );
    let (all, _) = check(&["--stored"], kubectl.kubeconfig());
    let made = u64::try_from(FLAVORS + 3).unwrap();
    assert_eq!(
        all["summary"]["objects"],
        objects_before + made,
        "{}",
        all["summary"]
    );
    assert_eq!(all["summary"]["unreadable"], 0);

    reports(&kubectl, &select);
    fixture::sweep(&kubectl);
}

/// An API server accepts the printed reports.
#[track_caller]
fn reports(kubectl: &Kubectl, select: &[&str]) {
    let definitions: String = ["PolicyReport", "ClusterPolicyReport"]
        .iter()
        .map(|kind| definition(kind))
        .collect();
    kubectl
        .apply(&definitions, &[])
        .expect_accepted_without_warning();
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "-f",
        "-",
    ];
    kubectl
        .with_input(&established, &definitions)
        .expect_accepted();

    let kubeconfig = kubectl.kubeconfig().to_str().unwrap();
    let print = ["check", "--kubeconfig", kubeconfig, "--policy-report", "-"];
    let output = lockkeeper::run(&[&print[..], select].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    kubectl
        .apply(&text, &["--server-side"])
        .expect_accepted_without_warning();

    let results = |arguments: &[&str]| {
        let report = kubectl.get(arguments);
        let results = report["results"].as_array().unwrap().clone();
        let fail = report["summary"]["fail"].as_u64().unwrap();
        assert_eq!(results.len(), usize::try_from(fail).unwrap(), "{report:#}");
        let named = results.iter().map(|result| {
            let resource = &result["resources"][0];
            format!(
                "{} {} {}",
                result["policy"], resource["kind"], resource["name"]
            )
        });
        named.map(|it| it.replace('"', "")).collect::<BTreeSet<_>>()
    };
    let flavors = results(&["clusterpolicyreports.wgpolicyk8s.io", "lockkeeper"]);
    assert_eq!(
        flavors,
        ["RF002 ResourceFlavor a", "RF002 ResourceFlavor z"]
            .map(str::to_owned)
            .into()
    );
    let workloads = results(&["policyreports.wgpolicyk8s.io", "lockkeeper", "-n", "team"]);
    assert_eq!(workloads, ["WL004 Workload lost".to_owned()].into());
    // After an hour without changes there is nothing to write.
    kubectl
        .apply(&text, &["--server-side"])
        .expect_accepted_without_warning();
    kubectl
        .with_input(&["delete", "-f", "-"], &definitions)
        .expect_accepted();
}

fn missing_list_rights_are_reported(stage: &mut Fixture, _: Protocol) {
    let kubectl = start_without_webhook(stage);
    let stranger = stage.cluster().unprivileged().to_owned();
    let stranger = stranger.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = lockkeeper::run(&[&["check", "--kubeconfig", stranger], arguments].concat());
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), printed)
    };
    for arguments in [["examples/good"], ["--stored"]] {
        let (code, printed) = run(&arguments);
        assert_eq!(code, Some(2), "{printed}");
        for part in [
            "the user of the kubeconfig may not list",
            "grant the verb list",
            "cannot list resource",
        ] {
            assert!(printed.contains(part), "{printed}");
        }
        let lists_definitions = printed.contains("customresourcedefinitions");
        assert_eq!(lists_definitions, arguments != ["--stored"], "{printed}");
    }

    // The missing rights are granted one by one. The API server loads them a moment later.
    let mut given = BTreeSet::new();
    let mut last = String::new();
    let code = wait::until(
        || {
            let (code, printed) = run(&["--stored"]);
            last = printed;
            let Some((_, rest)) = last.split_once("may not list ") else {
                return Ok(Some(code));
            };
            // Such as `pods (v1)`, or `jobs (batch/v1)`.
            let (plural, rest) = rest.split_once(" (").unwrap();
            let (version, _) = rest.split_once(')').unwrap();
            let group = version.split_once('/').map_or("", |(group, _)| group);
            if given.insert((group.to_owned(), plural.to_owned())) {
                kubectl.apply(&role(&given), &[]).expect_accepted();
            }
            Ok(None)
        },
        || "there is always another right missing".to_owned(),
    );
    let code = code.unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!(code, Some(0));
    assert!(given.len() > 5, "{given:?}");
    kubectl
        .with_input(&["delete", "-f", "-"], &role(&given))
        .expect_accepted();
}

/// The right to list these, for the account without rights.
fn role(given: &BTreeSet<(String, String)>) -> String {
    let rules: Vec<Value> = given
        .iter()
        .map(|(group, plural)| json!({"apiGroups": [group], "resources": [plural], "verbs": ["list"]}))
        .collect();
    let metadata = json!({"name": "stranger-lists"});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "stranger-lists"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": UNPRIVILEGED_ACCOUNT}]});
    format!("{role}\n---\n{binding}\n")
}

fn flavor(name: &str, taints: &Value) -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ResourceFlavor",
        "metadata": {"name": name}, "spec": {"nodeTaints": taints}})
}

/// A CRD of the Policy working group's reports, as strict as its own in the fields that lockkeeper writes.
fn definition(kind: &str) -> String {
    let singular = kind.to_lowercase();
    let scope = if kind == "PolicyReport" {
        "Namespaced"
    } else {
        "Cluster"
    };
    let text = json!({"type": "string"});
    let whole = json!({"type": "integer"});
    let resource = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "name": text, "namespace": text}});
    let result = json!({"type": "object", "required": ["policy"], "properties": {
        "source": text, "policy": text, "rule": text, "message": text,
        "result": {"type": "string", "enum": ["pass", "fail", "warn", "error", "skip"]},
        "severity": {"type": "string", "enum": ["critical", "high", "low", "medium", "info"]},
        "resources": {"type": "array", "items": resource},
        "properties": {"type": "object", "additionalProperties": text}}});
    let summary = json!({"type": "object", "properties": {
        "pass": whole, "fail": whole, "warn": whole, "error": whole, "skip": whole}});
    let schema = json!({"type": "object", "properties": {
        "results": {"type": "array", "items": result}, "summary": summary}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.wgpolicyk8s.io"),
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/wg-policy-prototypes"}},
        "spec": {"group": "wgpolicyk8s.io", "scope": scope,
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1alpha2", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    format!("{definition}\n---\n")
}
