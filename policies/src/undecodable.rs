//! The finding for a value that does not fit its type. It comes from whoever decodes the object, not
//! from a check.

use crate::finding::{ErrorKind, Finding};
use crate::registry::RuleInfo;
use crate::rule::{Layer, Operation};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

const ID: &str = "SC001";

/// The most characters of a decoder's message that are repeated: it may quote the input.
const REASON_LENGTH_MAX: usize = 200;

/// What is known of it.
pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "undecodable-value",
        kind: "*".to_owned(),
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["mutating-decode-error"],
        layers: &[Layer::Webhook],
        operations: &[Operation::Create, Operation::Update],
        doc: include_str!("undecodable.md"),
    }
}

impl Finding {
    /// A value of an object does not fit its type; `reason` says how.
    #[must_use]
    pub fn undecodable(field: FieldPath, reason: &str) -> Self {
        Self {
            rule: ID,
            field,
            kind: ErrorKind::TypeInvalid,
            value: None,
            detail: reason.chars().take(REASON_LENGTH_MAX).collect(),
        }
    }
}
