//! Admission policies for the jobs of a kind that a `JobKind` declares: a new job with the queue label is suspended, and what the
//! controller relies on does not change while a job may run.

use super::cel_fields::{has_field, literal, select};
use super::declared_pod_sets::{adds_no_pods, path as path_of_pods};
use super::guards::{Guard, garbage_collector_condition, guard, rule, validation};
use super::job_guards::NOT_BY_OTHER_NAMESPACE;
use super::mutating::{PolicyWithBinding, add, json_patch, with_binding};
use crate::webhooks::{MATCH_POLICY, condition, not_by_a_controller};
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, MatchResources};
use lockkeeper_api::{GROUP, labels};
use lockkeeper_job_kinds::{DeclaredKind, JobPath};
use lockkeeper_policies::metadata_cel::{controllers, has_label, is_adopted, same_label};
use serde_json::Value;

/// The labels that do not change while a job may run.
const KEPT_LABELS: [&str; 3] = [
    labels::QUEUE_NAME,
    labels::PRIORITY_CLASS,
    labels::PREEMPTION_PRIORITY_CLASS,
];

/// The policy that suspends a new job with the queue label.
#[must_use]
pub fn suspend_policy(kind: &DeclaredKind) -> PolicyWithBinding {
    let (path, suspended, _) = kind.suspend_field();
    let parents = (2..path.fields().count()).map(|depth| {
        let parent: Vec<&str> = path.fields().take(depth).collect();
        let create = add(&pointer(parent.iter().copied()), "{}");
        format!("({} ? [] : [{create}]) + ", has_field("object", &parent))
    });
    let parents = parents.collect::<Vec<_>>().concat();
    let write = add(&pointer(path.fields()), &literal(suspended));
    let expression = format!(
        "!has(object.spec) || {} ? [] : {parents}[{write}]",
        is_suspended("object", path, suspended)
    );
    let name = format!("{}.{}.suspend.{GROUP}", kind.plural, kind.group);
    let constraints = MatchResources {
        match_policy: Some(MATCH_POLICY.to_owned()),
        resource_rules: Some(vec![rule(
            &kind.group,
            &kind.version,
            &kind.plural,
            &["CREATE"],
        )]),
        ..MatchResources::default()
    };
    let conditions = new_job_conditions();
    // Where the policy fails, the controller suspends the job when it sees it.
    with_binding(&name, constraints, conditions, vec![json_patch(expression)])
}

/// The new jobs with the queue label, except those that a controller creates for an object of its own.
fn new_job_conditions() -> Vec<MatchCondition> {
    vec![
        condition("names-a-queue", &has_label("object", labels::QUEUE_NAME)),
        not_by_a_controller(),
    ]
}

/// The condition that a job has the queue label before or after a change.
fn has_a_queue() -> MatchCondition {
    let is_queued = ["object", "oldObject"].map(|of| has_label(of, labels::QUEUE_NAME));
    condition("has-a-queue", &is_queued.join(" || "))
}

/// The policy that a new job with the queue label is suspended, for API servers without mutating policies.
#[must_use]
pub fn suspended_guard(kind: &DeclaredKind) -> Guard {
    let (path, suspended, _) = kind.suspend_field();
    let conditions = new_job_conditions();
    let value = literal(suspended);
    let message = format!(
        "{path}: must be {value} in a new job with the label {}; the controller starts the job when it has quota",
        labels::QUEUE_NAME
    );
    let validations = vec![validation(
        &is_suspended("object", path, suspended),
        &message,
    )];
    let rules = vec![rule(&kind.group, &kind.version, &kind.plural, &["CREATE"])];
    let name = format!("{}.{}.suspended", kind.plural, kind.group);
    guard(&name, rules, conditions, validations, None)
}

/// The policy that the queue, the priority classes, the controller and the pods of a job do not change while it may run; there may be
/// fewer pods.
#[must_use]
pub fn running_guard(kind: &DeclaredKind) -> Guard {
    let (path, suspended, _) = kind.suspend_field();
    let is_suspended = |of| is_suspended(of, path, suspended);
    let conditions = vec![
        has_a_queue(),
        condition(
            "may-run",
            &format!(
                "!({} && {})",
                is_suspended("object"),
                is_suspended("oldObject")
            ),
        ),
        garbage_collector_condition(),
    ];
    let remedy = format!("set {path} to {} first", literal(suspended));
    let mut validations: Vec<_> = KEPT_LABELS
        .iter()
        .map(|key| {
            let message = format!(
                "metadata.labels['{key}']: field is immutable while the job is not suspended; {remedy}"
            );
            let is_kept = same_label("object", "oldObject", key);
            let is_allowed = if *key == labels::QUEUE_NAME {
                format!("({is_kept}) || {}", is_adopted("object", "oldObject"))
            } else {
                is_kept
            };
            validation(&is_allowed, &message)
        })
        .collect();
    validations.push(validation(
        &format!("{} == {}", controllers("object"), controllers("oldObject")),
        &format!("metadata.ownerReferences: the controller of a job must not change while the job is not suspended; {remedy}"),
    ));
    // A job whose pods cannot be read may still lose its finalizers.
    let is_same = "(has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)";
    let may_differ = format!(
        "{is_same} || {} || {}",
        is_suspended("object"),
        is_suspended("oldObject")
    );
    for pod_sets in &kind.pod_sets {
        validations.push(validation(
            &format!("{may_differ} || {}", adds_no_pods(pod_sets)),
            &format!(
                "{}: a job with a queue gets no other and no more pods while it is not suspended, because they have no quota; {remedy}",
                path_of_pods(pod_sets)
            ),
        ));
    }
    let rules = vec![rule(&kind.group, &kind.version, &kind.plural, &["UPDATE"])];
    let name = format!("{}.{}.running", kind.plural, kind.group);
    guard(&name, rules, conditions, validations, None)
}

/// The policy that no tenant resumes a job with a queue. `not_by_lockkeeper` is the CEL condition that a request is not by lockkeeper's
/// controller; the controller of the kind has a service account of another namespace.
#[must_use]
pub fn resume_guard(kind: &DeclaredKind, not_by_lockkeeper: &str) -> Guard {
    let (path, suspended, _) = kind.suspend_field();
    let conditions = vec![
        condition("not-by-the-controller", not_by_lockkeeper),
        condition(
            "not-by-an-account-of-another-namespace",
            NOT_BY_OTHER_NAMESPACE,
        ),
        has_a_queue(),
    ];
    let message = format!(
        "{path}: only the controller may resume a job with a queue; the job starts when its queue has quota. Leave {path} as it is"
    );
    let validations = vec![validation(
        &format!(
            "!{} || {}",
            is_suspended("oldObject", path, suspended),
            is_suspended("object", path, suspended)
        ),
        &message,
    )];
    let rules = vec![rule(&kind.group, &kind.version, &kind.plural, &["UPDATE"])];
    let name = format!("{}.{}.resume", kind.plural, kind.group);
    guard(&name, rules, conditions, validations, None)
}

/// The CEL condition that a job is suspended.
fn is_suspended(of: &str, path: &JobPath, suspended: &Value) -> String {
    let fields: Vec<&str> = path.fields().collect();
    let value = select(of, &fields);
    format!(
        "({} && {value} == {})",
        has_field(of, &fields),
        literal(suspended)
    )
}

/// A path as JSON Pointer (RFC 6901), within a text of CEL.
fn pointer<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let escaped = fields.map(|it| it.replace('~', "~0").replace('/', "~1"));
    let all: Vec<String> = escaped.collect();
    format!("/{}", all.join("/"))
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
}

#[cfg(test)]
mod tests;
