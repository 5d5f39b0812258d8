#![doc = include_str!("declaration_mismatch.md")]

use super::mistakes::report;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::JobKind;
use lockkeeper_api::config::Action;
use lockkeeper_job_kinds::{DeclaredKind, check_against_definition};

pub(super) const RULE: Rule<JobKind> = Rule {
    id: "JK002",
    name: "declaration-mismatch",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("declaration_mismatch.md"),
    check: Check::Context(check),
};

fn check(object: &JobKind, context: &Context<'_>, out: &mut Findings) {
    // JK001 reports these mistakes.
    if DeclaredKind::compile(object).is_err() {
        return;
    }
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let definition = context.cluster.definition(name, &object.spec.kind);
    if let Some(definition) = definition.found()
        && let Err(errors) = check_against_definition(object, definition)
    {
        report(errors, object, out);
    }
}
