#![doc = include_str!("template_priorities.md")]

use super::pod_group_view::PodGroupFields;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Rule};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::v1beta1::Workload;

pub(super) const RULE: Rule<Workload> = Rule::mirrored(
    "KW013",
    "template-priorities-differ",
    &[],
    include_str!("template_priorities.md"),
    Check::Context(check),
);

fn check(workload: &Workload, _: &Context<'_>, out: &mut Findings) {
    let groups = workload.groups();
    let Some((first, rest)) = groups.split_first() else {
        return;
    };
    let other = rest
        .iter()
        .find(|it| (it.priority_class, it.priority) != (first.priority_class, first.priority));
    if let Some(other) = other {
        let detail = format!(
            "all templates of a Workload have the same priorityClassName and priority; {} has {}, and {} has {}",
            first.path.text(),
            priority_text(first.priority_class, first.priority),
            other.path.text(),
            priority_text(other.priority_class, other.priority),
        );
        out.invalid(FieldPath::new("spec"), "", detail);
    }
}

/// The text of a priority in messages.
fn priority_text(class: &str, priority: Option<i32>) -> String {
    match (class, priority) {
        ("", None) => "none".to_owned(),
        ("", Some(priority)) => priority.to_string(),
        (class, None) => quoted(class),
        (class, Some(priority)) => format!("{} and {priority}", quoted(class)),
    }
}
