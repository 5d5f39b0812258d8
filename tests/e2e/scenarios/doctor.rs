//! `lockkeeper doctor` on a cluster.

use serde_json::{Value, json};

use super::Scenario;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};

pub fn scenarios() -> Vec<Scenario> {
    let name = "doctor finds the faults of a webhook on a cluster";
    vec![Scenario::new(name, faults_are_found).only(Protocol::Http1)]
}

fn faults_are_found(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook();
    let (before, _) = findings(&kubectl, &[]);
    assert!(!before.iter().any(|it| it.contains("faulty")), "{before:?}");

    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "faulty"},
        "webhooks": [{
            "name": "pods.faulty.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "faulty"}},
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
            }],
        }],
    });
    let configuration = configuration.to_string();
    kubectl.apply(&configuration, &[]).expect_accepted();
    let expected = [
        "DR001 ValidatingWebhookConfiguration/faulty",
        "DR002 ValidatingWebhookConfiguration/faulty",
        "DR010 ValidatingWebhookConfiguration/faulty",
        "DR020 Service/default/faulty",
    ];
    let (found, _) = findings(&kubectl, &[]);
    let added: Vec<&String> = found.iter().filter(|it| !before.contains(it)).collect();
    assert_eq!(added, expected);

    // An account without rights learns what was not checked.
    let (found, not_checked) = findings(&kubectl, &["--as", "viewer"]);
    assert!(found.is_empty(), "{found:?}");
    for plural in ["services", "validatingwebhookconfigurations", "nodes"] {
        let reason = format!("the account may not list {plural}");
        assert!(
            not_checked.iter().any(|it| it.contains(&reason)),
            "{not_checked:?}"
        );
    }

    // With the Service, its endpoints are missing.
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": "default", "name": "faulty"},
        "spec": {"selector": {"app": "faulty"}, "ports": [{"port": 443}]},
    });
    let service = service.to_string();
    kubectl.apply(&service, &[]).expect_accepted();
    let (found, _) = findings(&kubectl, &[]);
    assert!(
        found.contains(&"DR021 Service/default/faulty".to_owned()),
        "{found:?}"
    );
    for object in [&service, &configuration] {
        let delete = ["delete", "-f", "-"];
        kubectl.with_input(&delete, object).expect_accepted();
    }
    let (after, _) = findings(&kubectl, &[]);
    assert_eq!(after, before);
}

/// The findings as `id object`, and what was not checked.
#[track_caller]
fn findings(kubectl: &Kubectl, flags: &[&str]) -> (Vec<String>, Vec<String>) {
    let kubeconfig = kubectl.kubeconfig().to_str().unwrap();
    let with = ["doctor", "--output", "json", "--kubeconfig", kubeconfig];
    let output = lockkeeper::run(&[&with[..], flags].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout);
    let report: Value = report.unwrap_or_else(|e| panic!("{e}: {stderr}"));
    let findings = report["findings"].as_array().unwrap();
    let has_errors = findings.iter().any(|it| it["severity"] == "error");
    assert_eq!(
        output.status.code(),
        Some(i32::from(has_errors)),
        "{stderr}"
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = findings
        .iter()
        .map(|it| format!("{} {}", text(&it["id"]), text(&it["object"])));
    let not_checked = report["notChecked"].as_array().unwrap();
    (found.collect(), not_checked.iter().map(text).collect())
}
