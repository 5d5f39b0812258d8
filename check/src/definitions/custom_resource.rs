//! Checks an object with the definition of its kind.

use super::field_text::{decode_finding, field_of};
use super::request::request;
use super::set::{Definition, DefinitionSet};
use super::suggestions::unknown_fields;
use crate::severity::Severity;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::crd::{FieldValidation, Schema, StrictProblem, Verdict};
use lockkeeper_policies::finding::{ErrorKind, Finding};
use lockkeeper_policies::schema::SCHEMA_VIOLATION;
use serde_json::Value;
use std::borrow::Cow;

/// The finding without a place that the API server adds to others.
const RULES_SKIPPED: &str = "some validation rules were not checked";

/// The findings about an object; `None` if there is no definition of its kind. With the old object its change is
/// checked.
pub(crate) fn check_custom_resource(
    definitions: &DefinitionSet,
    object: &Value,
    old: Option<&Value>,
) -> Option<Vec<(Severity, Finding)>> {
    let definition = definitions.find(object)?;
    Some(match schema_of(definition, object) {
        Ok(schema) => {
            let version = definition.version_of(object);
            let structure = || version.and_then(|it| definition.structure(it));
            let old = old.map(|it| stored(schema, it));
            let mut out = Vec::new();
            answer(schema, object, old.as_ref(), &mut out);
            let unknown: Vec<&str> = out.iter().filter_map(Found::unknown).collect();
            // Suggestions need another form of the schema, which most objects do not.
            let structure = if unknown.is_empty() {
                None
            } else {
                structure()
            };
            let unknown = unknown_fields(&unknown, object, structure);
            let unknown = unknown.into_iter().map(|it| (Severity::Error, it));
            let others = out.into_iter().filter_map(Found::finding);
            unknown.chain(others).collect()
        }
        Err(finding) => vec![(Severity::Error, *finding)],
    })
}

/// The schema of the version that an object names, or why there is none.
fn schema_of<'a>(definition: &'a Definition, object: &Value) -> Result<&'a Schema, Box<Finding>> {
    let served = definition.served().join(", ");
    let wrong_version = |problem: &str| {
        let field = FieldPath::new("apiVersion");
        let reason = format!("{problem}; the definition serves {served}");
        Box::new(Finding::decode_error(
            field,
            object.get("apiVersion"),
            &reason,
        ))
    };
    match definition.version_of(object) {
        None => Err(wrong_version("there is no such version")),
        Some(version) if !version.is_served => Err(wrong_version("this version is not served")),
        Some(version) => definition.schema(version).map_err(|reason| {
            let field = FieldPath::new("kind");
            let reason = format!("the definition of this kind cannot be used: {reason}");
            Box::new(Finding::decode_error(field, object.get("kind"), &reason))
        }),
    }
}

/// The old object as the API server has stored it.
pub(super) fn stored(schema: &Schema, old: &Value) -> Value {
    let mut old = old.clone();
    if let Some(fields) = old.as_object_mut() {
        // The definition converts between its versions; the conversion `None` changes only this field.
        fields.insert("apiVersion".to_owned(), schema.api_version().into());
    }
    schema.prune(&mut old);
    schema.default(&mut old);
    old
}

/// What the API server says.
enum Found {
    /// The text of an unknown field.
    Unknown(String),
    Finding(Severity, Finding),
}

impl Found {
    fn unknown(&self) -> Option<&str> {
        match self {
            Self::Unknown(field) => Some(field),
            Self::Finding(..) => None,
        }
    }

    fn finding(self) -> Option<(Severity, Finding)> {
        match self {
            Self::Unknown(_) => None,
            Self::Finding(severity, finding) => Some((severity, finding)),
        }
    }
}

/// Asks for the answer to a strict request; without unknown fields the remaining answer is that of a request that
/// ignores them.
fn answer(schema: &Schema, object: &Value, old: Option<&Value>, out: &mut Vec<Found>) {
    let mut answer = schema.answer(&request(object, old, FieldValidation::Strict));
    if let Verdict::Undecodable { strict, .. } = &answer.verdict
        && !strict.is_empty()
    {
        out.extend(strict.iter().filter_map(|it| match it {
            StrictProblem::Unknown(field) => Some(Found::Unknown(field.clone())),
            // The values of a file have no duplicate keys.
            StrictProblem::Duplicate(_) | StrictProblem::DuplicateKey => None,
        }));
        answer = schema.answer(&request(object, old, FieldValidation::Ignore));
    }
    let warnings = answer.warnings.iter();
    out.extend(warnings.map(|it| Found::Finding(Severity::Warning, warning(it, object))));
    match answer.verdict {
        Verdict::Accepted(_) => {}
        Verdict::Undecodable { reason, .. } => {
            let finding = decode_finding(&reason, object);
            out.push(Found::Finding(Severity::Error, finding));
        }
        Verdict::Invalid(findings) => {
            let findings = findings
                .into_iter()
                .filter(|it| !it.detail.starts_with(RULES_SKIPPED));
            out.extend(findings.map(|mut finding| {
                if let Some(field) = quoted_field(&finding) {
                    finding.field = field_of(field, object);
                }
                Found::Finding(Severity::Error, finding)
            }));
        }
    }
}

/// The field in the text of a finding without a field: the API server reports logic (`anyOf`, `not`) in this way.
fn quoted_field(finding: &Finding) -> Option<&str> {
    let is_nowhere = finding.field == FieldPath::default();
    let rest = finding.detail.strip_prefix('"').filter(|_| is_nowhere)?;
    rest.split_once("\" must ").map(|it| it.0)
}

/// A warning of the API server as a finding.
fn warning(text: &str, object: &Value) -> Finding {
    let (field, detail) = match text.split_once(": ") {
        Some((field, detail)) if !field.contains(' ') => (field_of(field, object), detail),
        _ if text.contains("finalizer") => (FieldPath::new("metadata.finalizers"), text),
        _ => (FieldPath::new("apiVersion"), text),
    };
    Finding {
        rule: Cow::Borrowed(SCHEMA_VIOLATION),
        field,
        kind: ErrorKind::Invalid,
        value: None,
        detail: detail.to_owned().into(),
    }
}
