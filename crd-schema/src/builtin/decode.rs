//! Decodes objects as `sigs.k8s.io/json` decodes Go types: nulls are skipped, required fields are not checked.

use super::problem::Problem;
use super::scalars::{self, mismatch};
use super::table::{Omission, Table, Type};
use crate::crd::pruning::join;
use serde_json::{Map, Value};

/// The least similarity of a suggested field.
const SIMILARITY_MIN: f64 = 0.8;

/// Decodes an object. In the result nulls and zero values of fields that are no pointers are absent, and structs that
/// are no pointers are present, like in Go.
pub(super) struct Decoder {
    table: &'static Table,
    pub(super) problems: Vec<Problem>,
    /// Fields of any JSON, of which the decoder does not see the fields.
    pub(super) opaque: Vec<String>,
}

impl Decoder {
    /// A decoder of the types of a table.
    pub(super) fn new(table: &'static Table) -> Self {
        Self {
            table,
            problems: Vec::new(),
            opaque: Vec::new(),
        }
    }

    /// Decodes a value that is not null. Wrong values become zero values.
    pub(super) fn value(&mut self, kind: &Type, value: &Value, path: &str) -> Value {
        match (kind, value) {
            (Type::Pointer(target), value) => self.value(target, value, path),
            (Type::Struct(name), Value::Object(fields)) => {
                Value::Object(self.fields(name, fields, path))
            }
            (Type::List(item), Value::Array(items)) => {
                let items = items.iter().enumerate();
                let items = items.map(|(position, value)| {
                    self.item(item, value, || format!("{path}[{position}]"))
                });
                Value::Array(items.collect())
            }
            (Type::Map(item), Value::Object(entries)) => {
                let entries = entries.iter().map(|(key, value)| {
                    let value = self.item(item, value, || join(path, key));
                    (key.clone(), value)
                });
                Value::Object(entries.collect())
            }
            (Type::Struct(_) | Type::List(_) | Type::Map(_), other) => {
                let reason = mismatch(other, scalars::name(kind));
                self.wrong_type(path, reason);
                self.zero(kind)
            }
            (kind, value) => {
                if *kind == Type::Any {
                    self.opaque.push(path.to_owned());
                }
                scalars::decode(kind, value).unwrap_or_else(|reason| {
                    self.wrong_type(path, reason);
                    scalars::zero(kind)
                })
            }
        }
    }

    fn item(&mut self, kind: &Type, value: &Value, path: impl Fn() -> String) -> Value {
        if value.is_null() {
            self.zero(kind)
        } else {
            self.value(kind, value, &path())
        }
    }

    fn fields(
        &mut self,
        definition: &'static str,
        object: &Map<String, Value>,
        path: &str,
    ) -> Map<String, Value> {
        let known = self.table.definition(definition);
        let mut out = Map::new();
        for (name, value) in object {
            let field_path = join(path, name);
            let Some(field) = known.get(name.as_str()) else {
                self.problems.push(Problem::Unknown {
                    field: field_path,
                    suggestion: nearest(name, known.keys().copied()),
                    later: self.table.later_releases(definition, name),
                });
                continue;
            };
            if value.is_null() {
                continue;
            }
            let decoded = self.value(&field.kind, value, &field_path);
            if field.is_pointer || !is_zero(&field.kind, &decoded) {
                out.insert(name.clone(), decoded);
            }
        }
        for (name, zero) in self.structs(definition) {
            out.entry(name).or_insert(zero);
        }
        out
    }

    /// The structs of a type that are no pointers.
    fn structs(&self, definition: &str) -> Vec<(&'static str, Value)> {
        let fields = self.table.definition(definition).iter();
        let structs = fields.filter(|(_, it)| !it.is_pointer && it.omits != Omission::Zero);
        let structs = structs.filter(|(_, it)| matches!(it.kind, Type::Struct(_)));
        structs
            .map(|(name, it)| (*name, self.zero(&it.kind)))
            .collect()
    }

    /// The zero value of a type.
    pub(super) fn zero(&self, kind: &Type) -> Value {
        let Type::Struct(name) = kind else {
            return scalars::zero(kind);
        };
        let fields = self.structs(name).into_iter();
        Value::Object(fields.map(|(name, it)| (name.to_owned(), it)).collect())
    }

    fn wrong_type(&mut self, path: &str, reason: String) {
        self.problems.push(Problem::WrongType {
            field: path.to_owned(),
            reason,
        });
    }
}

/// Whether a decoded value cannot be told from an absent one.
fn is_zero(kind: &Type, value: &Value) -> bool {
    match kind {
        Type::Text | Type::Bytes | Type::Bool | Type::Int32 | Type::Int64 => {
            *value == scalars::zero(kind)
        }
        Type::Float => value.as_f64() == Some(0.0),
        _ => value.is_null(),
    }
}

/// The most similar name.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let scored = known.map(|it| (strsim::jaro_winkler(&lower, &it.to_lowercase()), it));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= SIMILARITY_MIN).then_some(best.1)
}
