//! The most similar known field of an unknown one.

use super::field_text::field_of;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::schema::{MisspeltPart, StructuralSchema, UNKNOWN};
use serde_json::Value;
use std::borrow::Cow;

/// Findings about unknown fields, which the texts name.
pub(super) fn unknown_fields(
    fields: &[&str],
    object: &Value,
    structure: Option<&StructuralSchema>,
) -> Vec<Finding> {
    let corrections = structure.map_or_else(Vec::new, |it| it.corrections(object));
    let finding = |text: &&str| {
        let field = field_of(text, object);
        let pointer = field.pointer();
        let correction = corrections
            .iter()
            .find(|it| it.part == MisspeltPart::Name && it.field.pointer() == pointer);
        let suggestion = correction.map(|it| it.suggestion.as_str());
        unknown_field(field, object, suggestion)
    };
    fields.iter().map(finding).collect()
}

/// The finding about an unknown field, with the most similar known one.
pub(super) fn unknown_field(field: FieldPath, object: &Value, suggestion: Option<&str>) -> Finding {
    let mut detail = "unknown field, which would be dropped".to_owned();
    if let Some(suggestion) = suggestion {
        detail.push_str("; did you mean ");
        detail.push_str(suggestion);
        detail.push('?');
    }
    let value = object.pointer(&field.pointer());
    Finding {
        rule: Cow::Borrowed(UNKNOWN),
        kind: ErrorKind::Invalid,
        value: value.map(lockkeeper_crd_schema::display_value),
        detail: detail.into(),
        field,
    }
}
