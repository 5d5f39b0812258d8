//! The template of the admission policies, by which the API server validates and defaults while no
//! replica of the webhook responds.

use super::placeholders::{any_rule_at_default, render};
use super::{ChartError, HEAD, put_labels, rule_gates};
use crate::admission_policies::policies;
use crate::yaml::{self, YamlError};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use lockkeeper_policies::settings::Settings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The action of a binding that rejects.
const DENY: &str = "Deny";

/// Mutating admission policies have version v1 since Kubernetes 1.36.
const HAS_MUTATING: &str = "semverCompare \">=1.36-0\" .Capabilities.KubeVersion.Version";

pub(super) fn template() -> Result<String, ChartError> {
    let all = policies(&BTreeSet::new(), &Settings::default())?;
    let mut out = format!("{HEAD}{{{{- if .Values.policies.enabled }}}}\n");
    for (policy, bindings) in &all.validating {
        // Without policies that only warn: the webhook would return the same warnings again.
        if bindings.iter().any(denies) {
            out.push_str(&validating(policy, bindings)?);
        }
    }
    out.push_str(&format_if(HAS_MUTATING));
    for (policy, binding) in &all.mutating {
        out.push_str(&document(policy)?);
        out.push_str(&document(binding)?);
    }
    out.push_str("{{- end }}\n{{- end }}\n");
    Ok(out)
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
