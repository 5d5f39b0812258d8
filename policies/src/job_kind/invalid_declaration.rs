#![doc = include_str!("invalid_declaration.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::JobKind;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
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
    let Err(errors) = DeclaredKind::compile(object) else {
        return;
    };
    let json = serde_json::to_value(object).unwrap_or_default();
    for error in errors {
        let value = value_at(&json, &error.field);
        out.invalid(error.field, value, error.problem);
    }
}

/// The text at a path, or an empty one.
fn value_at(json: &serde_json::Value, path: &FieldPath) -> String {
    let path = path.to_string().replace('[', ".").replace(']', "");
    let found = path
        .split('.')
        .try_fold(json, |value, name| match name.parse::<usize>() {
            Ok(index) => value.get(index),
            Err(_) => value.get(name),
        });
    found
        .and_then(|it| it.as_str())
        .unwrap_or_default()
        .to_owned()
}
