//! Objects in all supported releases.
//!
//! Without recorded answers only a few objects are tested.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::decode::Decoder;
use super::table::Type;
use super::{BuiltInKind, Problem, Release, defaults, recorded_cases};
use crate::crd::{Body, FieldValidation, Request, Verdict};
use crate::finding::Finding;
use serde_json::{Value, json};

/// A pod with a part for each of the defaults.
fn pod_spec() -> Value {
    let probe = json!({"httpGet": {"port": 80}});
    json!({
        "serviceAccountName": "a",
        "containers": [{
            "name": "a", "image": "b", "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": probe, "readinessProbe": {"grpc": {"port": 81}},
            "lifecycle": {"preStop": probe}, "resources": {"limits": {"cpu": "1"}},
        }],
        "initContainers": [{"name": "c", "image": "d", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "a", "secret": {"secretName": "a"}},
            {"name": "b", "configMap": {"name": "a"}},
            {"name": "c", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "a"}}]}},
            {"name": "e", "emptyDir": {}},
            {"name": "f", "hostPath": {"path": "/a"}},
            {"name": "g", "ephemeral": {"volumeClaimTemplate": {"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}}},
        ],
    })
}

fn objects() -> Vec<Value> {
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod_spec()});
    let workload =
        json!({"selector": {"matchLabels": labels}, "template": template, "serviceName": "a"});
    let mut job_template = template.clone();
    job_template["spec"]["restartPolicy"] = "Never".into();
    let client = json!({"service": {"namespace": "a", "name": "a"}});
    let webhook = json!({
        "name": "a.example.com", "clientConfig": client, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
    });
    let mut daemon_set = workload.clone();
    daemon_set.as_object_mut().unwrap().remove("serviceName");
    let objects = [
        ("v1", "Pod", "spec", pod_spec()),
        ("apps/v1", "StatefulSet", "spec", workload),
        ("apps/v1", "DaemonSet", "spec", daemon_set.clone()),
        ("apps/v1", "Deployment", "spec", daemon_set),
        ("batch/v1", "Job", "spec", json!({"template": job_template})),
        (
            "batch/v1",
            "CronJob",
            "spec",
            json!({"schedule": "1 * * * *", "jobTemplate": {"spec": {"template": job_template}}}),
        ),
        (
            "v1",
            "Service",
            "spec",
            json!({"ports": [{"port": 80}], "selector": labels}),
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "spec",
            json!({"maxReplicas": 3, "behavior": {"scaleUp": {}}, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}),
        ),
        (
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "webhooks",
            json!([webhook]),
        ),
    ];
    let object = |(api_version, kind, key, value): (&str, &str, &str, Value)| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, key: value});
    objects.into_iter().map(object).chain(recorded()).collect()
}

/// The new objects that an API server of the newest release accepted.
fn recorded() -> Vec<Value> {
    let cases = recorded_cases::cases().into_iter();
    let cases = cases.filter(|it| it["operation"] == "CREATE" && it["stage"] == "accepted");
    let whole = |case: &Value| {
        let mut fields = case["object"].as_object()?.clone();
        for key in ["apiVersion", "kind"] {
            fields.insert(key.to_owned(), case[key].clone());
        }
        Some(Value::Object(fields))
    };
    cases.filter_map(|it| whole(&it)).collect()
}

fn find(release: Release, object: &Value) -> BuiltInKind {
    let text = |key: &str| object[key].as_str().unwrap();
    BuiltInKind::find_in(release, text("apiVersion"), text("kind")).unwrap()
}

/// The findings about the creation of an object, or why it cannot be decoded.
fn causes(kind: BuiltInKind, object: &Value) -> Vec<String> {
    let request = Request {
        body: Body::Object(object),
        old: None,
        is_status: false,
        field_validation: FieldValidation::Ignore,
        namespace: "default",
    };
    match kind.answer(&request).verdict {
        Verdict::Accepted(_) => Vec::new(),
        Verdict::Invalid(findings) => findings.iter().map(Finding::text).collect(),
        Verdict::Undecodable { reason, .. } => vec![reason],
    }
}

#[test]
fn defaults_have_only_fields_of_the_release() {
    let mut count = 0;
    for release in Release::SUPPORTED {
        for object in objects() {
            let kind = find(release, &object);
            let root = Type::Struct(kind.definition);
            let mut defaulted = Decoder::new(kind.table).value(&root, &object, "");
            defaults::set_defaults(kind, &mut defaulted);
            let problems = kind.problems(&defaulted);
            assert_eq!(problems, [], "{release} {object}");
            count += usize::from(defaulted != object);
        }
    }
    assert!(count >= 9 * Release::SUPPORTED.len());
}

#[test]
fn validation_requires_no_field_that_an_older_release_lacks() {
    for object in objects() {
        let newest = find(Release::NEWEST, &object);
        assert_eq!(causes(newest, &object), [""; 0], "{object}");
        for release in Release::SUPPORTED {
            let kind = find(release, &object);
            let is_later =
                |it: &Problem| matches!(it, Problem::Unknown { later, .. } if !later.is_empty());
            // Without a later field the object may be incomplete.
            if !kind.problems(&object).iter().any(is_later) {
                assert_eq!(causes(kind, &object), [""; 0], "{release} {object}");
            }
        }
    }
}
