//! The template of the admission policies, by which the API server validates and defaults while no
//! replica of the webhook responds.

use super::placeholders::{
    Placeholder, any_rule_at_default, at_least, end_mark, render, while_controller,
};
use super::{ChartError, HEAD, put_labels, rule_gates};
use crate::admission_policies::job_guards::Senders;
use crate::admission_policies::{default_queue, guards, job_guards, pod_guards, policies};
use crate::release_features::MUTATING_POLICIES;
use crate::yaml::{self, YamlError};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::labels;
use lockkeeper_policies::settings::Settings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The action of a binding that rejects.
const DENY: &str = "Deny";

pub(super) fn template() -> Result<String, ChartError> {
    let all = policies(&BTreeSet::new(), &Settings::default())?;
    let mut out = format!("{HEAD}{{{{- if .Values.policies.enabled }}}}\n");
    for (policy, bindings) in &all.validating {
        // Without policies that only warn: the webhook would return the same warnings again.
        if bindings.iter().any(denies) {
            out.push_str(&validating(policy, bindings)?);
        }
    }
    out.push_str(&guard_templates()?);
    out.push_str(&format_if(&at_least(MUTATING_POLICIES)));
    for (policy, binding) in &all.mutating {
        out.push_str(&mutating(policy, binding)?);
    }
    out.push_str("{{- end }}\n");
    out.push_str(&default_queue_template()?);
    out.push_str("{{- end }}\n");
    Ok(out)
}

/// The policy of the default queue. Its queue is rendered with an error before Kubernetes 1.36: without the policy, jobs would
/// run without quota.
fn default_queue_template() -> Result<String, YamlError> {
    let queue = Placeholder::DefaultQueue.mark();
    let not_exempt = Placeholder::NotByExemptUser.mark();
    let (policy, binding) =
        default_queue::default_queue(LabelSelector::default(), &queue, &not_exempt);
    let mut binding = serde_json::to_value(binding)?;
    if let Some(selector) = binding.pointer_mut("/spec/matchResources/namespaceSelector") {
        *selector = Placeholder::DefaultQueueNamespaces.mark().into();
    }
    let mut out = format_if(".Values.policies.defaultQueue.namespaceSelector");
    out.push_str(&document(&policy)?);
    out.push_str(&document(&binding)?);
    out.push_str("{{- end }}\n");
    Ok(out)
}

/// The policies about the sender of a request. Without the controller no account may write Workloads or admit pods, so the
/// first are left out; the others need namespaces.
fn guard_templates() -> Result<String, YamlError> {
    let not_by_controller = Placeholder::NotByController.mark();
    let not_exempt = Placeholder::NotByExemptUser.mark();
    let senders = Senders {
        not_by_controller: &not_by_controller,
        not_exempt: &not_exempt,
    };
    let mut out = format_if(".Values.controller.enabled");
    for (policy, binding) in [
        guards::workload_guard(&not_by_controller),
        pod_guards::pod_guard(&not_by_controller),
        job_guards::job_guard(&senders),
        job_guards::job_set_guard(&senders),
        job_guards::job_set_job_guard(&senders),
        job_guards::job_pod_guard(&senders),
    ] {
        out.push_str(&document(&policy)?);
        out.push_str(&document(&binding)?);
    }
    out.push_str("{{- end }}\n");
    out.push_str(&format_if(
        ".Values.policies.queueRequired.namespaceSelector",
    ));
    for (policy, binding) in [
        guards::queue_required(LabelSelector::default(), &not_exempt),
        pod_guards::queue_required(LabelSelector::default(), &not_exempt),
    ] {
        let mut binding = serde_json::to_value(binding)?;
        if let Some(selector) = binding.pointer_mut("/spec/matchResources/namespaceSelector") {
            *selector = Placeholder::QueueRequiredNamespaces.mark().into();
        }
        out.push_str(&document(&policy)?);
        out.push_str(&document(&binding)?);
    }
    out.push_str("{{- end }}\n");
    Ok(out)
}

/// A mutating policy and its binding. Only the controller removes the finalizer, so without it none is added.
fn mutating(
    policy: &MutatingAdmissionPolicy,
    binding: &MutatingAdmissionPolicyBinding,
) -> Result<String, YamlError> {
    let mut policy = serde_json::to_value(policy)?;
    let mut has_others = false;
    if let Some(list) = policy
        .pointer_mut("/spec/mutations")
        .and_then(Value::as_array_mut)
    {
        let mut gated = Vec::new();
        for mutation in list.drain(..) {
            if mutation.to_string().contains(labels::RESOURCE_IN_USE) {
                gated.extend([while_controller(), mutation, end_mark()]);
            } else {
                has_others = true;
                gated.push(mutation);
            }
        }
        *list = gated;
    }
    let documents = document(&policy)? + &document(binding)?;
    if has_others {
        return Ok(documents);
    }
    // Without any mutation the API server rejects the policy.
    let condition = format_if(".Values.controller.enabled");
    Ok(format!("{condition}{documents}{{{{- end }}}}\n"))
}

fn denies(binding: &ValidatingAdmissionPolicyBinding) -> bool {
    let mut actions = binding.spec.validation_actions.iter();
    actions.any(|action| action == DENY)
}

/// A policy and its bindings.
fn validating(
    policy: &ValidatingAdmissionPolicy,
    bindings: &[ValidatingAdmissionPolicyBinding],
) -> Result<String, YamlError> {
    let mut policy = serde_json::to_value(policy)?;
    let mut needed = BTreeSet::new();
    if let Some(list) = policy.pointer_mut("/spec/validations") {
        needed = rule_gates::rule_defaults(list).unwrap_or_default();
        rule_gates::gate_list(list);
    }
    // Without any validation the API server rejects the policy, so it is omitted as a whole.
    let mut out = format_if(&any_rule_at_default(needed));
    out.push_str(&document(&policy)?);
    for binding in bindings {
        out.push_str(&document(binding)?);
    }
    out.push_str("{{- end }}\n");
    Ok(out)
}

fn format_if(condition: &str) -> String {
    format!("{{{{- if {condition} }}}}\n")
}

fn document(object: &impl Serialize) -> Result<String, YamlError> {
    let mut object: Value = serde_json::to_value(object)?;
    put_labels(&mut object);
    Ok(format!("---\n{}", render(&yaml::document(&object)?)))
}
