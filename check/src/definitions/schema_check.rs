//! Checks an object with the JSON Schema of its kind.

use super::schema_catalog::SchemaCatalog;
use crate::severity::Severity;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use serde_json::Value;

/// The findings about an object by the schema of its kind; `None` if the catalogue has none.
pub(crate) fn check_json_schema(
    catalog: &SchemaCatalog,
    object: &Value,
) -> Option<Vec<(Severity, Finding)>> {
    let findings = catalog.with_schema(object, |schema| match schema {
        Ok(schema) => schema.findings(object),
        Err(reason) => {
            let reason = format!("the schema of this kind cannot be used: {reason}");
            let field = FieldPath::new("kind");
            vec![Finding::decode_error(field, object.get("kind"), &reason)]
        }
    })?;
    Some(
        findings
            .into_iter()
            .map(|it| (Severity::Error, it))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::{SchemaCatalog, check_json_schema};
    use lockkeeper_crd_schema::builtin::Release;
    use serde_json::{Value, json};

    /// In the form of the converter of kubeconform's users, `openapi2jsonschema.py`.
    const WIDGET: &str = r#"{
        "description": "A widget", "type": "object", "additionalProperties": false,
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": {
                "type": "object", "additionalProperties": false, "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "maximum": 9, "format": "int32"},
                    "colour": {"type": "string", "enum": ["red", "blue"]},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "parts": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "port": {"oneOf": [{"type": "integer"}, {"type": "string"}]}
                }
            }
        }
    }"#;

    /// A catalogue with one schema.
    fn catalog(schema: &'static str) -> SchemaCatalog {
        let location = "{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json";
        let read = move |path: &str| {
            let is_there = path == "example.com/widget_v1.json";
            Ok(is_there.then(|| schema.to_owned()))
        };
        SchemaCatalog::new(
            Release::NEWEST,
            vec![location.parse().unwrap()],
            Box::new(read),
        )
    }

    fn widget(spec: &Value) -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
    }

    fn findings(schema: &'static str, object: &Value) -> Option<Vec<String>> {
        let findings = check_json_schema(&catalog(schema), object)?.into_iter();
        Some(findings.map(|(_, it)| it.to_string()).collect())
    }

    #[test]
    fn violations_name_field_and_reason() {
        for (spec, expected) in [
            (json!({"size": 1, "colour": "red", "port": "http"}), ""),
            (json!({}), "spec.size: Required value [SC002]"),
            (
                json!({"size": 1, "color": "red"}),
                "spec.color: Invalid value: \"red\": unknown field, which would be dropped; did you mean colour? [SC005]",
            ),
            (
                json!({"size": "big"}),
                "spec.size: Invalid value: \"big\": the value is not of type \"integer\" [SC002]",
            ),
            (
                json!({"size": 12}),
                "spec.size: Invalid value: 12: the value is greater than the maximum of 9 [SC002]",
            ),
            (
                json!({"size": 1, "colour": "green"}),
                "spec.colour: Unsupported value: \"green\": the value is not one of \"red\" or \"blue\" [SC002]",
            ),
            (
                json!({"size": 1, "name": "A"}),
                "spec.name: Invalid value: \"A\": the value does not match \"^[a-z]+$\" [SC002]",
            ),
            (
                json!({"size": 1, "parts": [1]}),
                "spec.parts[0]: Invalid value: 1: the value is not of type \"string\" [SC002]",
            ),
            (
                json!({"size": 1, "labels": {"a.b/c": 1}}),
                "spec.labels[a.b/c]: Invalid value: 1: the value is not of type \"string\" [SC002]",
            ),
            (
                json!({"size": 1, "port": true}),
                "spec.port: Invalid value: true: the value is not valid under any of the schemas listed in the 'oneOf' keyword [SC002]",
            ),
        ] {
            let found = findings(WIDGET, &widget(&spec)).unwrap().join("\n");
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn schemas_that_cannot_be_used_are_errors() {
        for (schema, expected) in [
            ("{", "EOF while parsing"),
            ("{\"type\": 1}", "1 is not valid"),
            ("{\"$ref\": \"_definitions.json#/a\"}", "_definitions.json"),
            (
                "{\"$ref\": \"https://example.com/a.json\"}",
                "https://example.com/a.json",
            ),
            ("{\"pattern\": \"(?=a)\"}", "(?=a)"),
        ] {
            let found = findings(schema, &widget(&json!({}))).unwrap();
            let [found] = &*found else {
                panic!("{schema}: {found:?}");
            };
            let start = "kind: Invalid value: \"Widget\": the schema of this kind cannot be used: example.com/widget_v1.json: ";
            assert!(found.starts_with(start), "{found}");
            assert!(found.contains(expected), "{found}");
            assert!(found.ends_with("[SC001]"), "{found}");
        }
    }

    #[test]
    fn kinds_without_a_schema_and_built_in_kinds_are_not_checked() {
        for (api_version, kind) in [
            ("example.com/v2", "Widget"),
            ("v1", "Pod"),
            ("example.com/v1", "Gadget"),
        ] {
            let object = json!({"apiVersion": api_version, "kind": kind});
            assert_eq!(findings(WIDGET, &object), None, "{api_version} {kind}");
        }
    }
}
