#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_policies::registry::{known_registrations, registrations};
use lockkeeper_policies::settings::Settings;
use serde_json::{Value, json};

const CA: &[u8] = b"-----BEGIN CERTIFICATE-----\n";

fn service() -> Endpoint {
    Endpoint::Service {
        namespace: "lockkeeper-system".to_owned(),
        name: "lockkeeper".to_owned(),
        port: 8443,
    }
}

/// The webhooks of both configurations, the validating ones first, where nothing of others is wanted.
fn webhooks(endpoint: &Endpoint) -> Vec<Value> {
    let kinds = registrations(&BTreeSet::new(), &Settings::default());
    webhooks_for(endpoint, &kinds)
}

fn webhooks_for(endpoint: &Endpoint, kinds: &[Registration]) -> Vec<Value> {
    let (validating, mutating) = configurations(endpoint, CaSource::Inline(CA), kinds);
    let lists = [
        serde_json::to_value(validating).unwrap(),
        serde_json::to_value(mutating).unwrap(),
    ];
    lists
        .iter()
        .flat_map(|list| list["webhooks"].as_array().unwrap().clone())
        .collect()
}

fn summary(webhook: &Value) -> String {
    let rule = &webhook["rules"][0];
    let words = |key: &str| {
        let words: Vec<&str> = rule[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|w| w.as_str().unwrap())
            .collect();
        words.join(",")
    };
    let scope = rule["scope"].as_str().unwrap();
    format!(
        "{} {} {}/{} {} {scope} {}",
        webhook["name"].as_str().unwrap(),
        webhook["failurePolicy"].as_str().unwrap(),
        words("apiGroups"),
        words("apiVersions"),
        words("resources"),
        words("operations"),
    )
}

#[test]
fn own_webhooks_have_expected_rules() {
    let summaries: Vec<String> = webhooks(&service()).iter().map(summary).collect();
    assert_eq!(
        summaries,
        [
            "clusterqueues.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 clusterqueues Cluster CREATE,UPDATE,DELETE",
            "cohorts.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 cohorts Cluster CREATE,UPDATE",
            "resourceflavors.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 resourceflavors Cluster CREATE,UPDATE",
            "localqueues.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 localqueues Namespaced CREATE,UPDATE",
            "workloads.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 workloads Namespaced CREATE,UPDATE",
            "jobkinds.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 jobkinds Cluster CREATE,UPDATE",
            "priorityclasses.validate.lockkeeper.dev Ignore scheduling.k8s.io/v1 priorityclasses Cluster CREATE,UPDATE,DELETE",
            "pods.validate.lockkeeper.dev Ignore /v1 pods Namespaced CREATE,UPDATE",
            "jobs.validate.lockkeeper.dev Ignore batch/v1 jobs Namespaced CREATE,UPDATE",
            "jobsets.validate.lockkeeper.dev Ignore jobset.x-k8s.io/v1alpha2 jobsets Namespaced CREATE,UPDATE",
            "clusterqueues.default.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 clusterqueues Cluster CREATE,UPDATE",
            "resourceflavors.default.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 resourceflavors Cluster CREATE,UPDATE",
            "workloads.default.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 workloads Namespaced CREATE,UPDATE",
            "pods.default.lockkeeper.dev Ignore /v1 pods Namespaced CREATE",
            "jobs.default.lockkeeper.dev Ignore batch/v1 jobs Namespaced CREATE",
            "jobsets.default.lockkeeper.dev Ignore jobset.x-k8s.io/v1alpha2 jobsets Namespaced CREATE",
        ]
    );
}

#[test]
fn foreign_webhooks_have_expected_rules() {
    let foreign_kinds = ForeignKinds::ALL.into();
    let kinds = registrations(&foreign_kinds, &Settings::default());
    let own: BTreeSet<String> = webhooks(&service()).iter().map(summary).collect();
    let all = webhooks_for(&service(), &kinds);
    let all = all.iter().map(summary);
    let foreign: Vec<String> = all.filter(|it| !own.contains(it)).collect();
    assert_eq!(
        foreign,
        [
            "clusterqueues.kueue.x-k8s.io.validate.lockkeeper.dev Ignore kueue.x-k8s.io/v1beta2 clusterqueues Cluster CREATE,UPDATE,DELETE",
            "cohorts.kueue.x-k8s.io.validate.lockkeeper.dev Ignore kueue.x-k8s.io/v1beta2 cohorts Cluster CREATE,UPDATE",
            "resourceflavors.kueue.x-k8s.io.validate.lockkeeper.dev Ignore kueue.x-k8s.io/v1beta2 resourceflavors Cluster CREATE,UPDATE",
            "localqueues.kueue.x-k8s.io.validate.lockkeeper.dev Ignore kueue.x-k8s.io/v1beta2 localqueues Namespaced CREATE,UPDATE",
            "elasticquotas.scheduling.sigs.k8s.io.validate.lockkeeper.dev Ignore scheduling.sigs.k8s.io/v1alpha1 elasticquotas Namespaced CREATE,UPDATE",
        ]
    );
}

/// A configuration with the same name twice is rejected.
#[test]
fn webhook_names_are_unique() {
    let all = webhooks_for(&service(), &known_registrations());
    let names: BTreeSet<&str> = all.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), all.len());
}

#[test]
fn webhooks_cover_only_ruled_or_defaulted_kinds() {
    let expected: usize = registrations(&BTreeSet::new(), &Settings::default())
        .iter()
        .map(|kind| {
            usize::from(!kind.validated_on.is_empty()) + usize::from(!kind.defaulted_on.is_empty())
        })
        .sum();
    let all = webhooks(&service());
    assert_eq!(all.len(), expected);
    for webhook in &all {
        let rules = webhook["rules"].as_array().unwrap();
        let [rule] = rules.as_slice() else {
            panic!("{webhook:#}");
        };
        let text = rule.to_string();
        assert!(!text.contains('*'), "{text}");
        let resources = rule["resources"].to_string();
        assert!(!resources.contains('/'), "no subresource: {resources}");
        assert!(webhook["namespaceSelector"].is_null(), "{webhook:#}");
    }
}

#[test]
fn only_own_kinds_fail_closed() {
    for webhook in webhooks_for(&service(), &known_registrations()) {
        let own = webhook["rules"][0]["apiGroups"] == json!(["lockkeeper.dev"]);
        let expected = if own { "Fail" } else { "Ignore" };
        assert_eq!(webhook["failurePolicy"], expected, "{webhook:#}");
    }
}

#[test]
fn webhooks_have_expected_settings() {
    for webhook in webhooks_for(&service(), &known_registrations()) {
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["timeoutSeconds"], TIMEOUT_SECONDS);
        assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]));
        assert_eq!(webhook["matchPolicy"], "Equivalent");
        let name = webhook["name"].as_str().unwrap();
        let again = &webhook["reinvocationPolicy"];
        if name.contains(".default.") {
            assert_eq!(again, "IfNeeded");
        } else {
            assert!(again.is_null());
        }
    }
}

#[test]
fn jobs_and_queued_pods_have_object_selector() {
    for webhook in webhooks(&service()) {
        let selector = &webhook["objectSelector"];
        let name = webhook["name"].as_str().unwrap();
        // Rules concern pods with one of two labels: a match condition selects them.
        if !name.starts_with("jobs") && name != "pods.default.lockkeeper.dev" {
            assert!(selector.is_null(), "{webhook:#}");
            continue;
        }
        let requirement = json!({"key": "lockkeeper.dev/queue-name", "operator": "Exists"});
        assert_eq!(selector, &json!({ "matchExpressions": [requirement] }));
    }
}

#[test]
fn api_server_system_classes_and_garbage_collector_are_exempt() {
    for webhook in webhooks(&service()) {
        let conditions = webhook["matchConditions"].as_array().unwrap();
        let names: Vec<&str> = conditions
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        let expected: &[&str] = match webhook["name"].as_str().unwrap() {
            "priorityclasses.validate.lockkeeper.dev" => {
                &["not-by-the-api-server", "not-a-system-class"]
            }
            "pods.validate.lockkeeper.dev" => &[
                "not-by-the-api-server",
                "not-an-update-of-the-garbage-collector",
                "has-a-label",
            ],
            name if name.starts_with("jobs") || name.starts_with("pods.") => &[
                "not-by-the-api-server",
                "not-an-update-of-the-garbage-collector",
            ],
            _ => &["not-by-the-api-server"],
        };
        assert_eq!(names, expected);
    }
}

#[test]
fn service_endpoint_has_path_and_port() {
    let all = webhooks(&service());
    let client = |path: &str| {
        json!({
            "caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "service": {
                "namespace": "lockkeeper-system",
                "name": "lockkeeper",
                "path": path,
                "port": 8443,
            },
        })
    };
    assert_eq!(all.first().unwrap()["clientConfig"], client("/validate"));
    assert_eq!(all.last().unwrap()["clientConfig"], client("/mutate"));
}

#[test]
fn url_endpoint_has_path() {
    for base in ["https://10.0.0.1:9443", "https://10.0.0.1:9443/"] {
        let all = webhooks(&Endpoint::Url(base.to_owned()));
        let first = &all.first().unwrap()["clientConfig"];
        assert_eq!(first["url"], "https://10.0.0.1:9443/validate");
        assert!(first["service"].is_null());
        let last = &all.last().unwrap()["clientConfig"];
        assert_eq!(last["url"], "https://10.0.0.1:9443/mutate");
    }
}

/// The entries that a user rule with these kinds adds to the webhook configurations.
#[track_caller]
fn check_users(kinds: &str, operations: &str, config: &Value, expected: &[&str]) {
    let text = format!(
        "---\nid: TEAM001\nname: a\nkinds: [{kinds}]\noperations: [{operations}]\n\
         validations: [{{expression: 'true'}}]\n---\n"
    );
    let name = "a.md".to_owned();
    let rules =
        crate::user_rule_dirs::compile(&[lockkeeper_policies::user_rules::Source { name, text }])
            .unwrap();
    let config = serde_json::from_value(config.clone()).unwrap();
    let settings = lockkeeper_policies::registry::settings_with(&config, rules).unwrap();
    let kinds = registrations(&config.webhook.foreign_kinds, &settings);
    let without = webhooks(&service());
    let without: Vec<String> = without.iter().map(summary).collect();
    let all = webhooks_for(&service(), &kinds);
    let names: BTreeSet<&str> = all.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names.len(), all.len());
    let summaries: Vec<String> = all.iter().map(summary).collect();
    let new: Vec<&str> = summaries
        .iter()
        .filter(|it| !without.contains(it))
        .map(String::as_str)
        .collect();
    assert_eq!(new, expected);
}

#[test]
fn webhooks_cover_kinds_of_user_rules() {
    let none = json!({});
    let deployments = "{group: apps, version: v1, kind: Deployment}";
    for (kinds, operations, expected) in [
        (
            deployments,
            "CREATE",
            &["deployments.v1.apps.rules.lockkeeper.dev Ignore apps/v1 deployments * CREATE"][..],
        ),
        (
            "{group: networking.k8s.io, version: '*', kind: NetworkPolicy}, {version: v1, kind: Node}",
            "CREATE, DELETE",
            &[
                "nodes.v1.rules.lockkeeper.dev Ignore /v1 nodes * CREATE,DELETE",
                "networkpolicies.networking.k8s.io.rules.lockkeeper.dev Ignore networking.k8s.io/* networkpolicies * CREATE,DELETE",
            ],
        ),
        (
            "{group: a.example.com, version: v1, kind: Chassis, plural: chassis}, {group: a.example.com, version: '*', kind: Chassis, plural: chassis}",
            "UPDATE",
            &["chassis.a.example.com.rules.lockkeeper.dev Ignore a.example.com/* chassis * UPDATE"],
        ),
        // More of a kind of ours.
        (
            "{group: lockkeeper.dev, version: v1alpha1, kind: Cohort}",
            "CREATE, DELETE",
            &[
                "cohorts.validate.lockkeeper.dev Fail lockkeeper.dev/v1alpha1 cohorts Cluster CREATE,UPDATE,DELETE",
            ],
        ),
        // All Jobs when they are made; those with the label when they change.
        (
            "{group: batch, version: v1, kind: Job}",
            "CREATE",
            &[
                "jobs.validate.lockkeeper.dev Ignore batch/v1 jobs Namespaced UPDATE",
                "jobs.v1.batch.rules.lockkeeper.dev Ignore batch/v1 jobs * CREATE",
            ],
        ),
        // Kueue's, although its kinds are not enabled.
        (
            "{group: kueue.x-k8s.io, version: '*', kind: ClusterQueue}",
            "CREATE",
            &[
                "clusterqueues.kueue.x-k8s.io.rules.lockkeeper.dev Ignore kueue.x-k8s.io/* clusterqueues * CREATE",
            ],
        ),
    ] {
        check_users(kinds, operations, &none, expected);
    }
    let off = json!({"rules": {"actions": {"TEAM001": "off"}}});
    check_users(deployments, "CREATE", &off, &[]);
}
