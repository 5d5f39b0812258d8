//! Names of a definition.

use super::collector::{Collector, text};
use crate::crd::names::dns1035_label;
use crate::crd::values::array_at;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;

/// Validates the names that are set.
pub(super) fn validate(names: &Value, path: &FieldPath, out: &mut Collector) {
    for key in ["plural", "singular"] {
        label(text(names, key), &path.clone().named(key), out);
    }
    for key in ["kind", "listKind"] {
        label(
            &text(names, key).to_lowercase(),
            &path.clone().named(key),
            out,
        );
    }
    for key in ["shortNames", "categories"] {
        for (position, name) in array_at(names, key).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let field = path.clone().named(key).index(position);
            out.reasons(field, name, &dns1035_label(name));
        }
    }
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let field = path.clone().field("listKind");
        out.invalid(field, "kind and listKind may not be the same");
    }
}

fn label(name: &str, field: &FieldPath, out: &mut Collector) {
    if !name.is_empty() {
        out.reasons(field.clone(), name, &dns1035_label(name));
    }
}
