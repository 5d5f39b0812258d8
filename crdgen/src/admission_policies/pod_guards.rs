//! Validating policies for pods with the queue label, which know the sender of a request: who may admit a pod, and which
//! namespaces require a queue.

use super::guards::{
    Guard, garbage_collector_condition, guard, has_queue, rule as resource_rule, validation,
};
use crate::webhooks::condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::labels;

/// The accounts of the controller of Jobs. Without an account of its own it acts as the controller manager.
pub(super) const JOB_CONTROLLER: &str =
    "['system:serviceaccount:kube-system:job-controller', 'system:kube-controller-manager']";

/// The labels and annotations that select the quota of a pod. They are immutable once the pod is admitted.
const QUOTA_KEYS: [(&str, &str); 11] = [
    ("labels", labels::QUEUE_NAME),
    ("labels", labels::PRIORITY_CLASS),
    ("labels", labels::PREEMPTION_PRIORITY_CLASS),
    ("labels", labels::POD_GROUP_NAME),
    ("annotations", labels::POD_GROUP_TOTAL_COUNT),
    ("annotations", labels::POD_SET),
    ("labels", labels::JOB_UID),
    ("labels", labels::COSCHEDULING_NAME),
    ("annotations", labels::GANG_NAME),
    ("labels", labels::LEADER_WORKER_SET),
    ("labels", labels::LEADER_WORKER_GROUP),
];

/// The policy that a pod with the queue label waits for quota: it is created with the scheduling gate, only the controller
/// removes the gate, and its labels do not change after that. `not_by_controller` is the CEL condition that a request has
/// another sender.
#[must_use]
pub fn pod_guard(not_by_controller: &str) -> Guard {
    let key = labels::QUEUE_NAME;
    let has_label = |of: &str, key: &str| {
        format!("(has({of}.metadata.labels) && '{key}' in {of}.metadata.labels)")
    };
    let has_gate = |of: &str| {
        format!(
            "(has({of}.spec.schedulingGates) && {of}.spec.schedulingGates.exists(it, it.name == '{}'))",
            labels::ADMISSION_GATE
        )
    };
    let (gate, old_gate) = (has_gate("object"), has_gate("oldObject"));
    let has_group_uid = has_label("object", labels::JOB_UID);
    let is_queued = format!(
        "{} || {has_group_uid} || (oldObject != null && ({} || {old_gate}))",
        has_label("object", key),
        has_label("oldObject", key),
    );
    let conditions = vec![
        condition("not-by-the-controller", not_by_controller),
        garbage_collector_condition(),
        condition("is-queued", &is_queued),
    ];
    let mut validations = vec![
        validation(
            &format!(
                "oldObject != null || !{} || {gate}",
                has_label("object", key)
            ),
            "spec.schedulingGates: a pod with the label lockkeeper.dev/queue-name needs the gate lockkeeper.dev/admission; the \
             webhook of lockkeeper adds it, and did not respond: try again",
        ),
        validation(
            &format!("oldObject == null || !{old_gate} || {gate}"),
            "spec.schedulingGates: only the controller may remove the gate lockkeeper.dev/admission; the pod starts when its \
             queue has quota",
        ),
    ];
    // Pods that run with it keep the quota of a group.
    validations.push(validation(
        &format!("oldObject != null || !{has_group_uid}"),
        "metadata.labels['lockkeeper.dev/job-uid']: only the controller sets the label, when it starts a pod; leave it out",
    ));
    for (map, key) in QUOTA_KEYS {
        let has_key =
            |of: &str| format!("(has({of}.metadata.{map}) && '{key}' in {of}.metadata.{map})");
        let (new, old) = (has_key("object"), has_key("oldObject"));
        validations.push(validation(
            &format!(
                "oldObject == null || ({gate} && {old_gate}) || ({new} ? ({old} \
                 && object.metadata.{map}['{key}'] == oldObject.metadata.{map}['{key}']) : !{old})"
            ),
            &format!(
                "metadata.{map}['{key}']: field is immutable once the pod may run; create the pod with it, or delete \
                 it and create another"
            ),
        ));
    }
    let rules = vec![resource_rule("", "v1", "pods", &["CREATE", "UPDATE"])];
    guard("pods.guard", rules, conditions, validations, None)
}

/// The policy that pods in the selected namespaces have a queue, unless they belong to a Job: Jobs have one there.
/// `not_exempt` is the CEL condition that a request has a sender that is not exempt.
#[must_use]
pub fn queue_required(namespaces: LabelSelector, not_exempt: &str) -> Guard {
    // Any user may write an owner reference: the sender proves that the pod is one of a Job.
    let is_of_job = format!(
        "(request.userInfo.username in {JOB_CONTROLLER} && has(object.metadata.ownerReferences) \
         && object.metadata.ownerReferences.exists(it, has(it.controller) && it.controller && it.kind == 'Job' \
         && it.apiVersion.startsWith('batch/')))"
    );
    let validations = vec![validation(
        &format!("{} || {is_of_job}", has_queue("object")),
        "metadata.labels['lockkeeper.dev/queue-name']: pods in this namespace need a queue; set the label to the name of a \
         LocalQueue, in the pod template too",
    )];
    let rules = vec![resource_rule("", "v1", "pods", &["CREATE"])];
    let conditions = vec![condition("not-by-an-exempt-user", not_exempt)];
    guard(
        "pods.queue-required",
        rules,
        conditions,
        validations,
        Some(namespaces),
    )
}
