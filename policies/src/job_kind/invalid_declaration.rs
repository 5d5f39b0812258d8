#![doc = include_str!("invalid_declaration.md")]

use super::mistakes::report;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::JobKind;
use lockkeeper_api::config::Action;
use lockkeeper_job_kinds::DeclaredKind;

pub(super) const RULE: Rule<JobKind> = Rule {
    id: "JK001",
    name: "invalid-declaration",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_declaration.md"),
    check: Check::Object(check),
};

fn check(object: &JobKind, out: &mut Findings) {
    if let Err(errors) = DeclaredKind::compile(object) {
        report(errors, object, out);
    }
}
