//! A JSON Schema of a kind.

use super::field_text::{field_of_pointer, named};
use super::suggestions::unknown_field;
use crate::nearest::nearest;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::schema::SCHEMA_VIOLATION;
use serde_json::Value;
use std::borrow::Cow;

/// The most findings about one object.
const FINDINGS_MAX: usize = 1_000;

/// The least similarity of a suggested field.
const SIMILARITY_MIN: f64 = 0.8;

/// A compiled JSON Schema.
pub(super) struct JsonSchema {
    text: Value,
    validator: Validator,
}

impl JsonSchema {
    /// Compiles a schema. References to other files are errors, and so are patterns with look-around: matching takes time
    /// linear in the text.
    ///
    /// # Errors
    ///
    /// The reason if the text is no JSON Schema.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut options = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex());
        if text.get("$schema").is_none() {
            // As in kubeconform.
            options = options.with_draft(Draft::Draft4);
        }
        let validator = options.build(&text).map_err(|error| error.to_string())?;
        Ok(Self { text, validator })
    }

    /// The findings about an object, at most [`FINDINGS_MAX`].
    pub(super) fn findings(&self, object: &Value) -> Vec<Finding> {
        let errors = self.validator.iter_errors(object);
        let findings = errors.flat_map(|it| self.findings_of(&it, object));
        findings.take(FINDINGS_MAX).collect()
    }

    fn findings_of(&self, error: &ValidationError<'_>, object: &Value) -> Vec<Finding> {
        let field = field_of_pointer(error.instance_path().as_str(), object);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.known_fields(error.schema_path().as_str());
                let finding = |name: &String| {
                    let suggestion = nearest(name, known.iter().copied(), SIMILARITY_MIN);
                    unknown_field(named(field.clone(), name), object, suggestion)
                };
                unexpected.iter().map(finding).collect()
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                vec![violation(
                    named(field, name),
                    ErrorKind::Required,
                    None,
                    String::new(),
                )]
            }
            kind => {
                let error_kind = match kind {
                    ValidationErrorKind::Type { .. } => ErrorKind::TypeInvalid,
                    ValidationErrorKind::Enum { .. } => ErrorKind::NotSupported,
                    ValidationErrorKind::MaxLength { .. } => ErrorKind::TooLong,
                    ValidationErrorKind::MaxItems { .. } => ErrorKind::TooMany,
                    _ => ErrorKind::Invalid,
                };
                let value = error.instance();
                let is_scalar = !value.is_object() && !value.is_array();
                let shown = is_scalar.then(|| lockkeeper_crd_schema::display_value(value));
                let detail = error.masked_with("the value").to_string();
                vec![violation(field, error_kind, shown, detail)]
            }
        }
    }

    /// The names of the properties beside a keyword of the schema.
    fn known_fields(&self, keyword: &str) -> Vec<&str> {
        let schema = keyword.rsplit_once('/').map_or("", |it| it.0);
        let properties = self.text.pointer(&format!("{schema}/properties"));
        let properties = properties.and_then(Value::as_object).into_iter().flatten();
        properties.map(|(name, _)| name.as_str()).collect()
    }
}

fn violation(field: FieldPath, kind: ErrorKind, value: Option<String>, detail: String) -> Finding {
    Finding {
        rule: Cow::Borrowed(SCHEMA_VIOLATION),
        field,
        kind,
        value,
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FINDINGS_MAX, JsonSchema};
    use serde_json::{Value, json};

    #[test]
    fn findings_are_limited_and_recursive_schemas_end() {
        let items: Vec<Value> = (0..2 * FINDINGS_MAX).map(Value::from).collect();
        let schema = JsonSchema::parse(r#"{"items": {"type": "string"}}"#).unwrap();
        assert_eq!(schema.findings(&json!(items)).len(), FINDINGS_MAX);
        let recursive = r##"{"items": {"$ref": "#"}, "not": {"type": "string"}}"##;
        let schema = JsonSchema::parse(recursive).unwrap();
        let nested = (0..100).fold(json!("a"), |it, _| json!([it]));
        assert_eq!(schema.findings(&nested).len(), 1);
        for circular in [r##"{"$ref": "#"}"##, r##"{"allOf": [{"$ref": "#"}]}"##] {
            if let Ok(schema) = JsonSchema::parse(circular) {
                assert_eq!(schema.findings(&nested).len(), 0, "{circular}");
            }
        }
    }
}
