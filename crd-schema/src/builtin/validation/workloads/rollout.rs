//! Numbers and percentages of pods.

use crate::builtin::validation::causes::Causes;
use crate::builtin::validation::fields::integer_of;
use crate::builtin::validation::formats::is_percent;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|it| is_percent(it))?;
    // A number that is too large counts as the largest.
    let digits = text.strip_suffix('%')?;
    Some(digits.parse().unwrap_or(i64::MAX))
}

/// Validates a number that is not negative, or a percentage.
pub(in super::super) fn int_or_percent(value: &Value, path: &FieldPath, out: &mut Causes) {
    match value {
        Value::String(_) if percent(value).is_none() => {
            out.invalid(path.clone(), "must be a number followed by '%'");
        }
        Value::String(_) => {}
        other => out.nonnegative(path.clone(), integer_of(other)),
    }
}

/// Validates that a percentage is at most 100.
pub(in super::super) fn is_over_100_percent(value: &Value, path: &FieldPath, out: &mut Causes) {
    if percent(value).is_some_and(|it| it > 100) {
        out.invalid(path.clone(), "must not be greater than 100%");
    }
}

/// The number, or the number before the sign of a percentage.
pub(super) fn number_of(value: &Value) -> i64 {
    percent(value)
        .or_else(|| integer_of(value))
        .or_else(|| value.as_str()?.parse().ok())
        .unwrap_or(0)
}
