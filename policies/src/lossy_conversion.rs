//! Rule SC007: fields that the conversion of Kueue's objects drops. `lockkeeper check --as` reports them.

use crate::finding::{ErrorKind, Finding};
use crate::rule_info::{Layer, Operation, RuleInfo};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::DroppedField;
use std::borrow::Cow;

/// The id of findings about dropped fields.
pub const ID: &str = "SC007";

/// The default action.
pub const ACTION: Action = Action::Warn;

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

/// The finding for a field that a conversion drops.
#[must_use]
pub fn dropped_field(lost: &DroppedField) -> Finding {
    new_finding(lost.field.clone(), lost.advice)
}

/// The finding for a `WorkloadPriorityClass` of Kueue with the name of a different PriorityClass.
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
