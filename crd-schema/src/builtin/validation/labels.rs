//! Labels and label selectors, as `k8s.io/apimachinery/pkg/apis/meta/v1/validation`.

use super::causes::{Below, Causes};
use super::fields::{list, set, text, text_entries, texts};
use crate::crd::names;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Whether values of requirements are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelValues {
    /// All values are validated.
    Validated,
    /// A stored object has a value that is not valid.
    AnyAccepted,
}

/// Validates a map of labels.
pub(super) fn validate(object: &Value, key: &'static str, path: &FieldPath, out: &mut Causes) {
    let path = path.child(key);
    for (key, value) in text_entries(object, key) {
        out.reasons(&path, key, names::qualified_name(key));
        out.reasons(&path, value, names::label_value(value));
    }
}

/// Validates a label selector.
pub(super) fn validate_selector(
    selector: &Value,
    values: LabelValues,
    path: &FieldPath,
    out: &mut Causes,
) {
    validate(selector, "matchLabels", path, out);
    for (position, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").at(position);
        let all = texts(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if all.is_empty() => out.required(
                path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if !all.is_empty() => out.forbidden(
                path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => out.invalid(path.child("operator"), "not a valid selector operator"),
        }
        let key = text(requirement, "key");
        out.reasons(&path.child("key"), key, names::qualified_name(key));
        if values == LabelValues::Validated {
            for (position, value) in all.iter().enumerate() {
                let path = path.child("values").at(position);
                out.reasons(&path, value, names::label_value(value));
            }
        }
    }
}

/// Whether a selector is valid.
pub(super) fn is_valid_selector(selector: &Value) -> bool {
    let mut out = Causes::default();
    let path = FieldPath::default();
    validate_selector(selector, LabelValues::Validated, &path, &mut out);
    out.len() == 0
}

/// Whether values of the requirements of a selector are not valid.
pub(super) fn has_invalid_value(selector: &Value) -> bool {
    let requirements = list(selector, "matchExpressions").iter();
    let mut all = requirements.flat_map(|it| texts(it, "values"));
    all.any(|it| !names::label_value(it).is_empty())
}

/// The set of labels that a selector matches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Matcher<'a> {
    /// The selector is absent and matches nothing.
    Nothing,
    /// The selector has no requirements.
    Everything,
    /// A selector with requirements.
    Requirements(&'a Value),
}

impl<'a> Matcher<'a> {
    /// The matcher of a field. `None` if the selector is not valid.
    pub(super) fn of(object: &'a Value, key: &str) -> Option<Self> {
        let Some(selector) = set(object, key) else {
            return Some(Self::Nothing);
        };
        if is_empty(selector) {
            return Some(Self::Everything);
        }
        is_valid_selector(selector).then_some(Self::Requirements(selector))
    }

    /// Whether the selector has no requirements. An absent selector has none.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Everything)
    }

    /// Whether the labels in the field of an object match.
    pub(super) fn matches(self, object: &Value) -> bool {
        let label = |key: &str| {
            let labels = text_entries(object, "labels");
            let mut labels = labels.filter(|it| it.0 == key);
            labels.next().map(|it| it.1)
        };
        let selector = match self {
            Self::Nothing => return false,
            Self::Everything => return true,
            Self::Requirements(selector) => selector,
        };
        let mut equal = text_entries(selector, "matchLabels");
        let mut others = list(selector, "matchExpressions").iter();
        equal.all(|(key, value)| label(key) == Some(value))
            && others.all(|requirement| {
                let value = label(text(requirement, "key"));
                let is_listed =
                    || value.is_some_and(|it| texts(requirement, "values").contains(&it));
                match text(requirement, "operator") {
                    "In" => is_listed(),
                    "NotIn" => !is_listed(),
                    "Exists" => value.is_some(),
                    _ => value.is_none(),
                }
            })
    }
}

/// Whether a selector has no requirements.
pub(super) fn is_empty(selector: &Value) -> bool {
    text_entries(selector, "matchLabels").next().is_none()
        && list(selector, "matchExpressions").is_empty()
}
