//! The priority of a group.
#![doc = include_str!("template_priority.md")]
#![doc = include_str!("pod_group_priority_malformed.md")]

use super::gates::{PREEMPTION, is_on};
use super::group::{Grouped, named};
use crate::finding::Findings;
use crate::names::dns_subdomain;
use crate::priority::USER_PRIORITY_MAX;
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};

pub(super) const WORKLOAD: Rule<Workload> = Rule::mirrored(
    "KW010",
    "template-priority-malformed",
    &[
        "pg-priority-class-name-format",
        "pg-priority-range",
        "pg-template-priority-unchecked",
        "prio-workload-not-touched",
    ],
    include_str!("template_priority.md"),
    Check::Create(check::<Workload>),
);

pub(super) const POD_GROUP: Rule<PodGroup> = Rule::mirrored(
    "PG010",
    "pod-group-priority-malformed",
    &["pg-priority-class-name-format", "pg-priority-range"],
    include_str!("pod_group_priority_malformed.md"),
    Check::Create(check::<PodGroup>),
);

fn check<T: Grouped>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if !is_on(PREEMPTION, context) {
        return;
    }
    for (path, group) in object.groups() {
        let class = &group.priority_class_name;
        if !class.is_empty() {
            let field = path.clone().field("priorityClassName");
            named(&field, class, dns_subdomain(class), out);
        }
        if let Some(priority) = group.priority.filter(|it| *it > USER_PRIORITY_MAX) {
            let detail = format!("must be at most {USER_PRIORITY_MAX}");
            out.invalid(path.field("priority"), priority, detail);
        }
    }
}
