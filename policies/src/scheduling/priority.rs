//! The priority of a group.
#![doc = include_str!("template_priority.md")]
#![doc = include_str!("pod_group_priority_malformed.md")]

use super::pod_group_view::{PodGroupFields, check_name};
use crate::finding::Findings;
use crate::name_validation::dns_subdomain;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::USER_PRIORITY_MAX;

pub(super) const fn workload<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "KW010",
        "template-priority-malformed",
        &[
            "pg-priority-class-name-format",
            "pg-priority-range",
            "pg-template-priority-unchecked",
            "prio-workload-not-touched",
        ],
        include_str!("template_priority.md"),
        Check::Create(check::<T>),
    )
}

pub(super) const fn pod_group<T: PodGroupFields>() -> Rule<T> {
    Rule::mirrored(
        "PG010",
        "pod-group-priority-malformed",
        &["pg-priority-class-name-format", "pg-priority-range"],
        include_str!("pod_group_priority_malformed.md"),
        Check::Create(check::<T>),
    )
}

fn check<T: PodGroupFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::has_priorities(context) {
        return;
    }
    for group in object.groups() {
        let class = group.priority_class;
        if !class.is_empty() {
            let field = group.path.clone().field("priorityClassName");
            check_name(&field, class, dns_subdomain(class), out);
        }
        if let Some(priority) = group.priority.filter(|it| *it > USER_PRIORITY_MAX) {
            let detail = format!("must be at most {USER_PRIORITY_MAX}");
            out.invalid(group.path.field("priority"), priority, detail);
        }
    }
}
