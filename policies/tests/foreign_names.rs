//! Findings about one object do not name objects of other namespaces: any pod can send a forged review to the webhook.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Config;
use lockkeeper_api::{ClusterQueue, LocalQueue};
use lockkeeper_policies::engine::{ReviewSubject, Verdict, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Value, json};

/// A part of the names of all objects that must not be named.
const SECRET: &str = "secret";

fn index() -> Index {
    let mut index = Index::default();
    let queue = "lockkeeper.dev/v1alpha1";
    for object in [
        json!({"apiVersion": queue, "kind": "Workload", "metadata": {"name": "secret-w", "namespace": "secret-ns"},
            "spec": {"priorityClassName": "low", "podSets": []}}),
        json!({"apiVersion": queue, "kind": "LocalQueue", "metadata": {"name": "secret-q", "namespace": "secret-ns"},
            "spec": {"clusterQueue": "research"}}),
        json!({"apiVersion": queue, "kind": "ClusterQueue", "metadata": {"name": "secret-queue"}, "spec": {}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "secret-pod", "namespace": "team",
            "labels": {"pod-group.scheduling.sigs.k8s.io": "train", "quota.scheduling.koordinator.sh/preemptible": "false",
            "quota.scheduling.koordinator.sh/can-preempt": "false"}}, "spec": {"priority": 7, "containers": []}}),
    ] {
        facts::ingest(&mut index, &object).unwrap();
    }
    index
}

fn verdict<T: ValidatedKind>(object: &Value, is_deletion: bool) -> Verdict {
    let object: T = serde_json::from_value(object.clone()).unwrap();
    let context = Context {
        cluster: &index(),
        settings: &registry::settings(&Config::default()).unwrap(),
    };
    let subject = if is_deletion {
        ReviewSubject::Delete(&object)
    } else {
        ReviewSubject::Create(&object)
    };
    review(&subject, &context)
}

#[track_caller]
fn expect_finding_without_names(verdict: &Verdict, rules: &[&str]) {
    let all = verdict.denials.iter().chain(&verdict.warnings);
    let texts: Vec<String> = all.map(ToString::to_string).collect();
    for rule in rules {
        assert!(
            texts.iter().any(|it| it.contains(rule)),
            "{rule}: {texts:?}"
        );
    }
    for text in texts {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn findings_do_not_name_foreign_objects() {
    let class = json!({"metadata": {"name": "low"}, "value": 1});
    expect_finding_without_names(&verdict::<PriorityClass>(&class, true), &["PC002"]);
    let queue = json!({"metadata": {"name": "research"}, "spec": {}});
    expect_finding_without_names(&verdict::<ClusterQueue>(&queue, true), &["CQ015"]);
    let local_queue = json!({"metadata": {"name": "main", "namespace": "team"}, "spec": {"clusterQueue": "vision"}});
    expect_finding_without_names(&verdict::<LocalQueue>(&local_queue, false), &["LQ001"]);
    let pod = json!({"metadata": {"name": "other", "namespace": "team",
        "labels": {"pod-group.scheduling.sigs.k8s.io": "train"}}, "spec": {"containers": []}});
    expect_finding_without_names(&verdict::<Pod>(&pod, false), &["PO001", "PO005"]);
}
