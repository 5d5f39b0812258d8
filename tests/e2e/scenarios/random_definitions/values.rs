//! Random values for a schema, most of them valid.

use lockkeeper_testkit::Rng;
use serde_json::{Map, Value, json};

use super::texts;

/// The deepest value of fields without a schema.
const FREE_DEPTH_MAX: usize = 2;

/// A value for a schema.
pub fn value(schema: &Value, rng: &mut Rng) -> Value {
    if schema["nullable"] == true && rng.one_in(6) {
        return Value::Null;
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.is_empty()
        && !rng.one_in(15)
    {
        return rng.pick(choices).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if rng.one_in(2) {
            texts::integer(rng).into()
        } else {
            text(schema, rng).into()
        };
    }
    match schema["type"].as_str() {
        Some("string") => text(schema, rng).into(),
        Some("integer") => integer(schema, rng).into(),
        Some("number") => number(schema, rng),
        Some("boolean") => rng.one_in(2).into(),
        Some("array") => list(schema, rng),
        Some("object") => object(schema, rng),
        _ => free(rng, 0),
    }
}

/// A value without a schema.
pub fn free(rng: &mut Rng, depth: usize) -> Value {
    match rng.below(if depth < FREE_DEPTH_MAX { 8 } else { 6 }) {
        0 => Value::Null,
        1 => rng.one_in(2).into(),
        2 => texts::integer(rng).into(),
        3 => texts::number(rng).into(),
        4 | 5 => texts::text(rng).into(),
        6 => (0..rng.below(3)).map(|_| free(rng, depth + 1)).collect(),
        _ => json!({"a": free(rng, depth + 1), "b": free(rng, depth + 1)}),
    }
}

fn text(schema: &Value, rng: &mut Rng) -> String {
    let length = |key: &str| schema[key].as_u64().and_then(|it| usize::try_from(it).ok());
    let (least, most) = (
        length("minLength").unwrap_or(0),
        length("maxLength").unwrap_or(80),
    );
    let mut text = "";
    for _ in 0..6 {
        text = texts::text_like(schema["format"].as_str(), schema["pattern"].as_str(), rng);
        if (least..=most).contains(&text.chars().count()) {
            break;
        }
    }
    let is_free = schema["format"].is_null() && schema["pattern"].is_null();
    if is_free && rng.one_in(20) {
        // At the limit, or a character above it.
        return "x".repeat(most.min(300) + rng.below(2_usize));
    }
    text.to_owned()
}

fn integer(schema: &Value, rng: &mut Rng) -> i64 {
    bounded(schema, rng).unwrap_or_else(|| texts::integer(rng))
}

fn number(schema: &Value, rng: &mut Rng) -> Value {
    match bounded(schema, rng) {
        Some(it) if rng.one_in(2) => it.into(),
        _ if rng.one_in(3) => texts::integer(rng).into(),
        _ => texts::number(rng).into(),
    }
}

/// An integer near the bounds of a schema.
fn bounded(schema: &Value, rng: &mut Rng) -> Option<i64> {
    let bound = |key: &str| schema[key].as_i64();
    if rng.one_in(10) {
        return None;
    }
    let (least, most) = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => (least, most.max(least)),
        (Some(least), None) => (least, least.saturating_add(5)),
        (None, Some(most)) => (most.saturating_sub(5), most),
        (None, None) => return None,
    };
    Some(rng.range(least, most.min(least.saturating_add(50))))
}

fn list(schema: &Value, rng: &mut Rng) -> Value {
    let bound = |key: &str| schema[key].as_u64().and_then(|it| usize::try_from(it).ok());
    let least = bound("minItems").unwrap_or(0);
    let most = bound("maxItems").unwrap_or(4).clamp(least, least + 4);
    let count = least + rng.below(most - least + 1) + usize::from(rng.one_in(30));
    let mut items: Vec<Value> = (0..count).map(|_| value(&schema["items"], rng)).collect();
    if schema["x-kubernetes-list-type"] == "set" && !rng.one_in(20) {
        let mut seen: Vec<Value> = Vec::new();
        items.retain(|it| {
            !seen.contains(it) && {
                seen.push(it.clone());
                true
            }
        });
    }
    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array()
        && !rng.one_in(20)
    {
        let mut seen: Vec<Vec<Value>> = Vec::new();
        items.retain(|item| {
            let key: Vec<Value> = keys
                .iter()
                .map(|it| item[it.as_str().unwrap_or_default()].clone())
                .collect();
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        });
    }
    items.into()
}

fn object(schema: &Value, rng: &mut Rng) -> Value {
    let mut fields = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "Pod".into());
        if rng.one_in(2) {
            fields.insert(
                "metadata".to_owned(),
                json!({"name": "a", "labels": {"a": "b"}}),
            );
        }
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|it| it == name);
        if rng.percent(if is_required { 98 } else { 70 }) {
            fields.insert(name.clone(), value(field, rng));
        }
    }
    let additional = &schema["additionalProperties"];
    if additional.is_object() || additional == true {
        let most = schema["maxProperties"].as_u64().unwrap_or(3).min(3);
        for _ in 0..=rng.below(most) {
            let key = *rng.pick(&["a", "b", "foo", "x-y", "a.b/c", "K", "10"]);
            fields.insert(key.to_owned(), value(additional, rng));
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true && rng.one_in(2) {
        fields.insert("extra".to_owned(), free(rng, 0));
    }
    fields.into()
}
