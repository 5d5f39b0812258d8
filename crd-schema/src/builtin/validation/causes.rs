//! Collects the causes of a rejection, and names fields.

use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding, quoted};
use crate::rule_ids::SCHEMA_VIOLATION;
use lockkeeper_api::field_path::FieldPath;
use std::borrow::Cow;

/// The fields below a path.
pub(super) trait Below {
    /// A field; dots separate the names of nested fields.
    fn child(&self, fields: &'static str) -> FieldPath;
    /// An item of a list.
    fn at(&self, position: usize) -> FieldPath;
    /// An entry of a map.
    fn entry(&self, key: &str) -> FieldPath;
}

impl Below for FieldPath {
    fn child(&self, fields: &'static str) -> FieldPath {
        self.clone().field(fields)
    }

    fn at(&self, position: usize) -> FieldPath {
        self.clone().index(position)
    }

    fn entry(&self, key: &str) -> FieldPath {
        self.clone().key(key)
    }
}

/// The causes of a rejection, in the order of their discovery.
#[derive(Debug, Default)]
pub(super) struct Causes {
    findings: Vec<Finding>,
}

impl Causes {
    /// The collected causes.
    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// The number of causes.
    pub(super) fn len(&self) -> usize {
        self.findings.len()
    }

    /// Appends causes.
    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.findings.truncate(FINDINGS_PER_RULE_MAX);
    }

    fn push(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<&str>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.findings.len() < FINDINGS_PER_RULE_MAX {
            self.findings.push(Finding {
                rule: Cow::Borrowed(SCHEMA_VIOLATION),
                field,
                kind,
                value: value.map(quoted),
                detail: detail.into(),
            });
        }
    }

    /// The value is not allowed.
    pub(super) fn invalid(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Invalid, None, detail);
    }

    /// A value is missing.
    pub(super) fn required(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Required, None, detail);
    }

    /// The field may not be set.
    pub(super) fn forbidden(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.push(field, ErrorKind::Forbidden, None, detail);
    }

    /// The value is not one of a known set.
    pub(super) fn not_supported(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        let detail = format!("supported values: {}", accepted.join(", "));
        self.push(field, ErrorKind::NotSupported, Some(value), detail);
    }

    /// The value is in the list more than once.
    pub(super) fn duplicate(&mut self, field: FieldPath, value: &str) {
        self.push(field, ErrorKind::Duplicate, Some(value), "");
    }

    /// The value refers to something that does not exist.
    pub(super) fn not_found(&mut self, field: FieldPath, value: &str) {
        self.push(field, ErrorKind::NotFound, Some(value), "");
    }

    /// The value has too many bytes.
    pub(super) fn too_long(&mut self, field: FieldPath, max: usize) {
        let detail = format!("may not be more than {max} bytes");
        self.push(field, ErrorKind::TooLong, None, detail);
    }

    /// The list has too many items.
    pub(super) fn too_many(&mut self, field: FieldPath, count: usize, max: usize) {
        let detail = format!("must have at most {max} items");
        self.push(field, ErrorKind::TooMany, Some(&count.to_string()), detail);
    }

    /// Reports each reason why a value is not allowed.
    pub(super) fn reasons(&mut self, field: &FieldPath, value: &str, reasons: Vec<String>) {
        for reason in reasons {
            self.push(field.clone(), ErrorKind::Invalid, Some(value), reason);
        }
    }

    /// Reports a text that is neither empty nor one of a set; an empty text is missing.
    pub(super) fn choice(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        if value.is_empty() {
            self.required(field, "");
        } else if !accepted.contains(&value) {
            self.not_supported(field, value, accepted);
        }
    }

    /// Reports a text that is not one of a set.
    pub(super) fn one_of(&mut self, field: FieldPath, value: &str, accepted: &[&str]) {
        if !accepted.contains(&value) {
            self.not_supported(field, value, accepted);
        }
    }

    /// Reports a text that is set and not one of a set.
    pub(super) fn optional(&mut self, field: FieldPath, value: Option<&str>, accepted: &[&str]) {
        if let Some(value) = value {
            self.one_of(field, value, accepted);
        }
    }

    /// Reports an empty text.
    pub(super) fn not_empty(&mut self, field: FieldPath, value: &str) {
        if value.is_empty() {
            self.required(field, "");
        }
    }

    /// Reports a number below zero.
    pub(super) fn nonnegative(&mut self, field: FieldPath, value: Option<i64>) {
        if value.is_some_and(|it| it < 0) {
            self.invalid(field, "must be greater than or equal to 0");
        }
    }

    /// Reports a number outside of a range.
    pub(super) fn range(&mut self, field: FieldPath, value: Option<i64>, min: i64, max: i64) {
        if value.is_some_and(|it| !(min..=max).contains(&it)) {
            let detail = format!("must be between {min} and {max}, inclusive");
            self.invalid(field, detail);
        }
    }
}
