//! Which requests a webhook reviews.

use crate::catalogue::{
    ACCESS_REVIEWS, CONDITION_ERROR, CONTROL_PLANE, Check, OWN_NAMESPACE, TIMEOUT,
    UNMATCHED_VERSION,
};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use crate::webhook::Webhook;
use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use lockkeeper_cluster_state::label_selector::matches;
use std::collections::BTreeMap;

/// The longest timeout for built-in kinds, in seconds: the API server's default.
const TIMEOUT_MAX_S: i32 = 10;

/// The namespaces that a cluster needs, and the resources there: group and plural.
const NEEDED: [(&str, &[(&str, &str)]); 2] = [
    (
        "kube-system",
        &[
            ("", "pods"),
            ("", "configmaps"),
            ("", "endpoints"),
            ("", "secrets"),
            ("", "serviceaccounts"),
            ("", "services"),
            ("apps", "daemonsets"),
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("coordination.k8s.io", "leases"),
            ("discovery.k8s.io", "endpointslices"),
        ],
    ),
    ("kube-node-lease", &[("coordination.k8s.io", "leases")]),
];

/// What the server of a webhook needs to start: its pods, and the `ReplicaSets` that create them.
const OWN: [(&str, &str); 2] = [("", "pods"), ("apps", "replicasets")];

/// Requests about access, which are never stored.
const ACCESS: [(&str, &str); 5] = [
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// The API groups that are built in.
const BUILT_IN: [&str; 8] = [
    "",
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
];

pub(crate) fn check(snapshot: &Snapshot, out: &mut Diagnosis) {
    for webhook in &snapshot.webhooks {
        check_namespaces(snapshot, webhook, out);
        check_timeout(webhook, out);
        check_access(webhook, out);
        check_conditions(webhook, out);
        check_versions(snapshot, webhook, out);
    }
}

fn finding(check: &'static Check, webhook: &Webhook, field: &str, evidence: String) -> Finding {
    Finding {
        check,
        object: webhook.object.clone(),
        field: webhook.field(field),
        evidence,
    }
}

/// Whether a list of a rule contains a value.
fn contains(list: Option<&Vec<String>>, value: &str) -> bool {
    list.is_some_and(|it| it.iter().any(|it| it == "*" || it == value))
}

/// Whether a rule matches a resource, without its subresources.
fn matches_resource(rule: &RuleWithOperations, group: &str, plural: &str) -> bool {
    let resources = rule.resources.iter().flatten();
    let mut resources = resources.map(|it| it.split_once('/').unwrap_or((it, "*")));
    contains(rule.api_groups.as_ref(), group)
        && resources.any(|(name, sub)| sub == "*" && (name == "*" || name == plural))
}

/// Whether creating or changing an object of this namespace and resource calls the webhook.
fn reviews(
    snapshot: &Snapshot,
    webhook: &Webhook,
    namespace: &str,
    (group, plural): (&str, &str),
) -> bool {
    let is_matched = webhook.rules.iter().any(|it| {
        let operations = it.operations.as_ref();
        matches_resource(it, group, plural)
            && it.scope.as_deref() != Some("Cluster")
            && (contains(operations, "CREATE") || contains(operations, "UPDATE"))
    });
    // Labels of objects are not known: a selector that needs one matches only objects made for the webhook.
    is_matched
        && matches(&webhook.object_selector, &BTreeMap::new())
        && matches(&webhook.namespace_selector, &labels_of(snapshot, namespace))
}

/// The labels of a namespace, with the one that the API server sets.
fn labels_of(snapshot: &Snapshot, namespace: &str) -> BTreeMap<String, String> {
    let mut known = snapshot.namespaces.iter();
    let found = known.find(|it| it.metadata.name.as_deref() == Some(namespace));
    let mut labels = found
        .and_then(|it| it.metadata.labels.clone())
        .unwrap_or_default();
    labels.insert(
        "kubernetes.io/metadata.name".to_owned(),
        namespace.to_owned(),
    );
    labels
}

fn check_namespaces(snapshot: &Snapshot, webhook: &Webhook, out: &mut Diagnosis) {
    if !webhook.must_answer {
        return;
    }
    let own = webhook.endpoint.as_ref();
    let own = own.map(|it| it.service.namespace.as_str());
    let system = NEEDED
        .iter()
        .map(|(namespace, resources)| (&CONTROL_PLANE, *namespace, *resources));
    let own = own.map(|it| (&OWN_NAMESPACE, it, OWN.as_slice()));
    for (check, namespace, resources) in system.chain(own) {
        let reviewed = resources
            .iter()
            .filter(|it| reviews(snapshot, webhook, namespace, **it));
        let reviewed: Vec<&str> = reviewed.map(|(_, plural)| *plural).collect();
        if reviewed.is_empty() {
            continue;
        }
        if webhook.conditions.is_empty() {
            let evidence = format!(
                "{} has failurePolicy Fail and reviews {} in namespace {namespace}",
                webhook.name,
                reviewed.join(", ")
            );
            out.findings
                .push(finding(check, webhook, "namespaceSelector", evidence));
        } else {
            out.skip(format!(
                "whether the matchConditions of {} in {} exclude namespace {namespace}: they are not evaluated",
                webhook.name, webhook.object
            ));
        }
    }
}

fn check_timeout(webhook: &Webhook, out: &mut Diagnosis) {
    let reviews_built_in = webhook.rules.iter().any(|it| {
        BUILT_IN
            .iter()
            .any(|group| contains(it.api_groups.as_ref(), group))
    });
    if webhook.timeout_s > TIMEOUT_MAX_S && reviews_built_in {
        let evidence = format!("{} has {} s", webhook.name, webhook.timeout_s);
        out.findings
            .push(finding(&TIMEOUT, webhook, "timeoutSeconds", evidence));
    }
}

fn check_access(webhook: &Webhook, out: &mut Diagnosis) {
    let matched = ACCESS.iter().filter(|(group, plural)| {
        webhook.rules.iter().any(|it| {
            matches_resource(it, group, plural) && contains(it.operations.as_ref(), "CREATE")
        })
    });
    let matched: Vec<&str> = matched.map(|(_, plural)| *plural).collect();
    // They have no labels, and no namespace.
    let is_selected = matches(&webhook.object_selector, &BTreeMap::new());
    if webhook.must_answer && is_selected && webhook.conditions.is_empty() && !matched.is_empty() {
        let evidence = format!(
            "{} has failurePolicy Fail and reviews {}",
            webhook.name,
            matched.join(", ")
        );
        out.findings
            .push(finding(&ACCESS_REVIEWS, webhook, "rules", evidence));
    }
}

fn check_conditions(webhook: &Webhook, out: &mut Diagnosis) {
    for condition in &webhook.conditions {
        let text = &condition.expression;
        let indexes = ["labels[", "annotations["];
        let guards = ["has(", " in ", ".?", "[?", "orValue"];
        let fails = indexes.iter().any(|it| text.contains(it))
            && !guards.iter().any(|it| text.contains(it));
        if fails {
            let evidence = format!("{} of {}: {text}", condition.name, webhook.name);
            out.findings.push(finding(
                &CONDITION_ERROR,
                webhook,
                "matchConditions",
                evidence,
            ));
        }
    }
}

/// Compares the versions in rules with those that CRDs serve.
fn check_versions(snapshot: &Snapshot, webhook: &Webhook, out: &mut Diagnosis) {
    if !webhook.is_exact {
        return;
    }
    for definition in &snapshot.definitions {
        let spec = &definition.spec;
        let rules = webhook.rules.iter();
        let rules = rules.filter(|it| matches_resource(it, &spec.group, &spec.names.plural));
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() {
            continue;
        }
        let served = spec.versions.iter().filter(|it| it.served);
        let unmatched = served.filter(|version| {
            !rules
                .iter()
                .any(|it| contains(it.api_versions.as_ref(), &version.name))
        });
        let unmatched: Vec<&str> = unmatched.map(|it| it.name.as_str()).collect();
        if !unmatched.is_empty() {
            let evidence = format!(
                "{} does not review {}.{} in {}",
                webhook.name,
                spec.names.plural,
                spec.group,
                unmatched.join(", ")
            );
            out.findings.push(finding(
                &UNMATCHED_VERSION,
                webhook,
                "matchPolicy",
                evidence,
            ));
        }
    }
}
