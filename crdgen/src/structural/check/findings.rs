//! Collects the problems of a schema as findings.

use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use std::borrow::Cow;

/// The rule id of these findings; it is never printed.
const RULE: &str = "structural";

/// Collects the problems of a definition.
#[derive(Debug, Default)]
pub(super) struct FindingCollector(Vec<Finding>);

impl FindingCollector {
    pub(super) fn push(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.0
    }

    pub(super) fn report(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<&str>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.0.push(Finding {
            rule: Cow::Borrowed(RULE),
            field,
            kind,
            value: value.map(|it| format!("{it:?}")),
            detail: detail.into(),
        });
    }

    pub(super) fn forbidden(&mut self, field: FieldPath, detail: &'static str) {
        self.report(field, ErrorKind::Forbidden, None, detail);
    }

    pub(super) fn required(&mut self, field: FieldPath, detail: impl Into<Cow<'static, str>>) {
        self.report(field, ErrorKind::Required, None, detail);
    }

    pub(super) fn invalid(
        &mut self,
        field: FieldPath,
        value: &str,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.report(field, ErrorKind::Invalid, Some(value), detail);
    }
}
