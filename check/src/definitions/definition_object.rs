//! Checks a `CustomResourceDefinition` as an object.

use super::field_text::decode_finding;
use super::suggestions::unknown_fields;
use crate::severity::Severity;
use lockkeeper_api::field_path::{FieldPath, unescaped};
use lockkeeper_crd_schema::crd::{
    Body, FieldValidation, Request, StrictProblem, Verdict, answer_definition,
};
use lockkeeper_policies::finding::Finding;
use serde_json::{Value, json};

/// The keywords of schemas of which the fields have names that users choose.
const MAPS: [&str; 4] = [
    "definitions",
    "dependencies",
    "patternProperties",
    "properties",
];

/// Whether an object is a `CustomResourceDefinition` (`apiextensions.k8s.io/v1`).
#[must_use]
pub fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
        && object["apiVersion"] == "apiextensions.k8s.io/v1"
}

/// Whether a definition has nothing that every definition needs: it is a patch for kustomize, not an object.
pub(crate) fn is_patch(definition: &Value) -> bool {
    let spec = definition.get("spec");
    let has = |key: &str| spec.is_some_and(|it| it.get(key).is_some());
    !["group", "names", "scope", "versions"].into_iter().any(has)
}

/// The findings about a definition, or about its change.
pub(crate) fn check_definition(
    definition: &Value,
    old: Option<&Value>,
) -> Vec<(Severity, Finding)> {
    let old = old.map(established);
    let request = |field_validation| Request {
        body: Body::Object(definition),
        old: old.as_ref(),
        is_status: false,
        field_validation,
        namespace: "",
    };
    let mut out = Vec::new();
    let mut answer = answer_definition(&request(FieldValidation::Strict));
    if let Verdict::Undecodable { strict, .. } = &answer.verdict
        && !strict.is_empty()
    {
        let unknown = strict.iter().filter_map(|it| match it {
            StrictProblem::Unknown(field) => Some(field.as_str()),
            StrictProblem::Duplicate(_) | StrictProblem::DuplicateKey => None,
        });
        let unknown: Vec<&str> = unknown.collect();
        out.extend(unknown_fields(&unknown, definition, None));
        answer = answer_definition(&request(FieldValidation::Ignore));
    }
    match answer.verdict {
        Verdict::Accepted(_) => {}
        Verdict::Undecodable { reason, .. } => {
            out.push(decode_finding(&reason, definition));
        }
        Verdict::Invalid(findings) => out.extend(findings),
    }
    for finding in &mut out {
        finding.field = field_in_file(&finding.field);
    }
    out.into_iter().map(|it| (Severity::Error, it)).collect()
}

/// The old definition as the API server has stored it: in use, with objects in its storage version.
fn established(old: &Value) -> Value {
    let mut old = old.clone();
    let versions = old.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions
        .into_iter()
        .flatten()
        .filter(|it| it["storage"] == true);
    let stored: Vec<Value> = stored.map(|it| it["name"].clone()).collect();
    if let Some(fields) = old.as_object_mut() {
        fields.entry("status").or_insert_with(|| {
            json!({
                "conditions": [{"type": "Established", "status": "True"}],
                "storedVersions": stored,
            })
        });
    }
    old
}

/// The field of the file for a field in a message of the API server. The server reports what is equal in all versions
/// once, outside of the versions.
fn field_in_file(field: &FieldPath) -> FieldPath {
    let pointer = field.pointer();
    let mut steps = pointer.split('/').skip(1).peekable();
    let is_spec = steps.next_if_eq(&"spec").is_some();
    let first_version = || FieldPath::new("spec.versions").index(0);
    let shared = match steps.peek() {
        Some(&"validation") => first_version().field("schema"),
        Some(&"version") => first_version().field("name"),
        Some(&"additionalPrinterColumns") => first_version().field("additionalPrinterColumns"),
        Some(&"selectableFields") => first_version().field("selectableFields"),
        Some(&"subresources") => first_version().field("subresources"),
        _ => return field.clone(),
    };
    if !is_spec {
        return field.clone();
    }
    let mut path = shared;
    let mut is_map = false;
    for step in steps.skip(1) {
        let name = unescaped(step);
        path = if is_map {
            path.key(&name)
        } else if let Ok(position) = name.parse() {
            path.index(position)
        } else {
            path.named(&name)
        };
        is_map = !is_map && MAPS.contains(&name.as_str());
    }
    path
}

#[cfg(test)]
mod tests {
    use super::field_in_file;
    use lockkeeper_api::field_path::FieldPath;

    #[test]
    fn shared_fields_are_those_of_the_first_version() {
        let schema = FieldPath::new("spec.validation.openAPIV3Schema");
        let property = schema
            .field("properties")
            .key("properties")
            .field("properties");
        let rule = property.key("1").field("x-kubernetes-validations").index(2);
        for (field, expected) in [
            (
                rule.field("rule"),
                "spec.versions[0].schema.openAPIV3Schema.properties[properties].properties[1].x-kubernetes-validations[2].rule",
            ),
            (FieldPath::new("spec.version"), "spec.versions[0].name"),
            (
                FieldPath::new("spec.selectableFields")
                    .index(1)
                    .field("jsonPath"),
                "spec.versions[0].selectableFields[1].jsonPath",
            ),
            (FieldPath::new("spec.names.kind"), "spec.names.kind"),
            (FieldPath::new("validation"), "validation"),
        ] {
            assert_eq!(field_in_file(&field).to_string(), expected);
        }
    }
}
