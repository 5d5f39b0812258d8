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
use lockkeeper_cluster_state::label_selector::{Selector, matches};
use std::collections::BTreeMap;

/// The longest timeout for built-in kinds, in seconds: the API server's default.
const TIMEOUT_MAX_S: i32 = 10;

/// The label with the name of a namespace, which the API server sets.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

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
    if snapshot.webhooks.is_empty() {
        out.skip("webhooks: there are no configurations of webhooks in the input");
    }
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

/// Whether the rules and the selector of objects match creating or changing an object of a namespaced resource.
fn matches_object(webhook: &Webhook, (group, plural): (&str, &str)) -> bool {
    let is_matched = webhook.rules.iter().any(|it| {
        let operations = it.operations.as_ref();
        matches_resource(it, group, plural)
            && it.scope.as_deref() != Some("Cluster")
            && (contains(operations, "CREATE") || contains(operations, "UPDATE"))
    });
    // Labels of objects are not known: a selector that needs one matches only objects made for the webhook.
    is_matched && matches(&webhook.object_selector, &BTreeMap::new())
}

/// Whether a namespace is selected; `None` if that depends on labels that are not known.
fn selects_namespace(snapshot: &Snapshot, webhook: &Webhook, namespace: &str) -> Option<bool> {
    let name = BTreeMap::from([(NAME_LABEL.to_owned(), namespace.to_owned())]);
    let mut known = snapshot.namespaces.iter();
    let found = known.find(|it| it.metadata.name.as_deref() == Some(namespace));
    let selector = &webhook.namespace_selector;
    if let Some(found) = found {
        let mut labels = found.metadata.labels.clone().unwrap_or_default();
        labels.extend(name);
        return Some(matches(selector, &labels));
    }
    let is_by_name = |key: &str| key == NAME_LABEL;
    let by_name = Selector {
        match_labels: selector
            .match_labels
            .iter()
            .filter(|(key, _)| is_by_name(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        match_expressions: selector
            .match_expressions
            .iter()
            .filter(|it| is_by_name(&it.key))
            .cloned()
            .collect(),
    };
    if !matches(&by_name, &name) {
        return Some(false);
    }
    let is_complete = by_name.match_labels.len() == selector.match_labels.len()
        && by_name.match_expressions.len() == selector.match_expressions.len();
    is_complete.then_some(true)
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
        let reviewed = resources.iter().filter(|it| matches_object(webhook, **it));
        let reviewed: Vec<&str> = reviewed.map(|(_, plural)| *plural).collect();
        if reviewed.is_empty() {
            continue;
        }
        let place = format!("{} in {}", webhook.name, webhook.object);
        match selects_namespace(snapshot, webhook, namespace) {
            Some(false) => {}
            None => out.skip(format!(
                "whether the namespaceSelector of {place} excludes namespace {namespace}: its labels are not in the input"
            )),
            Some(true) if !webhook.conditions.is_empty() => out.skip(format!(
                "whether the matchConditions of {place} exclude namespace {namespace}: they are not evaluated"
            )),
            Some(true) => {
                let evidence = format!(
                    "{} has failurePolicy Fail and reviews {} in namespace {namespace}",
                    webhook.name,
                    reviewed.join(", ")
                );
                out.findings
                    .push(finding(check, webhook, "namespaceSelector", evidence));
            }
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
    let guards = ["has(", " in ", ".?", "[?", "orValue"];
    // A condition that is false skips the webhook, whatever the others are.
    let mut all = webhook.conditions.iter();
    let is_guarded = all.any(|it| guards.iter().any(|guard| it.expression.contains(guard)));
    // With a selector that needs a label, there are labels.
    let has_labels = !matches(&webhook.object_selector, &BTreeMap::new());
    for condition in &webhook.conditions {
        let text = &condition.expression;
        let fails = text.contains("annotations[") || text.contains("labels[") && !has_labels;
        if fails && !is_guarded {
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
