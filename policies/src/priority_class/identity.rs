#![doc = include_str!("identity.md")]

use crate::finding::Findings;
use crate::metadata;
use crate::rule::{Change, Check, Context, Rule};
use k8s_openapi::api::scheduling::v1::PriorityClass;

pub(super) const RULE: Rule<PriorityClass> = Rule::mirrored(
    "PC007",
    "priority-class-identity-changed",
    &["pc-name-namespace-immutable"],
    include_str!("identity.md"),
    Check::Change(check),
);

fn check(change: &Change<'_, PriorityClass>, _: &Context<'_>, out: &mut Findings) {
    metadata::check_on_update(&change.old.metadata, &change.new.metadata, out);
}
