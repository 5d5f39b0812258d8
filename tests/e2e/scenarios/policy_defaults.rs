//! Without the webhook, admission policies set the same defaults as the webhook.

use serde_json::{Value, json};

use super::Scenario;
use crate::fixture::{self, DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    let name = "policies set the same defaults as the webhook";
    vec![
        Scenario::new(name, policies_match_webhook_defaults)
            .only(Protocol::Http1)
            .since(36),
    ]
}

const API: &str = "lockkeeper.dev/v1alpha1";

fn policies_match_webhook_defaults(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook();
    fixture::sweep(&kubectl);
    let policies = lockkeeper::output(&["crds", "policies"]);
    kubectl
        .apply(&policies, &["--server-side"])
        .expect_accepted_without_warning();
    let flavor = object("ResourceFlavor", "defaulted", &json!({}));
    // Policies take effect a moment after they are stored.
    let fills = || {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        // Rejected while the API server does not have the schema of a new kind.
        let reply = kubectl.with_input(&create, &flavor.to_string());
        Ok(reply
            .stdout
            .contains("lockkeeper.dev/resource-in-use")
            .then_some(()))
    };
    wait::until(fills, || "the policies fill in nothing".to_owned()).unwrap();
    let alone = observed_results(&kubectl);
    kubectl
        .with_input(&["delete", "-f", "-"], &policies)
        .expect_accepted();

    let kubectl = stage.with_server(Protocol::Http1, DEFAULTS);
    let by_webhook = observed_results(&kubectl);
    for (alone, by_webhook) in alone.iter().zip(&by_webhook) {
        assert_eq!(alone, by_webhook);
    }
    assert_eq!(alone.len(), by_webhook.len());
}

/// The stored result of creations, and of two updates.
fn observed_results(kubectl: &Kubectl) -> Vec<Value> {
    let preemptions = [
        json!({}),
        json!({"preemption": {}}),
        json!({"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}}),
        json!({"preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {}}, "cohortName": "all"}),
        json!({"elastic": {}}),
        json!({"elastic": {}, "preemption": {"withinClusterQueue": "Never"}}),
    ];
    let mut out = Vec::new();
    for (position, spec) in preemptions.iter().enumerate() {
        let queue = object("ClusterQueue", &format!("q{position}"), spec);
        out.push(dry_run_create(kubectl, &queue));
    }
    let mut kept = object("ResourceFlavor", "kept", &json!({}));
    kept["metadata"]["finalizers"] = json!(["example.com/kept"]);
    out.push(dry_run_create(kubectl, &kept));
    out.push(dry_run_create(
        kubectl,
        &object("ResourceFlavor", "plain", &json!({})),
    ));

    let workload = |classes: Value| {
        let mut spec = json!({"podSets": [{"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}]});
        if let (Some(spec), Value::Object(classes)) = (spec.as_object_mut(), classes) {
            spec.extend(classes);
        }
        let mut out = object("Workload", "train", &spec);
        out["metadata"]["namespace"] = "default".into();
        out
    };
    let named = workload(json!({"priorityClassName": "system-cluster-critical"}));
    out.push(dry_run_create(kubectl, &named));
    kubectl
        .apply(&named.to_string(), &["--server-side"])
        .expect_accepted();
    // A replacement without the classes must not change them.
    let reply = kubectl.with_input(
        &["replace", "--dry-run=server", "-o", "json", "-f", "-"],
        &workload(json!({})).to_string(),
    );
    out.push(defaulted_fields(&reply.expect_accepted().stdout));
    kubectl
        .run(&[
            "delete",
            "workloads.lockkeeper.dev",
            "train",
            "-n",
            "default",
        ])
        .expect_accepted();
    out
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// An object as it would be stored.
fn dry_run_create(kubectl: &Kubectl, object: &Value) -> Value {
    let flags = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    defaulted_fields(
        &kubectl
            .with_input(&flags, &object.to_string())
            .expect_accepted()
            .stdout,
    )
}

/// The defaulted fields of an object.
fn defaulted_fields(text: &str) -> Value {
    let object: Value = serde_json::from_str(text).unwrap();
    json!({"kind": object["kind"], "name": object["metadata"]["name"],
           "finalizers": object["metadata"]["finalizers"], "spec": object["spec"]})
}
