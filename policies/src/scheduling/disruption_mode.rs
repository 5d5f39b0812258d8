//! What goes together when a group is disrupted.
#![doc = include_str!("template_disruption_mode.md")]
#![doc = include_str!("pod_group_disruption_mode.md")]

use super::gates::{PREEMPTION, is_on};
use super::group::Grouped;
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{
    DISRUPTION_MODE_POD, DISRUPTION_MODE_POD_GROUP, DisruptionMode, PodGroup, Workload,
};

const MODES: [&str; 2] = [DISRUPTION_MODE_POD, DISRUPTION_MODE_POD_GROUP];

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW009",
    "template-disruption-mode-unknown",
    &["pg-disruption-mode-enum", "pg-disruption-mode-any-policy"],
    include_str!("template_disruption_mode.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG009",
    "pod-group-disruption-mode-unknown",
    &[
        "pg-disruption-mode-enum",
        "pg-disruption-mode-required",
        "pg-disruption-mode-default",
        "pg-disruption-mode-any-policy",
    ],
    include_str!("pod_group_disruption_mode.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Grouped>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !is_on(PREEMPTION, context) {
        return;
    }
    for (path, group) in object.groups() {
        let field = path.field("disruptionMode");
        match &group.disruption_mode {
            None if T::HAS_DISRUPTION_MODE => missing(field, out),
            None => {}
            Some(DisruptionMode::Text(mode)) if MODES.contains(&mode.as_str()) => {}
            Some(DisruptionMode::Text(mode)) => out.not_supported(field, mode, &MODES),
            Some(DisruptionMode::OneOf(_)) => out.not_supported(field, "an object", &MODES),
        }
    }
}

/// Tells that a group has no disruption mode.
pub(super) fn missing(field: FieldPath, out: &mut Findings) {
    let detail = "must be \"Pod\" or \"PodGroup\"; an API server fills in \"Pod\"";
    out.required(field, detail);
}
