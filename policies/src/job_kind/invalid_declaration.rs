#![doc = include_str!("invalid_declaration.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::JobKind;
use lockkeeper_api::config::Action;
use lockkeeper_job_kinds::DeclaredKind;
use serde_json::Value;

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
    let Err(errors) = DeclaredKind::compile(object) else {
        return;
    };
    let json = serde_json::to_value(object).unwrap_or_default();
    for error in errors {
        let value = json.pointer(&error.field.pointer());
        let value = value.and_then(Value::as_str).unwrap_or_default().to_owned();
        out.invalid(error.field, value, error.problem);
    }
}
