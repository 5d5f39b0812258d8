//! The API server and `check` give the same answers by the same admission policies.

use std::collections::BTreeSet;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Scenario;
use crate::ROOT;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::wait;

const GROUP_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The label by which the binding of a case selects its object.
const LABEL: &str = "case";

pub fn scenarios() -> Vec<Scenario> {
    let name = "check and the API server give the same answers by admission policies";
    vec![
        Scenario::new(name, answers_are_the_same)
            .only(Protocol::Http1)
            .since(36),
    ]
}

/// A case of `tests/samples/admission_policies.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    spec: Value,
    #[serde(default)]
    binding: Value,
    #[serde(default)]
    params: Vec<Value>,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old: Value,
    user: Option<String>,
    /// The mutations of a mutating policy with the same binding.
    #[serde(default)]
    mutations: Vec<Value>,
    #[serde(default)]
    reinvocation: Option<String>,
    /// The fields that make the object invalid.
    #[serde(default)]
    fields: Vec<String>,
}

/// The objects of a case.
struct Objects {
    name: String,
    policies: Vec<Value>,
    bindings: Vec<Value>,
    params: Vec<Value>,
    object: Value,
    old: Option<Value>,
    user: Option<String>,
    fields: Vec<String>,
}

/// An answer: the denials, of which the API server gives only the first, and the warnings.
#[derive(Debug, PartialEq)]
struct Answer {
    is_accepted: bool,
    /// Those of the invalid fields that the API server reports, or that `check` reports and no others.
    fields: BTreeSet<String>,
    denials: BTreeSet<String>,
    warnings: BTreeSet<String>,
}

fn answers_are_the_same(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook_and_rules();
    let text = fs::read_to_string(format!("{ROOT}/tests/samples/admission_policies.yaml")).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&text).unwrap();
    let count = cases.len();
    let cases: Vec<Objects> = cases.into_iter().enumerate().map(objects).collect();
    install(&kubectl, &cases);
    let folder = TempDir::new().unwrap();
    let mut differences = Vec::new();
    for case in &cases {
        let (expected, found) = (api_answer(&kubectl, case), check_answer(&folder, case));
        // The API server gives the first denial only.
        let is_same = expected.is_accepted == found.is_accepted
            && expected.denials.is_subset(&found.denials)
            && expected.fields == found.fields
            && expected.fields.len() == case.fields.len()
            && expected.warnings == found.warnings;
        if !is_same {
            differences.push(format!("{}:\n  {expected:?}\n  {found:?}", case.name));
        }
    }
    policies_of_the_cluster_count(&kubectl, &folder, &cases[0]);
    remove(&kubectl, &cases);
    println!("{} of {count} answers agree", count - differences.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn merged(mut base: Value, patch: &Value) -> Value {
    if !patch.is_null() {
        json_patch::merge(&mut base, patch);
    }
    base
}

fn objects((number, case): (usize, Case)) -> Objects {
    let label = format!("policy-{number}");
    let everything = json!({"resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
    ]});
    let policy = json!({
        "apiVersion": GROUP_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": label},
        "spec": merged(json!({"matchConstraints": everything}), &case.spec),
    });
    let only_case = json!({
        "policyName": label, "validationActions": ["Deny"],
        "matchResources": {"objectSelector": {"matchLabels": {LABEL: label}}},
    });
    let binding = json!({
        "apiVersion": GROUP_VERSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": label},
        "spec": merged(only_case, &case.binding),
    });
    let (mut policies, mut bindings) = (vec![policy], vec![binding]);
    if !case.mutations.is_empty() {
        let constraints = json!({"resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]},
        ]});
        let reinvocation = case.reinvocation.as_deref().unwrap_or("Never");
        policies.push(json!({
            "apiVersion": GROUP_VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": label},
            "spec": {"matchConstraints": constraints, "mutations": case.mutations, "reinvocationPolicy": reinvocation},
        }));
        let resources = bindings[0]["spec"]["matchResources"].clone();
        bindings.push(json!({
            "apiVersion": GROUP_VERSION, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": label},
            "spec": {"policyName": label, "matchResources": resources},
        }));
    }
    let base = if case.object["kind"].is_null() {
        deployment()
    } else {
        json!({})
    };
    let labelled = |patch: &Value| {
        let mut object = merged(base.clone(), patch);
        object["metadata"]["labels"][LABEL] = json!(label);
        if !case.old.is_null() {
            object["metadata"]["name"] = json!(label);
        }
        object
    };
    Objects {
        name: case.name,
        policies,
        bindings,
        params: case.params,
        object: labelled(&case.object),
        old: (!case.old.is_null()).then(|| labelled(&case.old)),
        user: case.user,
        fields: case.fields,
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "policies", "labels": {"team": "x"}},
        "spec": {
            "replicas": 7,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "a", "image": "registry.example/a:1", "resources": {"limits": {"memory": "1024Mi"}}},
                    {"name": "b", "image": "b:1", "resources": {"limits": {"memory": "1Gi"}}},
                ]},
            },
        },
    })
}

/// The namespaces and the definition that the objects of the cases need.
fn world() -> Vec<Value> {
    let namespace = |name: &str| {
        let metadata = json!({"name": name, "labels": {"zone": "z"}});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    let version = |name: &str, is_stored: bool| {
        let spec = json!({"type": "object", "properties": {
            "size": {"type": "integer"}, "colour": {"type": "string", "default": "red"},
        }});
        json!({
            "name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gauges.policies.example.com"},
        "spec": {
            "group": "policies.example.com", "scope": "Namespaced",
            "names": {"kind": "Gauge", "plural": "gauges"},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    });
    vec![
        namespace("policies"),
        namespace("policies-params"),
        definition,
    ]
}

fn list<'a>(items: impl IntoIterator<Item = &'a Value>) -> String {
    let items: Vec<&Value> = items.into_iter().collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// A case that denies, after all others. It has parameters, because the API server lists those on its own.
fn sentinel() -> Objects {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "params.data.max == '1'", "message": "in effect"}],
    });
    let case = Case {
        name: "sentinel".to_owned(),
        spec,
        binding: json!({"paramRef": {"name": "sentinel", "parameterNotFoundAction": "Allow"}}),
        params: vec![json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sentinel", "namespace": "policies"},
            "data": {"max": "5"},
        })],
        object: Value::Null,
        old: Value::Null,
        user: None,
        mutations: vec![json!({
            "patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/kind', value: 'None'}]"},
        })],
        reinvocation: None,
        fields: Vec::new(),
    };
    objects((usize::MAX, case))
}

/// Applies everything, and waits until the policies are in effect.
#[track_caller]
fn install(kubectl: &Kubectl, cases: &[Objects]) {
    kubectl.apply(&list(&world()), &[]).expect_accepted();
    let served = wait::until(
        || Ok((kubectl.run(&["get", "gauges", "-n", "policies"]).code == Some(0)).then_some(())),
        || "the custom resource is never served".to_owned(),
    );
    served.unwrap();
    let sentinel = sentinel();
    let all = || cases.iter().chain([&sentinel]);
    let params = all().flat_map(|it| &it.params);
    let olds = all().filter_map(|it| it.old.as_ref());
    kubectl
        .apply(&list(params.chain(olds)), &[])
        .expect_accepted();
    let policies = all().flat_map(|it| &it.policies);
    let bindings = all().flat_map(|it| &it.bindings);
    kubectl
        .apply(&list(policies.chain(bindings)), &[])
        .expect_accepted();
    // The last policy and the last binding are seen after all others.
    let in_effect = wait::until(
        || Ok((!api_answer(kubectl, &sentinel).is_accepted).then_some(())),
        || "the policies are never in effect".to_owned(),
    );
    in_effect.unwrap();
}

/// Deletes what would change the answers to other trials.
#[track_caller]
fn remove(kubectl: &Kubectl, cases: &[Objects]) {
    let sentinel = sentinel();
    let policies = cases.iter().chain([&sentinel]);
    let policies = policies.flat_map(|it| it.bindings.iter().chain(&it.policies));
    let flags = ["delete", "--wait=false", "--ignore-not-found", "-f", "-"];
    kubectl
        .with_input(&flags, &list(policies))
        .expect_accepted();
    // The policies may deny this until the API server has seen that they are deleted.
    let olds = list(cases.iter().filter_map(|it| it.old.as_ref()));
    let deleted = wait::until(
        || Ok((kubectl.with_input(&flags, &olds).code == Some(0)).then_some(())),
        || "the objects are never deleted".to_owned(),
    );
    deleted.unwrap();
    kubectl
        .with_input(&flags, &list(&world()))
        .expect_accepted();
}

/// The flags for the user of a case, who may do everything.
fn user_flags(case: &Objects, names: [&str; 2]) -> Vec<String> {
    let Some(user) = &case.user else {
        return Vec::new();
    };
    let [user_flag, group_flag] = names;
    [user_flag, user, group_flag, "system:masters"]
        .map(str::to_owned)
        .to_vec()
}

fn api_answer(kubectl: &Kubectl, case: &Objects) -> Answer {
    let verb = if case.old.is_some() {
        "replace"
    } else {
        "create"
    };
    let user = user_flags(case, ["--as", "--as-group"]);
    let mut arguments = vec![verb, "--dry-run=server", "-f", "-"];
    arguments.extend(user.iter().map(String::as_str));
    let answer = kubectl.with_input(&arguments, &case.object.to_string());
    let starts = ["ValidatingAdmissionPolicy 'policy-", "policy 'policy-"];
    let denial = starts.iter().find_map(|it| answer.stderr.find(it));
    let is_reported = |field: &&String| answer.stderr.contains(&format!("{field}: "));
    let is_accepted = answer.code == Some(0);
    let warnings = answer
        .stderr
        .lines()
        .filter_map(|it| it.strip_prefix("Warning: "));
    Answer {
        is_accepted,
        fields: case.fields.iter().filter(is_reported).cloned().collect(),
        denials: denial
            .filter(|_| !is_accepted)
            .map(|at| answer.stderr[at..].trim().to_owned())
            .into_iter()
            .collect(),
        warnings: warnings.map(str::to_owned).collect(),
    }
}

/// Without `--policies` those of the cluster are evaluated, and with a kubeconfig only.
#[track_caller]
fn policies_of_the_cluster_count(kubectl: &Kubectl, folder: &TempDir, case: &Objects) {
    let file = folder.path().join("denied.json");
    fs::write(&file, case.object.to_string()).unwrap();
    let kubeconfig = kubectl.kubeconfig().to_str().unwrap();
    let arguments = ["check", "--select", "SC", file.to_str().unwrap()];
    let offline = lockkeeper::run(&arguments);
    assert_eq!(offline.status.code(), Some(0));
    let online = lockkeeper::run(&[&arguments[..], &["--kubeconfig", kubeconfig]].concat());
    assert_eq!(online.status.code(), Some(1));
    let report = String::from_utf8_lossy(&online.stdout);
    let name = case.policies[0]["metadata"]["name"].as_str().unwrap();
    let expected = format!("ValidatingAdmissionPolicy '{name}' with binding '{name}' denied");
    assert!(report.contains(&expected), "{report}");
}

fn check_answer(folder: &TempDir, case: &Objects) -> Answer {
    let path = |name: &str, objects: String| {
        let path = folder.path().join(name);
        fs::write(&path, objects).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let world = world();
    let mut arguments = ["check", "--output", "json", "--select", "SC", "--closed"]
        .map(str::to_owned)
        .to_vec();
    let policies = list(case.policies.iter().chain(&case.bindings));
    arguments.extend(["--policies".to_owned(), path("policies.json", policies)]);
    let existing = list(world.iter().chain(&case.params));
    arguments.extend(["--world".to_owned(), path("world.json", existing)]);
    arguments.extend(["--crds".to_owned(), path("crds.json", list(&world))]);
    if let Some(old) = &case.old {
        arguments.extend(["--old".to_owned(), path("old.json", list([old]))]);
    }
    arguments.extend(user_flags(case, ["--user", "--group"]));
    arguments.push(path("object.json", case.object.to_string()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = lockkeeper::run(&arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: {}",
            case.name,
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let findings = report["findings"].as_array().unwrap();
    let by_policies = |severity: &'static str| {
        let found = findings
            .iter()
            .filter(move |it| it["rule"] == "SC008" && it["severity"] == severity);
        found
            .map(|it| it["message"].as_str().unwrap())
            .filter_map(|it| it.split_once("Forbidden: ").map(|it| it.1))
    };
    let denials = by_policies("error");
    let warnings =
        by_policies("warning").filter(|it| !it.contains("writes this to the audit log only"));
    let invalid = findings.iter().filter(|it| it["rule"] != "SC008");
    Answer {
        fields: invalid
            .map(|it| it["field"].as_str().unwrap().to_owned())
            .collect(),
        is_accepted: output.status.code() == Some(0),
        denials: denials.map(str::to_owned).collect(),
        warnings: warnings.map(str::to_owned).collect(),
    }
}
