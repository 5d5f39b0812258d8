//! Decodes, defaults and validates whole requests, in the order of the API server.

use super::decode::{ContentType, DEPTH_MAX, decode};
use super::definition::Schema;
use super::meta_validation;
use super::object_meta;
use super::values::{is_deeper_than, metadata_of, normalized};
use super::{defaulting, embedded, names, pruning, storage};
use crate::finding::Finding;
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The namespace of objects that have none.
const DEFAULT_NAMESPACE: &str = "default";

/// How unknown and duplicate fields are treated: the parameter `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are rejected.
    Strict,
    /// They are dropped with a warning.
    Warn,
    /// They are dropped.
    Ignore,
}

/// A problem that a strict decoder reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrictProblem {
    /// The schema does not specify the field.
    Unknown(String),
    /// The field is set more than once.
    Duplicate(String),
    /// A YAML mapping has a key more than once.
    DuplicateKey,
}

impl StrictProblem {
    /// The warning, in the words of the API server.
    #[must_use]
    pub fn warning(&self) -> String {
        match self {
            Self::Unknown(field) => format!("unknown field \"{field}\""),
            Self::Duplicate(field) => format!("duplicate field \"{field}\""),
            Self::DuplicateKey => "yaml: unmarshal errors: key already set in map".to_owned(),
        }
    }
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// The decision.
    pub verdict: Verdict,
    /// Warnings, in the words of the API server.
    pub warnings: Vec<String>,
}

/// The decision on a request.
#[derive(Debug)]
pub enum Verdict {
    /// The object as it is stored: pruned and defaulted.
    Accepted(Value),
    /// The object cannot be decoded: a reason, or what a strict decoder reports.
    Undecodable {
        /// The reason.
        reason: String,
        /// Unknown and duplicate fields.
        strict: Vec<StrictProblem>,
    },
    /// The object is not valid: at least one finding.
    Invalid(Vec<Finding>),
}

/// A request that creates or updates an object.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The body.
    pub body: Body<'a>,
    /// The stored object for an update, in the version of the schema.
    pub old: Option<&'a Value>,
    /// Whether the request is for the subresource `status`.
    pub is_status: bool,
    /// The treatment of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// The namespace of the request, for namespaced kinds.
    pub namespace: &'a str,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// A text.
    Text(&'a str, ContentType),
    /// A decoded object.
    Object(&'a Value),
}

/// An object that is not decodable.
struct DecodeError {
    reason: String,
    strict: Vec<StrictProblem>,
}

impl From<String> for DecodeError {
    fn from(reason: String) -> Self {
        Self {
            reason,
            strict: Vec::new(),
        }
    }
}

/// A decoded object with what a strict decoder reports.
struct DecodedObject {
    object: Value,
    strict: Vec<StrictProblem>,
    /// Whether the object has the group and kind of the schema.
    is_own_kind: bool,
}

impl Schema {
    /// Removes the fields that the schema does not specify and nulls that it does not allow. Returns the paths of the
    /// removed fields, sorted.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = if self.preserves_unknown_fields {
            Vec::new()
        } else {
            pruning::prune(object, Some(&self.root))
        };
        pruning::remove_nulls(object, Some(&self.root));
        unknown
    }

    /// Sets the defaults of the schema. Idempotent.
    pub fn default(&self, object: &mut Value) {
        defaulting::apply(object, &self.root);
    }

    /// Validates a new object that is pruned and defaulted. A namespaced object without a namespace is validated as in
    /// the namespace `default`.
    #[must_use]
    pub fn validate(&self, object: &Value) -> Vec<Finding> {
        let mut object = normalized(object);
        self.prepare_new(&mut object, DEFAULT_NAMESPACE);
        self.validate_new(&object)
    }

    /// Validates an update of a stored object. Both are pruned and defaulted. Returns findings, and findings that are
    /// only warnings because the update does not change their part.
    #[must_use]
    pub fn validate_update(&self, object: &Value, old: &Value) -> (Vec<Finding>, Vec<String>) {
        let old = self.stored(old, DEFAULT_NAMESPACE);
        let mut object = normalized(object);
        self.prepare_change(&mut object, &old, DEFAULT_NAMESPACE, false);
        let mut warnings = Vec::new();
        let findings = self.validate_change(&object, &old, false, &mut warnings);
        (findings, warnings)
    }

    /// Answers a request as the API server does. The cost is bounded: linear in the sizes of object and schema, and
    /// limited for CEL rules.
    #[must_use]
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let mut warnings = Vec::new();
        let verdict = match self.decode_request(request) {
            Err(error) => Verdict::Undecodable {
                reason: error.reason,
                strict: error.strict,
            },
            Ok(decoded)
                if !decoded.strict.is_empty()
                    && request.field_validation == FieldValidation::Strict =>
            {
                Verdict::Undecodable {
                    reason: "strict decoding error".to_owned(),
                    strict: decoded.strict,
                }
            }
            Ok(decoded) => {
                if request.field_validation == FieldValidation::Warn {
                    warnings.extend(decoded.strict.iter().map(StrictProblem::warning));
                }
                self.admit(request, decoded, &mut warnings)
            }
        };
        // Warnings of the version come first.
        let mut all: Vec<String> = self.deprecation.iter().cloned().collect();
        all.extend(warnings);
        without_repetitions(&mut all);
        Answer {
            verdict,
            warnings: all,
        }
    }

    fn decode_request(&self, request: &Request<'_>) -> Result<DecodedObject, DecodeError> {
        let (mut object, mut strict) = match request.body {
            Body::Object(object) if is_deeper_than(object, DEPTH_MAX) => {
                return Err("exceeded max depth".to_owned().into());
            }
            Body::Object(object) => (normalized(object), Vec::new()),
            Body::Text(text, content_type) => {
                let decoded = decode(text, content_type)?;
                let mut strict: Vec<StrictProblem> = decoded
                    .duplicates
                    .into_iter()
                    .map(StrictProblem::Duplicate)
                    .collect();
                if decoded.has_duplicate_keys {
                    strict.push(StrictProblem::DuplicateKey);
                }
                (decoded.value, strict)
            }
        };
        if object.is_null() {
            return Err("Object 'Kind' is missing".to_owned().into());
        }
        let Value::Object(fields) = &object else {
            return Err("the text is not an object".to_owned().into());
        };
        let kind = type_text(fields, "kind")?;
        let api_version = type_text(fields, "apiVersion")?;
        let Some((group, version)) = names::parse_group_version(&api_version) else {
            return Err(format!("unexpected GroupVersion string: {api_version}").into());
        };
        if kind.is_empty() {
            return Err("Object 'Kind' is missing".to_owned().into());
        }
        let metadata = object_meta::decode(fields.get("metadata").unwrap_or(&Value::Null))?;
        let has_metadata = fields.contains_key("metadata");
        let unknown = metadata.unknown.iter().map(|it| format!("metadata.{it}"));
        let mut unknown: Vec<String> = unknown.collect();
        let is_own_kind = group == self.group && kind == self.kind;
        let is_own_version = version == self.version;
        if is_own_kind {
            let schema = is_own_version.then_some(&self.root);
            if !self.preserves_unknown_fields {
                unknown.extend(pruning::prune(&mut object, schema));
                pruning::remove_nulls(&mut object, schema);
            }
            embedded::coerce(&mut object, schema, &FieldPath::default(), &mut unknown)?;
        }
        if let Value::Object(fields) = &mut object
            && has_metadata
        {
            fields.insert("metadata".to_owned(), Value::Object(metadata.fields));
        }
        strict.extend(unknown.into_iter().map(StrictProblem::Unknown));
        if group != self.group || !is_own_version {
            let reason = format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                self.api_version()
            );
            let is_strict = request.field_validation == FieldValidation::Strict;
            return Err(DecodeError {
                reason,
                strict: if is_strict { strict } else { Vec::new() },
            });
        }
        Ok(DecodedObject {
            object,
            strict,
            is_own_kind,
        })
    }

    /// Defaults and validates a decoded object.
    fn admit(
        &self,
        request: &Request<'_>,
        decoded: DecodedObject,
        warnings: &mut Vec<String>,
    ) -> Verdict {
        let mut object = decoded.object;
        if decoded.is_own_kind {
            defaulting::apply(&mut object, &self.root);
        }
        let findings = match request.old {
            None => {
                self.prepare_new(&mut object, request.namespace);
                let findings = self.validate_new(&object);
                if findings.is_empty() {
                    warnings.extend(meta_validation::finalizer_warnings(
                        metadata_of(&object),
                        &Map::new(),
                    ));
                }
                findings
            }
            Some(old) => {
                let old = &self.stored(old, request.namespace);
                self.prepare_change(&mut object, old, request.namespace, request.is_status);
                let findings = self.validate_change(&object, old, request.is_status, warnings);
                if findings.is_empty() && !request.is_status {
                    warnings.extend(meta_validation::finalizer_warnings(
                        metadata_of(&object),
                        metadata_of(old),
                    ));
                }
                findings
            }
        };
        if findings.is_empty() {
            Verdict::Accepted(storage::round_trip(self, &object))
        } else {
            Verdict::Invalid(findings)
        }
    }
}

/// Removes repeated warnings: the API server sends each text once.
fn without_repetitions(warnings: &mut Vec<String>) {
    let mut sent = BTreeSet::new();
    warnings.retain(|it| sent.insert(it.clone()));
}

/// The text of `kind` or `apiVersion`; empty if it is missing or null.
fn type_text(fields: &Map<String, Value>, name: &str) -> Result<String, DecodeError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{name} must be a string").into()),
    }
}

#[cfg(test)]
mod tests;
