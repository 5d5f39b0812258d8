//! JSON values as CEL values, and their sizes.

use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;
use std::sync::Arc;

/// The bytes of a string that count as one more value.
const CHARACTERS_PER_UNIT: usize = 16;

/// Converts a JSON value. Keys are unchanged: expressions read a field that is no CEL identifier in brackets, or
/// escaped.
pub(super) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => Cel::Int(signed),
            (None, Some(unsigned)) => Cel::UInt(unsigned),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, it)| (Key::String(Arc::new(name.clone())), to_cel(it)));
            let map = Arc::new(fields.collect());
            Cel::Map(Map { map })
        }
    }
}

/// The size of a JSON value: one for each value in it, and more for long strings.
pub(super) fn weight(value: &Value) -> u64 {
    let below: u64 = match value {
        Value::String(string) => text(string),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, it)| text(name).saturating_add(weight(it)))
                .sum()
        }
        _ => 0,
    };
    below.saturating_add(1)
}

/// The size of a CEL value.
pub(super) fn cel_weight(value: &Cel) -> u64 {
    let below: u64 = match value {
        Cel::String(string) => text(string),
        Cel::Bytes(bytes) => units(bytes.len()),
        Cel::List(items) => items.iter().map(cel_weight).sum(),
        Cel::Map(map) => {
            let entries = map.map.iter();
            let entry = |(key, it): (&Key, &Cel)| key_weight(key).saturating_add(cel_weight(it));
            entries.map(entry).sum()
        }
        _ => 0,
    };
    below.saturating_add(1)
}

/// The cost of comparing all parts of a value with each other: items, or bytes, which are cheaper.
pub(super) fn squared_weight(value: &Cel) -> u64 {
    let (length, per_unit) = match value {
        Cel::String(string) => (string.len(), CHARACTERS_PER_UNIT),
        Cel::Bytes(bytes) => (bytes.len(), CHARACTERS_PER_UNIT),
        other => (usize::try_from(cel_weight(other)).unwrap_or(usize::MAX), 1),
    };
    let comparisons = length.saturating_mul(length).wrapping_div(per_unit);
    u64::try_from(comparisons)
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

fn key_weight(key: &Key) -> u64 {
    match key {
        Key::String(string) => text(string),
        _ => 0,
    }
}

fn text(text: &str) -> u64 {
    units(text.len())
}

fn units(length: usize) -> u64 {
    u64::try_from(length.wrapping_div(CHARACTERS_PER_UNIT)).unwrap_or(u64::MAX)
}

/// The sorted keys of a map; any other value unchanged. Makes the order of loops over maps deterministic.
pub(super) fn sorted(value: Cel) -> Cel {
    let Cel::Map(map) = value else {
        return value;
    };
    let mut keys: Vec<Key> = map.map.keys().cloned().collect();
    // The order of a hash map differs between runs, and so would the first failing item.
    keys.sort();
    let keys = keys.into_iter().map(|key| match key {
        Key::Int(signed) => Cel::Int(signed),
        Key::Uint(unsigned) => Cel::UInt(unsigned),
        Key::Bool(flag) => Cel::Bool(flag),
        Key::String(string) => Cel::String(string),
    });
    Cel::List(Arc::new(keys.collect()))
}
