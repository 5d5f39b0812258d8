//! Validating policies for jobs and their pods, which know the sender of a request: who may resume a queued job, and who may change
//! what the quota of a JobSet or of a Job is found by.

use super::guards::{
    Guard, garbage_collector_condition, guard, has_controller, has_queue, job_rules, rule,
    validation,
};
use super::pod_guards::JOB_CONTROLLER;
use crate::webhooks::condition;
use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Validation};
use lockkeeper_api::{GROUP, job_set};

/// The prefix of the labels by which JobSet's controller finds its Jobs and pods.
const JOBSET_LABELS: &str = "jobset.sigs.k8s.io/";

/// The prefix of the labels by which the controller of Jobs finds its pods.
const JOB_LABELS: &str = "batch.kubernetes.io/";

/// The same labels of earlier versions of Kubernetes.
const OLD_JOB_LABELS: [&str; 2] = ["controller-uid", "job-name"];

/// The CEL condition that a request is not by a service account of another namespace. Controllers of jobs have such accounts, under any
/// name, and tenants have those of their namespaces.
pub(super) const NOT_BY_OTHER_NAMESPACE: &str = "!request.userInfo.username.startsWith('system:serviceaccount:') \
     || request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')";

/// The senders that are not concerned, as CEL conditions.
pub struct Senders<'a> {
    /// The request is not by the controller.
    pub not_by_controller: &'a str,
    /// The request is by none of the exempt users, such as JobSet's controller.
    pub not_exempt: &'a str,
}

impl Senders<'_> {
    fn conditions(&self, concerned: (&str, &str)) -> Vec<MatchCondition> {
        vec![
            condition("not-by-the-controller", self.not_by_controller),
            condition("not-by-an-exempt-user", self.not_exempt),
            garbage_collector_condition(),
            condition(concerned.0, concerned.1),
        ]
    }
}

/// The policy that only the controller resumes a job with a queue, or the controller of another job that has created it: a service
/// account of another namespace; and that a Job with a queue gets no more pods while it may run.
#[must_use]
pub fn job_guard(senders: &Senders<'_>) -> Guard {
    let is_queued = format!("{} || {}", has_queue("object"), has_queue("oldObject"));
    let is_by_its_creator = format!(
        "(has(oldObject.metadata.ownerReferences) \
         && oldObject.metadata.ownerReferences.exists(it, has(it.controller) && it.controller) && !({NOT_BY_OTHER_NAMESPACE}))"
    );
    let suspended =
        |of: &str| format!("(has({of}.spec) && has({of}.spec.suspend) && {of}.spec.suspend)");
    // A JobSet has no such field: the type checks of the API server would report it.
    let parallelism =
        |of: &str| format!("(has(dyn({of}).spec.parallelism) ? dyn({of}).spec.parallelism : 1)");
    let validations = vec![
        validation(
            &format!(
                "!{} || {} || {is_by_its_creator}",
                suspended("oldObject"),
                suspended("object")
            ),
            "spec.suspend: only the controller may resume a job with a queue; the job starts when its queue has quota. Leave \
             spec.suspend as it is",
        ),
        validation(
            &format!(
                "{} || {} || !has(object.spec) || !has(oldObject.spec) || {} <= {}",
                suspended("oldObject"),
                suspended("object"),
                parallelism("object"),
                parallelism("oldObject"),
            ),
            "spec.parallelism: a job with a queue gets no more pods while it runs, because they have no quota. Set spec.suspend to true in \
             the same change: the job stops, and starts with the new number when its queue has quota",
        ),
    ];
    let conditions = senders.conditions(("is-queued", &is_queued));
    guard(
        "jobs.guard",
        job_rules(&["UPDATE"]),
        conditions,
        validations,
        None,
    )
}

/// The policy that the Jobs of a JobSet with a queue are deleted with it. They have no queue, so once its quota is released they would
/// create pods without any.
#[must_use]
pub fn job_set_guard(senders: &Senders<'_>) -> Guard {
    let is_queued = format!(
        "(object != null && {}) || (oldObject != null && {})",
        has_queue("object"),
        has_queue("oldObject")
    );
    let validations = no_orphans(
        "the Jobs of a JobSet with a queue cannot be orphaned: they would create pods without quota. Delete the JobSet with them",
    );
    let conditions = senders.conditions(("is-queued", &is_queued));
    let rules = vec![rule(
        job_set::GROUP,
        job_set::VERSION,
        "jobsets",
        &["CREATE", "UPDATE", "DELETE"],
    )];
    guard("jobsets.guard", rules, conditions, validations, None)
}

/// The policy that a tenant does not change the Jobs of a JobSet. The quota of a JobSet is that of its specification: a Job that
/// was changed would run more pods, and one that its controller does not find any more would not stop, or exist twice.
#[must_use]
pub fn job_set_job_guard(senders: &Senders<'_>) -> Guard {
    let of_job_set = format!(
        "it.kind == '{}' && it.apiVersion.startsWith('{}/')",
        job_set::KIND,
        job_set::GROUP
    );
    let is_owned = |of| has_controller(of, &of_job_set);
    let is_concerned = format!(
        "(oldObject != null && {}) || (object != null && {})",
        is_owned("oldObject"),
        is_owned("object")
    );
    let validations = vec![
        validation(
            "request.operation != 'CREATE'",
            "metadata.ownerReferences: only JobSet's controller may create a Job of a JobSet: it resumes each Job that names the JobSet; \
             leave the controller reference out",
        ),
        of_update(
            "object.spec == oldObject.spec",
            "spec: only JobSet's controller may change the Jobs of a JobSet; change the JobSet",
        ),
        of_update(
            &labels_are_kept(&[
                starts_with(JOBSET_LABELS),
                starts_with(&format!("{GROUP}/")),
            ]),
            "metadata.labels: only JobSet's controller may change the labels of jobset.sigs.k8s.io and lockkeeper.dev on a Job of a \
             JobSet",
        ),
        of_update(
            OWNERS_ARE_KEPT,
            "metadata.ownerReferences: only JobSet's controller may change the owners of a Job of a JobSet",
        ),
        of_update(
            NO_FURTHER_FINALIZERS,
            "metadata.finalizers: a Job of a JobSet gets no further finalizers, because its pods would run on without it",
        ),
        validation(
            NO_ORPHANS,
            "propagationPolicy: the pods of a Job of a JobSet cannot be orphaned: JobSet's controller would create the Job again, and \
             both would use the quota of one",
        ),
    ];
    let mut conditions = senders.conditions(("is-a-job-of-a-jobset", &is_concerned));
    conditions.push(condition(
        "not-by-an-account-of-another-namespace",
        NOT_BY_OTHER_NAMESPACE,
    ));
    let rules = vec![rule("batch", "v1", "jobs", &["CREATE", "UPDATE", "DELETE"])];
    guard("jobset-jobs.guard", rules, conditions, validations, None)
}

/// The policy that the pods of a Job keep the labels and the owner by which they are found. A pod that its Job does not find any more
/// runs on, and the Job creates another.
#[must_use]
pub fn job_pod_guard(senders: &Senders<'_>) -> Guard {
    let is_concerned = format!(
        "(has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(it, {})) || {}",
        starts_with(JOB_LABELS),
        has_controller(
            "oldObject",
            "it.kind == 'Job' && it.apiVersion.startsWith('batch/')"
        )
    );
    let mut kept = vec![starts_with(JOB_LABELS), starts_with(JOBSET_LABELS)];
    kept.extend(OLD_JOB_LABELS.map(|key| format!("it == '{key}'")));
    let validations: Vec<Validation> = vec![
        validation(
            &labels_are_kept(&kept),
            "metadata.labels: only the controller of Jobs may change the labels of batch.kubernetes.io and jobset.sigs.k8s.io on a pod of \
             a Job, by which its quota is found",
        ),
        validation(
            OWNERS_ARE_KEPT,
            "metadata.ownerReferences: only the controller of Jobs may change the owners of a pod of a Job",
        ),
    ];
    let mut conditions = senders.conditions(("is-a-pod-of-a-job", &is_concerned));
    conditions.push(condition(
        "not-by-the-controller-of-jobs",
        &format!("!(request.userInfo.username in {JOB_CONTROLLER})"),
    ));
    let rules = vec![rule("", "v1", "pods", &["UPDATE"])];
    guard("job-pods.guard", rules, conditions, validations, None)
}

/// A validation of updates only.
pub(super) fn of_update(expression: &str, message: &str) -> Validation {
    validation(
        &format!("request.operation != 'UPDATE' || ({expression})"),
        message,
    )
}

/// The validations that an object is deleted with its dependents.
pub(super) fn no_orphans(message: &str) -> Vec<Validation> {
    let has_finalizer = |of: &str| {
        format!(
            "({of} != null && has({of}.metadata.finalizers) && 'orphan' in {of}.metadata.finalizers)"
        )
    };
    vec![
        validation(NO_ORPHANS, &format!("propagationPolicy: {message}")),
        validation(
            &format!(
                "!{} || {}",
                has_finalizer("object"),
                has_finalizer("oldObject")
            ),
            &format!("metadata.finalizers: {message}"),
        ),
    ]
}

/// The CEL condition that a request deletes no object without its dependents.
pub(super) const NO_ORPHANS: &str = "request.operation != 'DELETE' || request.options == null \
     || ((!has(request.options.propagationPolicy) || request.options.propagationPolicy != 'Orphan') \
     && (!has(request.options.orphanDependents) || request.options.orphanDependents != true))";

/// The CEL condition that an update adds no finalizer.
pub(super) const NO_FURTHER_FINALIZERS: &str = "!has(object.metadata.finalizers) || object.metadata.finalizers.all(it, \
     has(oldObject.metadata.finalizers) && it in oldObject.metadata.finalizers)";

/// The CEL condition that an update keeps the owner references.
pub(super) const OWNERS_ARE_KEPT: &str = "has(object.metadata.ownerReferences) ? has(oldObject.metadata.ownerReferences) \
     && object.metadata.ownerReferences == oldObject.metadata.ownerReferences \
     : !has(oldObject.metadata.ownerReferences)";

/// The CEL condition that the key `it` has a prefix.
pub(super) fn starts_with(prefix: &str) -> String {
    format!("it.startsWith('{prefix}')")
}

/// The CEL condition that an update neither adds, removes nor changes a label whose key `it` meets one of these conditions.
pub(super) fn labels_are_kept(keys: &[String]) -> String {
    let is_free = format!("!({})", keys.join(" || "));
    let within = |labels: &str, others: &str, value: &str| {
        format!(
            "(!has({labels}.metadata.labels) || {labels}.metadata.labels.all(it, {is_free} \
             || (has({others}.metadata.labels) && it in {others}.metadata.labels{value})))"
        )
    };
    let has_value = " && object.metadata.labels[it] == oldObject.metadata.labels[it]";
    format!(
        "{} && {}",
        within("object", "oldObject", has_value),
        within("oldObject", "object", "")
    )
}
