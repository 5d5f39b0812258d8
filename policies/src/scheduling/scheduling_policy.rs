//! The scheduling policy of a group.
#![doc = include_str!("template_scheduling_policy.md")]
#![doc = include_str!("pod_group_scheduling_policy.md")]

use super::pod_group_view::{PodGroupFields, PodGroupView};
use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;

const COVERS: &[&str] = &["pg-scheduling-policy-one-of", "pg-gang-min-count"];

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW006",
        "template-scheduling-policy-malformed",
        COVERS,
        include_str!("template_scheduling_policy.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG006",
        "pod-group-scheduling-policy-malformed",
        COVERS,
        include_str!("pod_group_scheduling_policy.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, _: &Context<'_>, out: &mut Findings) {
    for group in object.groups() {
        let field = group.path.clone().field("schedulingPolicy");
        check_one_of(&field, &group, out);
        check_min_count(&field, &group, out);
    }
}

/// Reports a policy that is not exactly one of `basic` and `gang`.
pub(super) fn check_one_of(field: &FieldPath, group: &PodGroupView<'_>, out: &mut Findings) {
    match (group.is_basic, group.gang.is_some()) {
        (false, false) => out.invalid(field.clone(), "", "give one of basic and gang"),
        (true, true) => {
            let detail = "give only one of them";
            out.invalid(field.clone(), "basic, gang", detail);
        }
        _ => {}
    }
}

/// Reports a gang without a minimum of at least one pod.
pub(super) fn check_min_count(field: &FieldPath, group: &PodGroupView<'_>, out: &mut Findings) {
    let Some((name, least)) = group.gang else {
        return;
    };
    let field = field.clone().field("gang").field(name);
    match least {
        0 => {
            let detail = "set how many must be scheduled together, at least 1";
            out.required(field, detail);
        }
        1.. => {}
        below => out.invalid(field, below, "must be at least 1"),
    }
}
