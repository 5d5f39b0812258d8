//! The result of all checks.

use crate::finding::Finding;
use serde::Serialize;

/// The findings, and what was not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// The findings: errors first, then by check and object.
    pub findings: Vec<Finding>,
    /// What was not checked, with the reasons.
    pub not_checked: Vec<String>,
}

impl Diagnosis {
    pub(crate) fn skip(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.not_checked.contains(&reason) {
            self.not_checked.push(reason);
        }
    }
}
