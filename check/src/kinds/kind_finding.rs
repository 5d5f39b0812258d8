//! Findings about documents without a kind, or of a kind that cannot exist.

use super::catalog::{Catalog, Lookup};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;

/// A finding about a document that is no object, or whose kind cannot exist. `None` if the kind may exist.
pub fn kind_finding<'a>(
    object: &Value,
    catalog: &Catalog,
    newest_version: impl FnOnce(&str) -> Option<&'a str>,
) -> Option<Finding> {
    if !object.is_object() {
        let reason = "every document must be an object with apiVersion and kind";
        return Some(Finding::decode_error(
            FieldPath::default(),
            Some(object),
            reason,
        ));
    }
    let Some(kind) = object.get("kind").and_then(Value::as_str) else {
        let reason = "missing; every object has apiVersion and kind";
        return Some(Finding::decode_error(
            FieldPath::new("kind"),
            object.get("kind"),
            reason,
        ));
    };
    let Some(api_version) = object.get("apiVersion").and_then(Value::as_str) else {
        // Files of other tools have kinds as well: only a known one is a finding.
        let version = newest_version(kind)?;
        let reason = format!("missing; set it, for example to {version}");
        return Some(Finding::decode_error(
            FieldPath::new("apiVersion"),
            None,
            &reason,
        ));
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (field, value, reason) = match catalog.find(group, version, kind) {
        Lookup::Possible => return None,
        Lookup::UnknownKind(remedy) => ("kind", kind, remedy),
        Lookup::UnknownVersion(near) => {
            let near = if group.is_empty() {
                near
            } else {
                format!("{group}/{near}")
            };
            (
                "apiVersion",
                api_version,
                format!("there is no such version; did you mean {near}?"),
            )
        }
        Lookup::MisspeltGroup(near) => {
            let reason = format!(
                "there is no such group with the kind {kind}; did you mean {near}/{version}?"
            );
            ("apiVersion", api_version, reason)
        }
    };
    let value = Value::from(value);
    Some(Finding::decode_error(
        FieldPath::new(field),
        Some(&value),
        &reason,
    ))
}

#[cfg(test)]
mod tests {
    use super::{Catalog, kind_finding};
    use lockkeeper_crd_schema::builtin::Release;
    use serde_json::json;

    #[test]
    fn documents_without_a_type_are_findings() {
        let catalog = Catalog::new(Release::NEWEST, [("v1", "Widget"); 0]);
        let newest = |kind: &str| (kind == "ClusterQueue").then_some("lockkeeper.dev/v1alpha1");
        for (object, expected) in [
            (
                json!([]),
                "every document must be an object with apiVersion and kind",
            ),
            (
                json!({"apiVersion": "v1"}),
                "missing; every object has apiVersion and kind",
            ),
            (
                json!({"kind": "ClusterQueue"}),
                "missing; set it, for example to lockkeeper.dev/v1alpha1",
            ),
        ] {
            let found = kind_finding(&object, &catalog, newest).unwrap();
            assert_eq!(found.detail, expected, "{object}");
        }
        let known = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
        for other in [known, json!({"kind": "Widget"})] {
            assert!(kind_finding(&other, &catalog, newest).is_none(), "{other}");
        }
    }
}
