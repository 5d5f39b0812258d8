//! Validating policies for what the controller of a declared kind creates: the children and the pods of a job have no queue, and their
//! quota is that of the job.

use super::guards::{Guard, garbage_collector_condition, guard, has_controller, rule, validation};
use super::job_guards::{
    NO_FURTHER_FINALIZERS, NO_ORPHANS, NOT_BY_OTHER_NAMESPACE, OWNERS_ARE_KEPT, labels_are_kept,
    no_orphans, of_update, starts_with,
};
use crate::webhooks::condition;
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Validation};
use lockkeeper_api::{GROUP, labels};
use lockkeeper_job_kinds::DeclaredKind;
use lockkeeper_policies::metadata_cel::has_label;
use std::collections::BTreeSet;

/// The policy that a job with a queue is deleted with its dependents: an orphaned child or pod has no quota.
#[must_use]
pub fn deletion_guard(kind: &DeclaredKind) -> Guard {
    let is_queued = |of: &str| format!("({of} != null && {})", has_label(of, labels::QUEUE_NAME));
    let conditions = vec![
        garbage_collector_condition(),
        condition(
            "has-a-queue",
            &format!("{} || {}", is_queued("object"), is_queued("oldObject")),
        ),
    ];
    let validations = no_orphans(
        "what the controller of a job with a queue creates cannot be orphaned: it would run without quota. Delete the job with it",
    );
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let rules = vec![rule(&kind.group, &kind.version, &kind.plural, &operations)];
    let name = format!("{}.{}.deletion", kind.plural, kind.group);
    guard(&name, rules, conditions, validations, None)
}

/// The policy that a tenant does not change the children of a job. `None` if the kind has none.
#[must_use]
pub fn children_guard(kind: &DeclaredKind, not_by_lockkeeper: &str) -> Option<Guard> {
    let groups: BTreeSet<&str> = kind.children.iter().map(|it| it.group.as_str()).collect();
    let rules = groups.into_iter();
    let rules: Vec<_> = rules
        .map(|group| rule(group, "*", "*", &["CREATE", "UPDATE", "DELETE"]))
        .collect();
    if rules.is_empty() {
        return None;
    }
    let is_child = |of: &str| {
        let kinds = kind.children.iter().map(|it| {
            let version = if it.group.is_empty() {
                format!("!{of}.apiVersion.contains('/')")
            } else {
                format!("{of}.apiVersion.startsWith('{}/')", it.group)
            };
            format!("({of}.kind == '{}' && {version})", it.kind)
        });
        let kinds: Vec<String> = kinds.collect();
        format!(
            "({of} != null && ({}) && {})",
            kinds.join(" || "),
            has_controller(
                of,
                &format!("it.kind == '{}' && {}", kind.kind, version(&kind.group))
            )
        )
    };
    let mut conditions = conditions(not_by_lockkeeper);
    conditions.push(condition(
        "is-a-child",
        &format!("{} || {}", is_child("object"), is_child("oldObject")),
    ));
    let name = format!("{}.{}.children", kind.plural, kind.group);
    Some(guard(
        &name,
        rules,
        conditions,
        child_validations(kind),
        None,
    ))
}

/// What only the controller of the kind does with its children.
fn child_validations(kind: &DeclaredKind) -> Vec<Validation> {
    let parent = &kind.kind;
    let only = format!("only the controller of {parent} may");
    let mut kept = label_keys(kind);
    kept.push(starts_with(&format!("{GROUP}/")));
    vec![
        validation(
            "request.operation != 'CREATE'",
            &format!(
                "metadata.ownerReferences: {only} create the children of its jobs, which need no quota; leave the controller reference out"
            ),
        ),
        of_update(
            "has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec)",
            &format!("spec: {only} change the children of its jobs; change the {parent}"),
        ),
        of_update(
            &labels_are_kept(&kept),
            &format!(
                "metadata.labels: {only} change the labels of {} and {GROUP} on the children of its jobs",
                kind.group
            ),
        ),
        of_update(
            OWNERS_ARE_KEPT,
            &format!(
                "metadata.ownerReferences: {only} change the owners of the children of its jobs"
            ),
        ),
        of_update(
            NO_FURTHER_FINALIZERS,
            &format!(
                "metadata.finalizers: {only} add finalizers to the children of its jobs, because their pods would run on"
            ),
        ),
        validation(
            NO_ORPHANS,
            &format!(
                "propagationPolicy: what the children of {parent} create cannot be orphaned: it would run without quota"
            ),
        ),
    ]
}

/// The policy that the pods of a job keep the labels and the owner by which their controller finds them. A pod that it does not find
/// any more runs on, and it creates another.
#[must_use]
pub fn pods_guard(kind: &DeclaredKind, not_by_lockkeeper: &str) -> Guard {
    let keys = label_keys(kind);
    let owners = groups(kind).into_iter().map(version);
    let owners: Vec<String> = owners.collect();
    let is_concerned = format!(
        "(has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(it, {})) || {}",
        keys.join(" || "),
        has_controller("oldObject", &format!("({})", owners.join(" || ")))
    );
    let mut conditions = conditions(not_by_lockkeeper);
    conditions.push(condition("is-a-pod-of-the-kind", &is_concerned));
    let only = format!("only the controller of {} may", kind.kind);
    let validations = vec![
        validation(
            &labels_are_kept(&keys),
            &format!(
                "metadata.labels: {only} change the labels of its pods by which it finds them, such as those of {}",
                kind.group
            ),
        ),
        validation(
            OWNERS_ARE_KEPT,
            &format!("metadata.ownerReferences: {only} change the owners of its pods"),
        ),
    ];
    let rules = vec![rule("", "v1", "pods", &["UPDATE"])];
    let name = format!("{}.{}.pods", kind.plural, kind.group);
    guard(&name, rules, conditions, validations, None)
}

/// The senders that are concerned: tenants, and service accounts of their namespaces.
fn conditions(not_by_lockkeeper: &str) -> Vec<MatchCondition> {
    vec![
        condition("not-by-the-controller", not_by_lockkeeper),
        condition(
            "not-by-an-account-of-another-namespace",
            NOT_BY_OTHER_NAMESPACE,
        ),
        garbage_collector_condition(),
    ]
}

/// The API groups of the kind and its children, without those of Kubernetes: their objects have guards of their own.
fn groups(kind: &DeclaredKind) -> BTreeSet<&str> {
    let children = kind.children.iter().map(|it| it.group.as_str());
    let own = [kind.group.as_str()].into_iter();
    own.chain(children).filter(|it| it.contains('.')).collect()
}

/// The CEL conditions of the keys `it` of the labels by which pods are found: those of the groups, and the declared one.
fn label_keys(kind: &DeclaredKind) -> Vec<String> {
    let mut out = Vec::new();
    for group in groups(kind) {
        out.push(starts_with(&format!("{group}/")));
        out.push(format!("it.contains('.{group}/')"));
    }
    if let Some(label) = &kind.pod_label {
        out.push(format!("it == '{}'", label.key));
    }
    out
}

/// The CEL condition that an owner reference `it` has a version of this group.
fn version(group: &str) -> String {
    format!("it.apiVersion.startsWith('{group}/')")
}

#[cfg(test)]
mod tests;
