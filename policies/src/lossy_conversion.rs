//! What is lost when Kueue's objects become lockkeeper's. It is for whoever reads files and asks for that.

use crate::finding::{ErrorKind, Finding};
use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::DroppedField;
use std::borrow::Cow;

/// The id under which goes what is lost.
pub const ID: &str = "SC007";

/// What happens by default to what is lost.
pub const ACTION: Action = Action::Warn;

/// What is known of it.
pub(crate) fn info() -> RuleInfo {
    RuleInfo {
        id: ID,
        name: "lost-in-conversion",
        group: "*".to_owned(),
        kind: "*".to_owned(),
        since: "0.1.0",
        action: ACTION,
        covers: &[],
        layers: &[Layer::Check],
        operations: &[Operation::Create],
        ratchets: true,
        doc: include_str!("lossy_conversion.md"),
    }
}

/// What is said of something lost.
#[must_use]
pub fn dropped_field(lost: &DroppedField) -> Finding {
    new_finding(lost.field.clone(), lost.advice)
}

/// What is said of a class of Kueue's whose name is taken by one of Kubernetes'.
#[must_use]
pub fn name_conflict() -> Finding {
    let advice = "a PriorityClass with this name and another value is given as well; give one of them another name";
    new_finding(FieldPath::new("metadata.name"), advice)
}

fn new_finding(field: FieldPath, advice: &str) -> Finding {
    Finding {
        rule: Cow::Borrowed(ID),
        field,
        kind: ErrorKind::Forbidden,
        value: None,
        detail: format!("it is lost: {advice}").into(),
    }
}
