//! Validating policies about the sender of a request, which no rule knows: who may write Workloads, and which namespaces
//! require a queue.

use super::policy_metadata;
use crate::webhooks::{MATCH_POLICY, condition};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec, Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::{GROUP, VERSION, job_set, labels};

/// The account of the controller in the chart, and in `examples/install`, as `namespace/name`.
pub const CONTROLLER_ACCOUNT: &str = "lockkeeper-system/lockkeeper-controller";

/// The account of JobSet's controller in its manifests. It creates the Jobs of a JobSet, whose templates need no queue.
pub const JOBSET_ACCOUNT: &str = "system:serviceaccount:jobset-system:jobset-controller-manager";

/// A policy and its binding.
pub type Guard = (ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding);

/// The match condition that the request is not from the controller with this account, as `namespace/name`.
#[must_use]
pub fn not_by_controller(account: &str) -> String {
    let account = account.replacen('/', ":", 1);
    format!("request.userInfo.username != 'system:serviceaccount:{account}'")
}

/// The match condition that the request is from none of these users.
#[must_use]
pub fn not_by_users(users: &[String]) -> String {
    let users: Vec<String> = users.iter().map(|it| format!("'{it}'")).collect();
    format!("!(request.userInfo.username in [{}])", users.join(", "))
}

/// The policy that only the controller writes the status, the owners and the adoption of Workloads. `not_by_controller` is the CEL
/// condition that a request has another sender.
#[must_use]
pub fn workload_guard(not_by_controller: &str) -> Guard {
    let key = labels::ADOPTION;
    let has_adoption = |of: &str| {
        format!("(has({of}.metadata.annotations) && '{key}' in {of}.metadata.annotations)")
    };
    let conditions = vec![
        condition("not-by-the-controller", not_by_controller),
        garbage_collector_condition(),
    ];
    let validations = vec![
        validation(
            // A request without a subresource has no such field.
            "!has(request.subResource) || request.subResource != 'status'",
            "status: only the controller may write the status of a Workload; set spec.active to false to stop it",
        ),
        validation(
            "oldObject != null || !has(object.metadata.ownerReferences) \
             || !object.metadata.ownerReferences.exists(it, has(it.controller) && it.controller)",
            "metadata.ownerReferences: only the controller may create a Workload for a job; leave the controller reference out",
        ),
        validation(
            "oldObject == null || (has(request.subResource) && request.subResource == 'status') \
             || (has(object.metadata.ownerReferences) ? has(oldObject.metadata.ownerReferences) \
             && object.metadata.ownerReferences == oldObject.metadata.ownerReferences \
             : !has(oldObject.metadata.ownerReferences))",
            "metadata.ownerReferences: only the controller may change the owners of a Workload",
        ),
        validation(
            &format!(
                "!{} || (oldObject != null && {} \
                 && object.metadata.annotations['{key}'] == oldObject.metadata.annotations['{key}'])",
                has_adoption("object"),
                has_adoption("oldObject"),
            ),
            "metadata.annotations['lockkeeper.dev/adoption']: only the controller and lockkeeper adopt may set the annotation",
        ),
    ];
    let rules = vec![
        rule(GROUP, VERSION, "workloads", &["CREATE", "UPDATE"]),
        rule(GROUP, VERSION, "workloads/status", &["UPDATE"]),
    ];
    guard("workloads.guard", rules, conditions, validations, None)
}

/// The policy that Jobs and JobSets in the selected namespaces have a queue. `not_exempt` is the CEL condition that a
/// request has a sender that is not exempt.
#[must_use]
pub fn queue_required(namespaces: LabelSelector, not_exempt: &str) -> Guard {
    let validations = vec![
        validation(
            &format!(
                "{} || (oldObject != null && !{})",
                has_queue("object"),
                has_queue("oldObject")
            ),
            "metadata.labels['lockkeeper.dev/queue-name']: jobs in this namespace need a queue; set the label to the name of a LocalQueue",
        ),
        // A job without a queue may be older than the policy: it may end, but neither start nor grow.
        validation(
            &format!(
                "oldObject == null || {} || {} || object.spec == oldObject.spec \
                 || (has(object.spec.suspend) && object.spec.suspend)",
                has_queue("object"),
                has_queue("oldObject")
            ),
            "spec: jobs in this namespace need a queue; without one a job can only be suspended or deleted. Set the label \
             lockkeeper.dev/queue-name while the job is suspended",
        ),
    ];
    let rules = job_rules(&["CREATE", "UPDATE"]);
    let conditions = vec![condition("not-by-an-exempt-user", not_exempt)];
    guard(
        "jobs.queue-required",
        rules,
        conditions,
        validations,
        Some(namespaces),
    )
}

/// The CEL condition that an object names a queue.
pub(super) fn has_queue(of: &str) -> String {
    let key = labels::QUEUE_NAME;
    format!(
        "(has({of}.metadata.labels) && '{key}' in {of}.metadata.labels && {of}.metadata.labels['{key}'] != '')"
    )
}

/// The CEL condition that an object has a controller reference `it` that meets a condition.
pub(super) fn has_controller(of: &str, condition: &str) -> String {
    format!(
        "(has({of}.metadata.ownerReferences) && {of}.metadata.ownerReferences.exists(it, has(it.controller) && it.controller \
         && {condition}))"
    )
}

/// The garbage collector removes references to deleted owners.
pub(super) fn garbage_collector_condition() -> MatchCondition {
    condition(
        "not-an-update-of-the-garbage-collector",
        crate::webhooks::NOT_BY_GARBAGE_COLLECTOR,
    )
}

pub(super) fn guard(
    name: &str,
    rules: Vec<NamedRuleWithOperations>,
    conditions: Vec<MatchCondition>,
    validations: Vec<Validation>,
    namespaces: Option<LabelSelector>,
) -> Guard {
    let name = format!("{name}.{GROUP}");
    let policy = ValidatingAdmissionPolicy {
        metadata: policy_metadata(&name),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(conditions),
            match_constraints: Some(MatchResources {
                match_policy: Some(MATCH_POLICY.to_owned()),
                resource_rules: Some(rules),
                ..MatchResources::default()
            }),
            validations: Some(validations),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        ..ValidatingAdmissionPolicy::default()
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: policy_metadata(&name),
        spec: ValidatingAdmissionPolicyBindingSpec {
            match_resources: namespaces.map(|selector| MatchResources {
                namespace_selector: Some(selector),
                ..MatchResources::default()
            }),
            policy_name: name.clone(),
            validation_actions: vec!["Deny".to_owned()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    };
    (policy, binding)
}

/// Jobs and JobSets, for these operations.
pub(super) fn job_rules(operations: &[&str]) -> Vec<NamedRuleWithOperations> {
    vec![
        rule("batch", "v1", "jobs", operations),
        rule(job_set::GROUP, job_set::VERSION, "jobsets", operations),
    ]
}

pub(super) fn rule(
    group: &str,
    version: &str,
    resource: &str,
    operations: &[&str],
) -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        operations: Some(operations.iter().map(|it| (*it).to_owned()).collect()),
        resource_names: None,
        resources: Some(vec![resource.to_owned()]),
        scope: Some("Namespaced".to_owned()),
    }
}

pub(super) fn validation(expression: &str, message: &str) -> Validation {
    Validation {
        expression: expression.to_owned(),
        message: Some(message.to_owned()),
        message_expression: None,
        reason: Some("Forbidden".to_owned()),
    }
}
