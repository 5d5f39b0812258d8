//! The priority of a PodGroup against that of its class.
#![doc = include_str!("pod_group_priority_class_unknown.md")]
#![doc = include_str!("pod_group_priority_mismatch.md")]

use super::gates::{PREEMPTION, is_on};
use crate::finding::Findings;
use crate::priority::{known_classes, resolve};
use crate::rule::{Check, Context, Rule};
use crate::world::Lookup;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::PodGroup;

pub(super) const UNKNOWN_CLASS: Rule<PodGroup> = Rule::mirrored(
    "PG012",
    "pod-group-priority-class-unknown",
    &["prio-podgroup-class-exists"],
    include_str!("pod_group_priority_class_unknown.md"),
    Check::Create(unknown_class),
);

pub(super) const MISMATCH: Rule<PodGroup> = Rule::mirrored(
    "PG013",
    "pod-group-priority-mismatch",
    &["prio-podgroup-default", "prio-podgroup-priority-match"],
    include_str!("pod_group_priority_mismatch.md"),
    Check::Create(mismatch),
);

fn unknown_class(group: &PodGroup, context: &Context<'_>, out: &mut Findings) {
    let class = &group.spec.group.priority_class_name;
    if !is_on(PREEMPTION, context) || class.is_empty() {
        return;
    }
    if let Lookup::Absent = resolve(context.world, class) {
        let field = FieldPath::new("spec.priorityClassName");
        out.not_found(field, class, known_classes(context.world));
    }
}

fn mismatch(group: &PodGroup, context: &Context<'_>, out: &mut Findings) {
    let Some(given) = group.spec.group.priority else {
        return;
    };
    if !is_on(PREEMPTION, context) {
        return;
    }
    let resolved = resolve(context.world, &group.spec.group.priority_class_name);
    if let Some(priority) = resolved.found().filter(|it| it.value != given) {
        let detail = format!(
            "must be {}, the priority {}; leave it out, and it is filled in",
            priority.value,
            priority.source()
        );
        out.forbidden(FieldPath::new("spec.priority"), format!("{given} {detail}"));
    }
}
