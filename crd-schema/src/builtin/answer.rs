//! Answers requests that create or update objects of built-in kinds.

use super::decode::Decoder;
use super::encode::encode;
use super::envelope;
use super::kind::BuiltInKind;
use super::problem::Problem;
use super::table::Type;
use super::{defaults, strategy, validation};
use crate::crd::decode::DEPTH_MAX;
use crate::crd::values::{is_deeper_than, metadata_of, normalized};
use crate::crd::{Answer, FieldValidation, Request, StrictProblem, Verdict};
use serde_json::Value;

impl BuiltInKind {
    /// The unknown fields and wrong types of an object.
    #[must_use]
    pub fn problems(&self, object: &Value) -> Vec<Problem> {
        if is_deeper_than(object, DEPTH_MAX) {
            return vec![Problem::WrongType {
                field: String::new(),
                reason: "exceeded max depth".to_owned(),
            }];
        }
        let mut decoder = Decoder::new(self.table);
        if !object.is_null() {
            decoder.value(&self.root(), &normalized(object), "");
        }
        decoder.problems
    }

    /// Answers a request as the API server does. The cost is linear in the size of the object.
    #[must_use]
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let mut warnings = Vec::new();
        let verdict = match self.decode(request) {
            Err(reason) => Verdict::Undecodable {
                reason,
                strict: Vec::new(),
            },
            Ok((_, strict))
                if !strict.is_empty() && request.field_validation == FieldValidation::Strict =>
            {
                Verdict::Undecodable {
                    reason: "strict decoding error".to_owned(),
                    strict,
                }
            }
            Ok((object, strict)) => {
                if request.field_validation == FieldValidation::Warn {
                    warnings.extend(strict.iter().map(StrictProblem::warning));
                }
                self.admit(object, request)
            }
        };
        Answer { verdict, warnings }
    }

    /// The object that a request would create, valid or not: with defaults, and with what the API server sets. `None` if
    /// the body cannot be decoded. The cost is linear in the size of the object.
    #[must_use]
    pub fn created(&self, request: &Request<'_>) -> Option<Value> {
        let (mut object, _) = self.decode(request).ok()?;
        self.set_type(&mut object);
        self.prepare(&mut object, None, request.namespace);
        Some(self.stored(object))
    }

    /// Sets `apiVersion` and `kind`, which a decoded object does not have.
    fn set_type(&self, object: &mut Value) {
        if let Value::Object(fields) = object {
            fields.insert("kind".to_owned(), self.name().into());
            fields.insert("apiVersion".to_owned(), self.api_version().into());
        }
    }

    fn root(&self) -> Type {
        Type::Struct(self.definition)
    }

    /// The decoded object, and what a strict decoder reports.
    fn decode(&self, request: &Request<'_>) -> Result<(Value, Vec<StrictProblem>), String> {
        let body = envelope::read(*self, &request.body)?;
        let mut strict = body.strict;
        let mut decoder = Decoder::new(self.table);
        let object = decoder.value(&self.root(), &Value::Object(body.fields), "");
        let mut hidden = decoder.opaque;
        for problem in decoder.problems {
            match problem {
                Problem::WrongType { field, reason } => return Err(format!("{field}: {reason}")),
                Problem::Unknown { field, .. } => {
                    hidden.push(field.clone());
                    strict.push(StrictProblem::Unknown(field));
                }
            }
        }
        // The decoder sees no duplicates inside of fields that it skips.
        let is_hidden = |field: &str| {
            let mut hidden = hidden
                .iter()
                .filter_map(|it| field.strip_prefix(it.as_str()));
            hidden.any(|rest| rest.starts_with(['.', '[']))
        };
        let duplicates = body.duplicates.into_iter().filter(|it| !is_hidden(it));
        strict.extend(duplicates.map(StrictProblem::Duplicate));
        Ok((object, strict))
    }

    /// Defaults and validates a decoded object.
    fn admit(&self, mut object: Value, request: &Request<'_>) -> Verdict {
        self.set_type(&mut object);
        let old = request.old.map(|old| {
            let mut old = Decoder::new(self.table).value(&self.root(), &normalized(old), "");
            self.set_namespace(&mut old, request.namespace);
            old
        });
        if let Some(old) = &old {
            let name = |it| metadata_of(it).get("name").cloned().unwrap_or_default();
            if name(&object) != name(old) {
                return Verdict::Undecodable {
                    reason: "the name of the object does not match the name on the URL".to_owned(),
                    strict: Vec::new(),
                };
            }
        }
        self.prepare(&mut object, old.as_ref(), request.namespace);
        let findings = validation::validate(self.group(), self.name(), &object, old.as_ref());
        if findings.is_empty() {
            Verdict::Accepted(self.stored(object))
        } else {
            Verdict::Invalid(findings)
        }
    }

    /// Sets defaults, and what the API server sets before it validates.
    fn prepare(&self, object: &mut Value, old: Option<&Value>, namespace: &str) {
        defaults::set_defaults(*self, object);
        match old {
            None => self.prepare_new(object, namespace),
            Some(old) => self.prepare_change(object, old, namespace),
        }
        strategy::prepare(*self, object, old);
    }

    /// The stored form of a prepared object.
    fn stored(&self, mut object: Value) -> Value {
        // The API server decodes the stored object again, with defaults.
        defaults::set_defaults(*self, &mut object);
        let mut stored = encode(self.table, &self.root(), &object);
        strategy::complete(*self, &mut stored);
        stored
    }
}
