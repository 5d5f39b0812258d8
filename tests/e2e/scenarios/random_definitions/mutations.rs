//! Random changes of an object: other values, wrong types, nulls, unknown fields and duplicates.

use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

use super::texts;
use super::values;

/// Changes an object with this schema in one to three places.
pub fn mutate(object: &mut Value, schema: &Value, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        mutate_once(object, schema, rng, 0);
    }
}

/// Changes the value or a value in it. The root stays an object.
fn mutate_once(value: &mut Value, schema: &Value, rng: &mut Rng, depth: usize) {
    let is_here = depth > 0 && rng.one_in(4);
    match value {
        Value::Object(fields) if !is_here && !fields.is_empty() => {
            let names: Vec<String> = fields
                .keys()
                .filter(|it| depth > 0 || !matches!(it.as_str(), "apiVersion" | "kind"))
                .cloned()
                .collect();
            if rng.one_in(5) || names.is_empty() {
                change_fields(value, schema, rng, depth);
                return;
            }
            let name = rng.pick(&names);
            if name == "metadata" && depth == 0 {
                change_metadata(&mut fields[name], rng);
                return;
            }
            let below = match &schema["properties"][name] {
                Value::Null => &schema["additionalProperties"],
                field => field,
            };
            mutate_once(&mut fields[name], below, rng, depth + 1);
        }
        Value::Array(items) if !is_here && !items.is_empty() => {
            if rng.one_in(3) {
                change_items(items, schema, rng);
                return;
            }
            let at = rng.below(items.len());
            mutate_once(&mut items[at], &schema["items"], rng, depth + 1);
        }
        _ => *value = other_value(value, schema, rng),
    }
}

fn change_metadata(metadata: &mut Value, rng: &mut Rng) {
    match rng.below(4) {
        0 => metadata["labels"] = json!({"a": texts::text(rng)}),
        1 => metadata["annotations"] = json!({"example.com/a": texts::text(rng)}),
        2 => metadata["unknown"] = 1.into(),
        _ => metadata["finalizers"] = json!([*rng.pick(&["example.com/a", "b", "c d"])]),
    }
}

/// Adds or removes a field.
fn change_fields(object: &mut Value, schema: &Value, rng: &mut Rng, depth: usize) {
    let Value::Object(fields) = object else {
        return;
    };
    let own: Vec<&String> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys())
        // The name is that of the URL.
        .filter(|it| depth > 0 || *it != "metadata")
        .collect();
    match rng.below(4) {
        0 => {
            fields.insert("unknown".to_owned(), values::free(rng, 1));
        }
        1 | 2 if !own.is_empty() => {
            let name = *rng.pick(&own);
            let new = values::value(&schema["properties"][name], rng);
            fields.insert(name.clone(), new);
        }
        _ => {
            let names: Vec<String> = fields
                .keys()
                .filter(|it| {
                    depth > 0 || !matches!(it.as_str(), "apiVersion" | "kind" | "metadata")
                })
                .cloned()
                .collect();
            if !names.is_empty() {
                fields.remove(rng.pick(&names));
            }
        }
    }
}

/// Adds, repeats, removes or reorders items.
fn change_items(items: &mut Vec<Value>, schema: &Value, rng: &mut Rng) {
    let at = rng.below(items.len());
    match rng.below(5) {
        0 => {
            let item = items[at].clone();
            items.push(item);
        }
        1 => items.insert(at, values::value(&schema["items"], rng)),
        2 => {
            items.remove(at);
        }
        3 => items.reverse(),
        _ => rng.shuffle(items),
    }
}

fn other_value(value: &Value, schema: &Value, rng: &mut Rng) -> Value {
    match rng.below(10) {
        0..5 => values::value(schema, rng),
        5 => Value::Null,
        6 => values::free(rng, 0),
        7 if value.is_number() => texts::integer(rng).into(),
        7 => "x".repeat(rng.below(300)).into(),
        8 if value.is_object() => json!({}),
        8 if value.is_array() => json!([]),
        8 => texts::number(rng).into(),
        _ => texts::text(rng).into(),
    }
}
