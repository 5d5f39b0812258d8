//! Answers requests that create or update a `CustomResourceDefinition`.

use super::collector::{Collector, object, text};
use super::{conversion, encoding, fields, metadata, names, spec};
use crate::crd::decode::decode;
use crate::crd::object_meta;
use crate::crd::request::{Answer, Body, FieldValidation, Request, StrictProblem, Verdict};
use crate::crd::values::{array_at, flag_at, is_deeper_than, normalized};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value, json};

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";

/// The deepest definition that is decoded.
const DEPTH_MAX: usize = 256;

/// Answers a request that creates or updates a definition as the API server does.
#[must_use]
pub fn answer_definition(request: &Request<'_>) -> Answer {
    let mut warnings = Vec::new();
    let verdict = match decode_request(request) {
        Err(reason) => undecodable(reason, Vec::new()),
        Ok((_, strict))
            if !strict.is_empty() && request.field_validation == FieldValidation::Strict =>
        {
            undecodable("strict decoding error".to_owned(), strict)
        }
        Ok((definition, strict)) => {
            if request.field_validation == FieldValidation::Warn {
                warnings.extend(strict.iter().map(StrictProblem::warning));
            }
            let verdict = admit(definition, request);
            if let Verdict::Accepted(definition) = &verdict
                && let Some(spec) = definition.get("spec")
            {
                let mut all = super::warnings::warnings(spec);
                if let Some(old) = request.old.and_then(|it| it.get("spec")) {
                    let stored = super::warnings::warnings(old);
                    all.retain(|it| !stored.contains(it));
                }
                warnings.extend(all);
            }
            verdict
        }
    };
    Answer { verdict, warnings }
}

fn undecodable(reason: String, strict: Vec<StrictProblem>) -> Verdict {
    Verdict::Undecodable { reason, strict }
}

fn decode_request(
    request: &Request<'_>,
) -> Result<(Map<String, Value>, Vec<StrictProblem>), String> {
    let mut strict = Vec::new();
    let value = match request.body {
        Body::Object(object) if is_deeper_than(object, DEPTH_MAX) => {
            return Err("exceeded max depth".to_owned());
        }
        Body::Object(object) => normalized(object),
        Body::Text(text, content_type) => {
            let decoded = decode(text, content_type)?;
            strict.extend(decoded.duplicates.into_iter().map(StrictProblem::Duplicate));
            if decoded.has_duplicate_keys {
                strict.push(StrictProblem::DuplicateKey);
            }
            decoded.value
        }
    };
    let Value::Object(mut definition) = value else {
        return Err("the text is not an object".to_owned());
    };
    for (key, expected) in [("kind", KIND), ("apiVersion", API_VERSION)] {
        let actual = match definition.get(key) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text,
            Some(_) => return Err(format!("{key} must be a string")),
        };
        // The request names the type of an object without one.
        if !actual.is_empty() && actual != expected {
            return Err(format!("{key} is {actual}, not {expected}"));
        }
    }
    definition.insert("kind".to_owned(), KIND.into());
    definition.insert("apiVersion".to_owned(), API_VERSION.into());
    let metadata = object_meta::decode(definition.get("metadata").unwrap_or(&Value::Null))?;
    let unknown = fields::decode(&mut definition)?;
    let unknown_metadata = metadata.unknown.iter().map(|it| format!("metadata.{it}"));
    strict.extend(unknown_metadata.chain(unknown).map(StrictProblem::Unknown));
    definition.insert("metadata".to_owned(), Value::Object(metadata.fields));
    Ok((definition, strict))
}

fn admit(mut definition: Map<String, Value>, request: &Request<'_>) -> Verdict {
    set_defaults(&mut definition);
    let old = request.old.map(normalized);
    let stored_status = old.as_ref().and_then(|it| it.get("status")).cloned();
    let mut status = stored_status.unwrap_or_else(|| json!({}));
    let mut definition = Value::Object(definition);
    let spec_value = definition.get("spec").cloned().unwrap_or_default();
    let mut stored = array_at(&status, "storedVersions").to_vec();
    let storage_version = spec::storage_versions(&spec_value).into_iter().next();
    stored.extend(storage_version.filter(|it| !stored.contains(it)));
    if let Value::Object(status) = &mut status {
        status.insert("storedVersions".to_owned(), stored.into());
        status.entry("conditions").or_insert(Value::Null);
        status
            .entry("acceptedNames")
            .or_insert_with(|| json!({"kind": "", "plural": ""}));
    }
    if let Value::Object(definition) = &mut definition {
        definition.insert("status".to_owned(), status);
    }
    let mut out = Collector::default();
    let base = FieldPath::new("metadata");
    match &old {
        None => metadata::new_metadata(&mut definition, &base, &mut out),
        Some(old) => metadata::changed_metadata(&mut definition, old, &base, &mut out),
    }
    let old_spec = old.as_ref().and_then(|it| it.get("spec"));
    spec::validate(&spec_value, old_spec, &FieldPath::new("spec"), &mut out);
    if let Some(old) = &old {
        update(&spec_value, old, &mut out);
    }
    let status = definition.get("status").unwrap_or(&Value::Null);
    let status_path = FieldPath::new("status");
    let accepted = object(status, "acceptedNames").unwrap_or(&Value::Null);
    names::validate(
        accepted,
        &status_path.clone().field("acceptedNames"),
        &mut out,
    );
    stored_versions(
        status,
        &spec_value,
        &status_path.field("storedVersions"),
        &mut out,
    );
    metadata::approval(&definition, &spec_value, old.as_ref(), &mut out);
    if flag_at(&spec_value, "preserveUnknownFields")
        && !old_spec.is_some_and(|it| flag_at(it, "preserveUnknownFields"))
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        out.invalid(FieldPath::new("spec.preserveUnknownFields"), detail);
    }
    if out.findings.is_empty() {
        encoding::omit_empty(&mut definition);
        Verdict::Accepted(definition)
    } else {
        Verdict::Invalid(out.findings)
    }
}

/// Sets the defaults of a definition.
fn set_defaults(definition: &mut Map<String, Value>) {
    let spec = definition.entry("spec").or_insert_with(|| json!({}));
    let Value::Object(spec) = spec else {
        return;
    };
    let names = spec.entry("names").or_insert_with(|| json!({}));
    let kind = text(names, "kind").to_owned();
    if let Value::Object(names) = names {
        let is_empty =
            |it: Option<&Value>| it.and_then(Value::as_str).unwrap_or_default().is_empty();
        if is_empty(names.get("singular")) {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if is_empty(names.get("listKind")) && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    let service = spec.get_mut("conversion").and_then(|it| {
        it.get_mut("webhook")?
            .get_mut("clientConfig")?
            .get_mut("service")
    });
    if let Some(Value::Object(service)) = service {
        service.entry("port").or_insert_with(|| 443.into());
    }
    for version in spec
        .get_mut("versions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Value::Object(version) = version {
            version.entry("served").or_insert(Value::Bool(false));
            version.entry("storage").or_insert(Value::Bool(false));
        }
    }
    spec.entry("conversion")
        .or_insert_with(|| json!({"strategy": "None"}));
}

/// Fields that an update must not change, and the bundle, which depends on the stored one.
fn update(spec: &Value, old: &Value, out: &mut Collector) {
    let old_spec = object(old, "spec").unwrap_or(&Value::Null);
    let name = |spec: &Value, key: &str| {
        object(spec, "names")
            .map_or("", |it| text(it, key))
            .to_owned()
    };
    let conditions = object(old, "status").map_or(&[][..], |it| array_at(it, "conditions"));
    let is_established = conditions
        .iter()
        .any(|it| text(it, "type") == "Established" && text(it, "status") == "True");
    if is_established
        && conversion::requires_valid_bundle(old_spec)
        && let Some(settings) = object(spec, "conversion")
    {
        conversion::validate_bundle(settings, &FieldPath::new("spec.conversion"), out);
    }
    let mut check = |path: &'static str, is_changed: bool| {
        if is_changed {
            out.invalid(FieldPath::new(path), "field is immutable");
        }
    };
    if is_established {
        check("spec.scope", text(spec, "scope") != text(old_spec, "scope"));
        check(
            "spec.names.kind",
            name(spec, "kind") != name(old_spec, "kind"),
        );
    }
    check("spec.group", text(spec, "group") != text(old_spec, "group"));
    check(
        "spec.names.plural",
        name(spec, "plural") != name(old_spec, "plural"),
    );
}

fn stored_versions(status: &Value, spec: &Value, path: &FieldPath, out: &mut Collector) {
    let stored = array_at(status, "storedVersions");
    if stored.is_empty() {
        out.invalid(path.clone(), "must have at least one stored version");
        return;
    }
    let versions = array_at(spec, "versions");
    for name in spec::storage_versions(spec) {
        if !stored.contains(&name) {
            out.invalid(
                path.clone(),
                format!("must have the storage version {name}"),
            );
        }
    }
    for (position, name) in stored.iter().enumerate() {
        if !versions.iter().any(|it| it.get("name") == Some(name)) {
            out.invalid(path.clone().index(position), "missing from spec.versions");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, FieldValidation, Request, Verdict, answer_definition};
    use serde_json::{Value, json};

    /// The fields and reasons of the findings about a definition with a schema.
    fn findings(schema: &Value) -> Vec<String> {
        let definition = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": schema}}},
                }],
            },
        });
        let answer = answer_definition(&Request {
            body: Body::Object(&definition),
            old: None,
            is_status: false,
            field_validation: FieldValidation::Strict,
            namespace: "",
        });
        match answer.verdict {
            Verdict::Accepted(_) => Vec::new(),
            Verdict::Undecodable { reason, .. } => vec![reason],
            Verdict::Invalid(findings) => {
                let prefix = "spec.validation.openAPIV3Schema.properties[x]";
                let text = |it: &crate::finding::Finding| {
                    format!("{} {}", it.field, it.kind.reason()).replace(prefix, "x")
                };
                findings.iter().map(text).collect()
            }
        }
    }

    /// As `WarningsOnUpdate` of `k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition`.
    #[test]
    fn update_of_definition_warns_only_about_new_formats() {
        let definition = |formats: [&str; 2]| {
            let properties = formats.map(|it| json!({"type": "string", "format": it}));
            json!({
                "metadata": {"name": "things.example.com", "resourceVersion": "1"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"kind": "Thing", "plural": "things"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {
                            "type": "object", "properties": {"x": properties[0], "y": properties[1]},
                        }},
                    }],
                },
            })
        };
        let (old, new) = (definition(["a", "date"]), definition(["a", "b"]));
        let answer = answer_definition(&Request {
            body: Body::Object(&new),
            old: Some(&old),
            is_status: false,
            field_validation: FieldValidation::Strict,
            namespace: "",
        });
        assert_eq!(answer.warnings, ["unrecognized format \"b\""]);
    }

    /// The expected findings are those of `ValidateCustomResourceDefinition` of `k8s.io/apiextensions-apiserver` 0.37.1.
    #[test]
    fn findings_are_those_of_the_api_server() {
        let rule = json!([{"rule": "true"}]);
        for (schema, expected) in [
            (
                json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": rule}),
                &["x.x-kubernetes-validations InternalError"][..],
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": rule}),
                &[],
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false, "properties": {"y": {}}}),
                &["x.x-kubernetes-preserve-unknown-fields FieldValueInvalid"],
            ),
            (
                json!({"type": "object", "properties": {
                    "y": {"type": "text"},
                    "z": {"type": "integer", "x-kubernetes-validations": [{"rule": "size(self) > 1"}]},
                }}),
                &[
                    "x.properties[y].type FieldValueNotSupported",
                    "x.properties[z].x-kubernetes-validations[0].rule FieldValueInvalid",
                ],
            ),
            (
                json!({"type": "string", "default": "a", "x-kubernetes-validations": [{"rule": ""}]}),
                &["x.x-kubernetes-validations[0].rule FieldValueRequired"],
            ),
            (
                json!({"type": "array", "items": {"type": "string", "maxLength": 1}, "default": ["ab"]}),
                &["x.default.[0] FieldValueTooLong"],
            ),
            (
                json!({
                    "type": "array", "default": ["a"],
                    "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'b'"}]},
                    "maxItems": 9,
                }),
                &["x.default[0] FieldValueInvalid"],
            ),
        ] {
            assert_eq!(findings(&schema), expected, "{schema}");
        }
    }

    /// As `Compile` of `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`, and as the planner and the checker of cel-go.
    #[test]
    fn findings_of_rules_are_those_of_the_api_server() {
        for (schema, expected) in [
            (
                json!({"type": "string", "x-kubernetes-validations": [{"rule": "int('a') == 1 || self == ''"}]}),
                &["x.x-kubernetes-validations[0].rule FieldValueInvalid"][..],
            ),
            (
                json!({"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self.find('[') == ''"}]}),
                &["x.x-kubernetes-validations[0].rule FieldValueInvalid"],
            ),
            (
                json!({"type": "string", "maxLength": 5, "x-kubernetes-validations": [
                    {"rule": "sets.contains(['a'], [].sort())"},
                    {"rule": "string([].max()) == self"},
                    {"rule": r"bytes(self) != b'\n\''"},
                ]}),
                &["x.x-kubernetes-validations[0].rule FieldValueInvalid"],
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 2, "items": {"type": "string"}}}, "x-kubernetes-validations": [
                    {"rule": "self != null"},
                    {"rule": "self.a != null"},
                ]}),
                &["x.x-kubernetes-validations[1].rule FieldValueInvalid"],
            ),
            // The rule is evaluated for the default first.
            (
                json!({"type": "string", "default": "a", "x-kubernetes-validations": [{"rule": "2 != false", "reason": "FieldValueForbidden"}]}),
                &["x.default FieldValueInvalid"],
            ),
            (
                json!({
                    "type": "object", "default": {"a": "b"}, "properties": {"a": {"type": "string"}},
                    "x-kubernetes-validations": [{"rule": "false", "fieldPath": "['a'"}],
                }),
                &[
                    "x.default FieldValueInvalid",
                    "x.x-kubernetes-validations[0].fieldPath FieldValueInvalid",
                ],
            ),
        ] {
            assert_eq!(findings(&schema), expected, "{schema}");
        }
    }
}
