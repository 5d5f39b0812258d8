//! The mutating policy that gives jobs without a queue the default queue of their namespace.

use super::guards;
use super::mutating::{PolicyWithBinding, add, has_path, json_patch};
use super::policy_metadata;
use crate::webhooks::{MATCH_POLICY, condition};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec, MutatingAdmissionPolicySpec, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::{GROUP, labels};

/// The CEL string of the name of a LocalQueue. The name is a DNS label.
#[must_use]
pub fn queue_literal(name: &str) -> String {
    format!("'{name}'")
}

/// The policy that new Jobs and JobSets without a queue in the selected namespaces get this queue, and are suspended. `queue` is
/// a CEL string, and `not_exempt` the CEL condition that a request has a sender that is not exempt.
#[must_use]
pub fn default_queue(
    namespaces: LabelSelector,
    queue: &str,
    not_exempt: &str,
) -> PolicyWithBinding {
    let name = format!("jobs.default-queue.{GROUP}");
    let key = labels::QUEUE_NAME;
    // In a JSON Pointer `/` is written `~1` (RFC 6901).
    let pointer = format!("/metadata/labels/{}", key.replace('/', "~1"));
    let label = add(&pointer, "variables.queue");
    let all_labels = add("/metadata/labels", &format!("{{'{key}': variables.queue}}"));
    let suspend = add("/spec/suspend", "true");
    let patch = format!(
        "({} ? [{label}] : [{all_labels}]) + [{suspend}]",
        has_path("/metadata/labels")
    );
    let has_no_queue =
        format!("!has(object.metadata.labels) || !('{key}' in object.metadata.labels)");
    let policy = MutatingAdmissionPolicy {
        metadata: policy_metadata(&name),
        spec: Some(MutatingAdmissionPolicySpec {
            // A job that the policy does not reach would run without quota.
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![
                condition("has-no-queue", &has_no_queue),
                condition("not-by-an-exempt-user", not_exempt),
            ]),
            match_constraints: Some(MatchResources {
                match_policy: Some(MATCH_POLICY.to_owned()),
                resource_rules: Some(guards::job_rules(&["CREATE"])),
                ..MatchResources::default()
            }),
            variables: Some(vec![Variable {
                name: "queue".to_owned(),
                expression: queue.to_owned(),
            }]),
            mutations: Some(vec![json_patch(patch)]),
            reinvocation_policy: Some("IfNeeded".to_owned()),
            ..MutatingAdmissionPolicySpec::default()
        }),
    };
    let binding = MutatingAdmissionPolicyBinding {
        metadata: policy_metadata(&name),
        spec: Some(MutatingAdmissionPolicyBindingSpec {
            match_resources: Some(MatchResources {
                namespace_selector: Some(namespaces),
                ..MatchResources::default()
            }),
            policy_name: Some(name.clone()),
            ..MutatingAdmissionPolicyBindingSpec::default()
        }),
    };
    (policy, binding)
}
