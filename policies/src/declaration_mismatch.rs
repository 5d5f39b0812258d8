//! Rule JK002: declarations of kinds of jobs that do not fit the definition of the kind. `lockkeeper check` has the definition.

use crate::finding::{ErrorKind, Finding};
use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::JobKind;
use lockkeeper_api::config::Action;
use lockkeeper_job_kinds::check_against_definition;
use serde_json::Value;
use std::borrow::Cow;

/// The id of findings about a declaration and a definition.
pub const ID: &str = "JK002";

pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "declaration-mismatch",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Check],
        operations: &[Operation::Create, Operation::Update],
        ratchets: false,
        doc: include_str!("declaration_mismatch.md"),
    }
}

/// The findings about a declaration with the definition of its kind. None for an object that is no declaration, or that cannot be
/// decoded: other rules report that.
#[must_use]
pub fn findings(declaration: &Value, definition: &Value) -> Vec<Finding> {
    let Ok(decoded) = serde_json::from_value::<JobKind>(declaration.clone()) else {
        return Vec::new();
    };
    let Err(errors) = check_against_definition(&decoded, definition) else {
        return Vec::new();
    };
    let findings = errors.into_iter().map(|error| Finding {
        rule: Cow::Borrowed(ID),
        field: error.field,
        kind: ErrorKind::Invalid,
        value: None,
        detail: error.problem.into(),
    });
    findings.collect()
}

/// The group and kind that a declaration names; `None` for any other object.
#[must_use]
pub fn declared_kind(object: &Value) -> Option<(&str, &str)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let is_declaration = text("/kind") == Some("JobKind")
        && text("/apiVersion")?.split_once('/')?.0 == lockkeeper_api::GROUP;
    let (_, group) = text("/metadata/name")?.split_once('.')?;
    let kind = text("/spec/kind")?;
    is_declaration.then_some((group, kind))
}
