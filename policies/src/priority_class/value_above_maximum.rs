#![doc = include_str!("value_above_maximum.md")]

use crate::finding::Findings;
use crate::rule::{Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::scheduling::{SYSTEM_PREFIX, USER_PRIORITY_MAX};

pub(super) const RULE: Rule<PriorityClass> = Rule::mirrored(
    "PC005",
    "priority-above-user-maximum",
    &["pc-value-max-user"],
    include_str!("value_above_maximum.md"),
    Check::Create(check),
);

fn check(class: &PriorityClass, _: &Context<'_>, out: &mut Findings) {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    let value = class.value.unwrap_or_default();
    if value > USER_PRIORITY_MAX && !name.starts_with(SYSTEM_PREFIX) {
        let detail = format!("{value} is above {USER_PRIORITY_MAX}, the largest value of a class");
        out.forbidden(FieldPath::new("value"), detail);
    }
}
