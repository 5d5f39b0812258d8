//! Fields that an API server does not know yet.
#![doc = include_str!("template_field_without_gate.md")]
#![doc = include_str!("pod_group_field_without_gate.md")]

use super::gates::{PREEMPTION, TOPOLOGY, is_on};
use super::group::Grouped;
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

const COVERS: &[&str] = &[
    "pg-constraints-gate",
    "pg-disruption-mode-gate",
    "pg-priority-class-name-gate",
    "pg-priority-gate",
];

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW011",
    "template-field-without-gate",
    COVERS,
    include_str!("template_field_without_gate.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG011",
    "pod-group-field-without-gate",
    COVERS,
    include_str!("pod_group_field_without_gate.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Grouped>(object: &T, context: &Context<'_>, out: &mut Findings) {
    for (path, group) in object.groups() {
        for (name, is_given, gate) in [
            (
                "schedulingConstraints",
                group.scheduling_constraints.is_some(),
                TOPOLOGY,
            ),
            (
                "disruptionMode",
                group.disruption_mode.is_some(),
                PREEMPTION,
            ),
            (
                "priorityClassName",
                !group.priority_class_name.is_empty(),
                PREEMPTION,
            ),
            ("priority", group.priority.is_some(), PREEMPTION),
        ] {
            if is_given && !is_on(gate, context) {
                closed(path.clone().field(name), gate, out);
            }
        }
    }
}

/// Tells that a field needs a gate that is off.
pub(super) fn closed(field: FieldPath, gate: &str, out: &mut Findings) {
    let detail = format!("leave it out, or switch on the feature gate {gate}");
    out.forbidden(field, detail);
}
