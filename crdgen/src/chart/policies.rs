//! The template of the admission policies: what the API server refuses and fills in by itself while no replica of the
//! webhook answers.
//!
//! Policies that only warn are left out: beside the webhook they would say everything twice.

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

/// What a binding does that refuses.
const DENY: &str = "Deny";

/// Policies that fill in are of version 1 since Kubernetes 1.36.
const HAS_MUTATING: &str = "semverCompare \">=1.36-0\" .Capabilities.KubeVersion.Version";

pub(super) fn template() -> Result<String, ChartError> {
    let all = policies(&BTreeSet::new(), &Settings::default())?;
    let mut out = format!("{HEAD}{{{{- if .Values.policies.enabled }}}}\n");
    for (policy, bindings) in &all.validating {
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

/// A policy and its bindings, while one of its rules at least is as it is declared: it may not be empty.
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
