//! Collects findings, and reads the fields of schemas.

use crate::crd::values::quoted_json;
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Findings about a definition.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) findings: Vec<Finding>,
}

impl Collector {
    pub(super) fn push(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<&Value>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.findings.len() < FINDINGS_PER_RULE_MAX {
            self.findings.push(Finding {
                rule: Cow::Borrowed(SCHEMA_VIOLATION),
                field,
                kind,
                value: value.map(quoted_json),
                detail: detail.into(),
            });
        }
    }

    pub(super) fn invalid(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Invalid, None, detail);
    }

    pub(super) fn required(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Required, None, detail);
    }

    pub(super) fn forbidden(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Forbidden, None, detail);
    }

    pub(super) fn not_supported(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        let detail = format!("supported values: {}", accepted.join(", "));
        self.push(field, ErrorKind::NotSupported, Some(&value.into()), detail);
    }

    /// Reports reasons as one finding, if there are any.
    pub(super) fn reasons(&mut self, field: FieldPath, value: &str, reasons: &[String]) {
        if !reasons.is_empty() {
            self.push(
                field,
                ErrorKind::Invalid,
                Some(&value.into()),
                reasons.join(", "),
            );
        }
    }
}

/// The text of a field; empty if it is not set.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An object that is set.
pub(super) fn object<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|it| it.is_object())
}

/// The entries of an object; none if it is not set.
pub(super) fn entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let fields: Option<&'a Map<String, Value>> = value.get(key).and_then(Value::as_object);
    fields.into_iter().flatten()
}

/// Whether a field is set to something else than null.
pub(super) fn is_set(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|it| !it.is_null())
}
