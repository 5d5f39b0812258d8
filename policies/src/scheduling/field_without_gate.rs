//! Fields whose feature gate is off.
#![doc = include_str!("template_field_without_gate.md")]
#![doc = include_str!("pod_group_field_without_gate.md")]

use super::feature_gates::is_enabled;
use super::pod_group_view::PodGroupFields;
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;

const COVERS: &[&str] = &[
    "pg-constraints-gate",
    "pg-disruption-mode-gate",
    "pg-priority-class-name-gate",
    "pg-priority-gate",
];

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW011",
        "template-field-without-gate",
        COVERS,
        include_str!("template_field_without_gate.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG011",
        "pod-group-field-without-gate",
        COVERS,
        include_str!("pod_group_field_without_gate.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    for (field, gate) in object.gated() {
        if !is_enabled(gate, context) {
            report_disabled_gate(field, gate, out);
        }
    }
}

/// Reports a field whose feature gate is off.
pub(super) fn report_disabled_gate(field: FieldPath, gate: &str, out: &mut Findings) {
    let detail = format!("leave it out, or switch on the feature gate {gate}");
    out.forbidden(field, detail);
}
