//! Finds the stored version of each part of an updated object, for ratcheting and for transition rules.
//!
//! The semantics are those of `CorrelatedObject` in `k8s.io/apiserver/pkg/cel/common`.

use super::node::{Kind, ListType, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A part of an object with its stored version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlated<'a> {
    /// The stored version; `None` if it was not set.
    pub(super) old: Option<&'a Value>,
    pub(super) new: &'a Value,
    schema: &'a Node,
    /// Whether this is the root that is validated.
    pub(super) is_root: bool,
}

impl<'a> Correlated<'a> {
    /// The root of an object.
    pub(super) fn root(schema: &'a Node, new: &'a Value, old: Option<&'a Value>) -> Self {
        Self {
            old,
            new,
            schema,
            is_root: true,
        }
    }

    /// The same part as the root of its own validation.
    pub(super) fn as_root(self) -> Self {
        Self {
            is_root: true,
            ..self
        }
    }

    /// A field, if it is set in both versions and has a schema.
    pub(super) fn key(self, name: &str) -> Option<Self> {
        let old = self.old?.as_object()?.get(name)?;
        let new = self.new.as_object()?.get(name)?;
        let schema = self.schema.field(name)?;
        Some(Self {
            old: Some(old),
            new,
            schema,
            is_root: false,
        })
    }

    /// A list item, if the list has map keys and the stored list has an item with the same key.
    pub(super) fn index(self, position: usize) -> Option<Self> {
        let items = self.schema.items.as_deref()?;
        let new = self.new.as_array()?.get(position)?;
        let old = find_item(self.schema, self.old, new)?;
        Some(Self {
            old: Some(old),
            new,
            schema: items,
            is_root: false,
        })
    }

    /// Whether both versions are equal. A part with fields that have no schema is not.
    pub(super) fn is_unchanged(self) -> bool {
        let old = self.old.filter(|it| !it.is_null());
        match (old, self.new) {
            (None, Value::Null) => true,
            (None, _) | (_, Value::Null) => false,
            (Some(Value::Array(old)), Value::Array(new)) => {
                if old.len() != new.len() {
                    return false;
                }
                let is_map = matches!(&self.schema.list, ListType::Map(_));
                if !is_map || self.schema.items.is_none() {
                    return new.is_empty() || old == new;
                }
                let stored = MapList::new(self.schema, old);
                let items = self.schema.items.as_deref();
                let pairs = new.iter().map(|item| (stored.get(item), item));
                pairs.into_iter().all(|(old, new)| match (old, items) {
                    (Some(old), Some(schema)) => Self {
                        old: Some(old),
                        new,
                        schema,
                        is_root: false,
                    }
                    .is_unchanged(),
                    _ => false,
                })
            }
            (Some(Value::Object(old)), Value::Object(new)) => {
                old.len() == new.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(Self::is_unchanged))
            }
            (Some(old), new) => old == new,
        }
    }
}

/// The stored item with the key of `item`, in a list with map keys.
pub(super) fn find_item<'a>(
    list: &Node,
    old: Option<&'a Value>,
    item: &Value,
) -> Option<&'a Value> {
    let ListType::Map(keys) = &list.list else {
        return None;
    };
    if list.kind != Some(Kind::Array) || keys.is_empty() {
        return None;
    }
    let key = item_key(keys, item.as_object()?)?;
    let old = old?.as_array()?.iter();
    let mut old = old.filter(|it| {
        let key_of_old = it.as_object().and_then(|it| item_key(keys, it));
        key_of_old.as_ref() == Some(&key)
    });
    old.next()
}

/// The items of a stored list by their keys.
struct MapList<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> MapList<'a> {
    fn new(list: &'a Node, items: &'a [Value]) -> Self {
        let keys: &[String] = match &list.list {
            ListType::Map(keys) => keys,
            _ => &[],
        };
        let mut by_key = BTreeMap::new();
        for item in items {
            if let Some(key) = item.as_object().and_then(|it| item_key(keys, it)) {
                by_key.entry(key).or_insert(item);
            }
        }
        Self {
            keys,
            items: by_key,
        }
    }

    fn get(&self, item: &Value) -> Option<&'a Value> {
        let key = item_key(self.keys, item.as_object()?)?;
        self.items.get(&key).copied()
    }
}

/// The key of an item, if all key fields are set to scalars.
fn item_key(keys: &[String], item: &Map<String, Value>) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        let value = item.get(key)?;
        if value.is_null() || value.is_array() || value.is_object() {
            return None;
        }
        // Writing to a string does not fail.
        let _ = write!(out, "{value}\0");
    }
    Some(out)
}
