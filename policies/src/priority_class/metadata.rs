#![doc = include_str!("metadata.md")]

use crate::finding::Findings;
use crate::metadata::check_on_create;
use crate::rule::{Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;

pub(super) const RULE: Rule<PriorityClass> = Rule::mirrored(
    "PC003",
    "priority-class-metadata-malformed",
    &["pc-name-format", "pc-no-namespace"],
    include_str!("metadata.md"),
    Check::Create(check),
);

fn check(class: &PriorityClass, _: &Context<'_>, out: &mut Findings) {
    check_on_create(&class.metadata, false, out);
}
