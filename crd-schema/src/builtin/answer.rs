//! Answers requests for objects of a built-in kind.

use super::decode::{DecodedStruct, decode};
use super::table::{Table, TypeId};
use super::{defaults, registry};
use crate::crd::decode::{DEPTH_MAX, decode as decode_text};
use crate::crd::names::parse_group_version;
use crate::crd::values::{is_deeper_than, normalized};
use crate::crd::{Answer, Body, FieldValidation, Request, StrictProblem, Verdict};
use serde_json::{Map, Value};

/// A kind of Kubernetes.
#[derive(Clone, Debug)]
pub struct BuiltInKind {
    group: String,
    version: String,
    kind: String,
    of: TypeId,
}

/// What an object says of its kind.
struct NamedKind {
    group: String,
    version: String,
    kind: String,
}

struct Undecodable {
    reason: String,
    strict: Vec<StrictProblem>,
}

impl From<String> for Undecodable {
    fn from(reason: String) -> Self {
        Self {
            reason,
            strict: Vec::new(),
        }
    }
}

impl BuiltInKind {
    /// The kind with this API version, such as `apps/v1`; `None` if Kubernetes 1.37 does not have it.
    #[must_use]
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        let of = Table::get().kind(api_version, kind)?;
        let (group, version) = parse_group_version(api_version)?;
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            of,
        })
    }

    /// Answers a request as the API server does. The cost is linear in the size of the object.
    #[must_use]
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let mut warnings = Vec::new();
        let verdict = match self.decode_request(request) {
            Err(error) => Verdict::Undecodable {
                reason: error.reason,
                strict: error.strict,
            },
            Ok((object, strict)) => {
                if request.field_validation == FieldValidation::Warn {
                    warnings.extend(strict.iter().map(StrictProblem::warning));
                }
                Verdict::Accepted(self.complete(object, request.old))
            }
        };
        Answer { verdict, warnings }
    }

    /// The object as the API server stores it.
    fn complete(&self, mut object: Value, old: Option<&Value>) -> Value {
        let table = Table::get();
        defaults::apply(table, self.of, &mut object);
        let type_name = table.type_name(self.of);
        registry::prepare(table, self.of, type_name, &mut object, old);
        // The stored object is decoded again, and gets the defaults that depend on what was prepared.
        defaults::apply(table, self.of, &mut object);
        object
    }

    fn decode_request(
        &self,
        request: &Request<'_>,
    ) -> Result<(Value, Vec<StrictProblem>), Undecodable> {
        let (object, duplicates, has_duplicate_keys) = read_body(request.body)?;
        let Value::Object(fields) = &object else {
            return Err("the text is not an object".to_owned().into());
        };
        let named = self.named_kind(fields)?;
        let api_version = named.api_version();
        let table = Table::get();
        let Some(of) = table.kind(&api_version, &named.kind) else {
            return Err(format!("no kind {:?} in version {api_version:?}", named.kind).into());
        };
        let decoded = decode(table, of, &object)?;
        let mut strict = strict_problems(&decoded, duplicates);
        if has_duplicate_keys {
            strict.push(StrictProblem::DuplicateKey);
        }
        if request.field_validation == FieldValidation::Strict && !strict.is_empty() {
            return Err(Undecodable {
                reason: "strict decoding error".to_owned(),
                strict,
            });
        }
        if of != self.of || api_version != self.api_version() {
            let reason = format!(
                "the object has the kind {} in {api_version}, not {} in {}",
                named.kind,
                self.kind,
                self.api_version()
            );
            return Err(reason.into());
        }
        let mut object = decoded.object;
        if let Value::Object(fields) = &mut object {
            fields.insert("apiVersion".to_owned(), self.api_version().into());
            fields.insert("kind".to_owned(), self.kind.as_str().into());
        }
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        if request.old.is_some() && name.unwrap_or_default().is_empty() {
            return Err("an update needs the name of the object".to_owned().into());
        }
        Ok((object, strict))
    }

    /// The kind that an object names; what it leaves out is that of the request.
    ///
    /// Source: `k8s.io/apimachinery` v0.37, `gvkWithDefaults`.
    fn named_kind(&self, fields: &Map<String, Value>) -> Result<NamedKind, Undecodable> {
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(Undecodable::from(format!("{name}: expected a string"))),
        };
        let mut kind = text("kind")?;
        let api_version = text("apiVersion")?;
        let Some((group, version)) = parse_group_version(&api_version) else {
            return Err(format!("unexpected GroupVersion string: {api_version}").into());
        };
        let (mut group, mut version) = (group.to_owned(), version.to_owned());
        if kind.is_empty() {
            kind.clone_from(&self.kind);
        }
        if version.is_empty() && group.is_empty() {
            group.clone_from(&self.group);
        }
        if version.is_empty() && group == self.group {
            version.clone_from(&self.version);
        }
        Ok(NamedKind {
            group,
            version,
            kind,
        })
    }

    fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl NamedKind {
    fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// The value of a body, with the paths of duplicate fields.
fn read_body(body: Body<'_>) -> Result<(Value, Vec<String>, bool), String> {
    match body {
        Body::Object(object) if is_deeper_than(object, DEPTH_MAX) => {
            Err("exceeded max depth".to_owned())
        }
        Body::Object(object) => Ok((normalized(object), Vec::new(), false)),
        Body::Text(text, content_type) => {
            let decoded = decode_text(text, content_type)?;
            Ok((
                decoded.value,
                decoded.duplicates,
                decoded.has_duplicate_keys,
            ))
        }
    }
}

/// Unknown and duplicate fields. What is below an unknown field, or in a value that is stored as it is, is not read.
fn strict_problems(decoded: &DecodedStruct, duplicates: Vec<String>) -> Vec<StrictProblem> {
    let is_below = |path: &str, parent: &str| {
        path.strip_prefix(parent)
            .is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let is_read = |path: &str| {
        let mut skipped = decoded.raw.iter().chain(&decoded.unknown);
        !skipped.any(|it| is_below(path, it))
    };
    let duplicates = duplicates.into_iter().filter(|it| is_read(it));
    let unknown = decoded.unknown.iter().cloned();
    duplicates
        .map(StrictProblem::Duplicate)
        .chain(unknown.map(StrictProblem::Unknown))
        .collect()
}
