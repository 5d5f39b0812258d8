//! The priority of a PodGroup against that of its class.
#![doc = include_str!("pod_group_priority_class_unknown.md")]
#![doc = include_str!("pod_group_priority_mismatch.md")]

use super::pod_group_view::PodGroupFields;
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::priority_admission::{known_classes, resolve};
use crate::rule::{Check, Context, Rule};

pub(super) const fn unknown_class<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG012",
        "pod-group-priority-class-unknown",
        &["prio-podgroup-class-exists"],
        include_str!("pod_group_priority_class_unknown.md"),
        Check::Create(check_class::<T>),
    )
}

pub(super) const fn mismatch<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG013",
        "pod-group-priority-mismatch",
        &["prio-podgroup-default", "prio-podgroup-priority-match"],
        include_str!("pod_group_priority_mismatch.md"),
        Check::Create(check_priority::<T>),
    )
}

fn check_class<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::has_priorities(context) {
        return;
    }
    for group in object
        .groups()
        .iter()
        .filter(|it| !it.priority_class.is_empty())
    {
        if let Lookup::Absent = resolve(context.cluster, group.priority_class) {
            let field = group.path.clone().field("priorityClassName");
            out.not_found(field, group.priority_class, known_classes(context.cluster));
        }
    }
}

fn check_priority<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::has_priorities(context) {
        return;
    }
    for group in object.groups() {
        let resolved = resolve(context.cluster, group.priority_class).found();
        let Some((given, priority)) = group.priority.zip(resolved) else {
            continue;
        };
        if priority.value != given {
            let detail = format!(
                "{given} must be {}, the priority {}; omit it to use the default",
                priority.value,
                priority.source()
            );
            out.forbidden(group.path.field("priority"), detail);
        }
    }
}
