//! The largest sizes of the values of a schema, as `SchemaDeclType` of `k8s.io/apiserver/pkg/cel/common`.

use super::path::{Path, Step};
use super::size::Size;
use crate::crd::expression::unescaped;
use crate::crd::node::{Kind, Node};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The largest request, in bytes.
pub(super) const REQUEST_MAX_BYTES: u64 = 3 * 1024 * 1024;

/// The longest name of an object.
const NAME_MAX_LENGTH: u64 = 253;

/// The longest prefix of a generated name.
const PREFIX_MAX_LENGTH: u64 = 252;

/// The bytes of the longest character.
const CHARACTER_MAX_BYTES: u64 = 4;

const TIME_MAX_BYTES: u64 = 32;
const DATE_BYTES: u64 = 12;

/// The declaration of a value.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Declared<'s> {
    /// The value of a schema, and whether it is the root of a resource.
    Schema(&'s Node, bool),
    /// The accessible metadata of a resource, with the schema of its metadata.
    Metadata(Option<&'s Node>),
    /// A name in the metadata, with its schema.
    Name(Option<&'s Node>, u64),
    /// `apiVersion` or `kind`.
    Text,
    /// A key of a map.
    Key,
}

fn count(bound: i64) -> u64 {
    u64::try_from(bound).unwrap_or(0)
}

impl<'s> Declared<'s> {
    /// The declaration after a step of a path.
    fn step(self, step: Step<'_>) -> Option<Self> {
        let (schema, is_resource) = match (self, step) {
            (Self::Schema(schema, is_resource), _) if !schema.is_int_or_string => {
                (schema, is_resource)
            }
            (Self::Metadata(schema), Step::Name(name)) => {
                let property = schema.and_then(|it| it.properties.get(name));
                return match name {
                    "name" => Some(Self::Name(property, NAME_MAX_LENGTH)),
                    "generateName" => Some(Self::Name(property, PREFIX_MAX_LENGTH)),
                    _ => None,
                };
            }
            _ => return None,
        };
        let below = |it: &'s Node| Self::Schema(it, it.is_embedded);
        match (schema.kind?, schema.additional.as_deref(), step) {
            (Kind::Array, _, Step::Items | Step::Values) => schema.items.as_deref().map(below),
            (Kind::Object, Some(additional), Step::Items | Step::Values) => Some(below(additional)),
            (Kind::Object, Some(_), Step::Keys) => Some(Self::Key),
            (Kind::Object, None, Step::Name(name)) => {
                let name = unescaped(name);
                if is_resource && let Some(meta) = system_field(schema, &name) {
                    return Some(meta);
                }
                schema.properties.get(&name).map(below)
            }
            _ => None,
        }
    }
}

/// A field that every resource has, unless its schema describes all of them.
fn system_field<'s>(schema: &'s Node, name: &str) -> Option<Declared<'s>> {
    let metadata = schema.properties.get("metadata");
    match name {
        _ if schema.describes_resource() => None,
        "kind" | "apiVersion" => Some(Declared::Text),
        "metadata" => Some(Declared::Metadata(metadata)),
        _ => None,
    }
}

/// The sizes of the values of a schema. The smallest sizes are computed once for each part of the schema.
#[derive(Debug, Default)]
pub(in super::super) struct DeclaredSizes {
    minima: RefCell<BTreeMap<(*const Node, bool), Option<u64>>>,
}

impl DeclaredSizes {
    /// The size of the value at a path. `None` if the path leads to no declaration.
    pub(super) fn size_at(&self, root: Declared<'_>, path: &Path<'_>) -> Option<Size> {
        if path.is_empty() {
            return None;
        }
        let mut declared = root;
        for step in path.steps().into_iter().skip(1) {
            declared = declared.step(step)?;
            self.min_bytes(declared)?;
        }
        Some(Size::up_to(self.max_elements(declared)))
    }

    /// The largest number of objects in one request that have a value of a declaration.
    pub(in super::super) fn max_cardinality(&self, declared: Declared<'_>) -> u64 {
        let bytes = self.min_bytes(declared).unwrap_or(0).saturating_add(1);
        REQUEST_MAX_BYTES.checked_div(bytes).unwrap_or(0)
    }

    /// The largest number of characters, bytes, items or entries.
    fn max_elements(&self, declared: Declared<'_>) -> u64 {
        let text = REQUEST_MAX_BYTES.saturating_sub(2);
        let schema = match declared {
            Declared::Schema(schema, _) => schema,
            Declared::Metadata(_) | Declared::Key => return 0,
            Declared::Name(schema, max) => {
                let bound = schema.and_then(|it| it.bounds.max_length);
                let bound = bound.map_or(max, |it| max.min(count(it)));
                return bound.saturating_mul(CHARACTER_MAX_BYTES);
            }
            Declared::Text => return text,
        };
        let max_length = schema.bounds.max_length.map(count);
        let max_bytes = max_length.map(|it| it.saturating_mul(CHARACTER_MAX_BYTES));
        if schema.is_int_or_string {
            return max_bytes.unwrap_or(text);
        }
        let per_request = |schema: Option<&Node>, surplus: u64| {
            let bytes = schema.and_then(|it| self.min_bytes(Declared::Schema(it, it.is_embedded)));
            let bytes = bytes.unwrap_or(0).saturating_add(surplus);
            text.checked_div(bytes).unwrap_or(0)
        };
        match schema.kind {
            Some(Kind::Array) => match schema.bounds.max_items {
                Some(bound) => count(bound),
                None => per_request(schema.items.as_deref(), 1),
            },
            Some(Kind::Object) if schema.additional.is_some() => {
                match schema.bounds.max_properties {
                    Some(bound) => count(bound),
                    // The shortest key, its quotes, a colon and a comma.
                    None => per_request(schema.additional.as_deref(), 6),
                }
            }
            Some(Kind::String) => match schema.format.as_str() {
                "byte" => max_length.unwrap_or(text),
                "duration" | "date-time" => TIME_MAX_BYTES,
                "date" => DATE_BYTES,
                _ => max_bytes
                    .or_else(|| longest_text(&schema.enum_values))
                    .unwrap_or(text),
            },
            _ => 0,
        }
    }

    /// The fewest bytes of a value in JSON. `None` if expressions cannot access it.
    fn min_bytes(&self, declared: Declared<'_>) -> Option<u64> {
        let Declared::Schema(schema, is_resource) = declared else {
            return Some(2);
        };
        let key = (std::ptr::from_ref(schema), is_resource);
        if let Some(bytes) = self.minima.borrow().get(&key) {
            return *bytes;
        }
        let bytes = self.computed_min_bytes(schema, is_resource);
        self.minima.borrow_mut().insert(key, bytes);
        bytes
    }

    fn computed_min_bytes(&self, schema: &Node, is_resource: bool) -> Option<u64> {
        if schema.is_int_or_string {
            return Some(1);
        }
        let below = |it: &Node| self.min_bytes(Declared::Schema(it, it.is_embedded));
        match (schema.kind?, schema.additional.as_deref()) {
            (Kind::Array, _) => below(schema.items.as_deref()?).map(|_| 2),
            (Kind::Object, Some(additional)) => below(additional).map(|_| 2),
            (Kind::Object, None) => Some(self.min_object_bytes(schema, is_resource)),
            (Kind::Boolean, _) => Some(4),
            (Kind::Number | Kind::Integer, _) => Some(1),
            (Kind::String, _) => Some(match schema.format.as_str() {
                "duration" => 3,
                "date" => DATE_BYTES,
                "date-time" => 21,
                _ => 2,
            }),
        }
    }

    fn min_object_bytes(&self, schema: &Node, is_resource: bool) -> u64 {
        let mut names: Vec<&String> = schema.required.iter().collect();
        names.sort();
        names.dedup();
        let fields = names.into_iter().filter_map(|name| {
            let system = system_field(schema, name).filter(|_| is_resource);
            let declared = system.or_else(|| {
                let property = schema.properties.get(name)?;
                let has_default = property.default.is_some();
                (!has_default).then_some(Declared::Schema(property, property.is_embedded))
            })?;
            let length = u64::try_from(name.len()).unwrap_or(u64::MAX);
            // The quotes, a colon and a comma.
            Some(
                self.min_bytes(declared)?
                    .saturating_add(length)
                    .saturating_add(4),
            )
        });
        fields.fold(2, u64::saturating_add)
    }
}

/// The bytes of the longest text of an enum; `None` if it has no values.
fn longest_text(values: &[Value]) -> Option<u64> {
    let lengths = values.iter().map(|it| it.as_str().map_or(0, str::len));
    lengths.max().and_then(|it| u64::try_from(it).ok())
}
