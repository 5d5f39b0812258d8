//! `allOf`, `anyOf`, `oneOf` and `not`: value validations without structure.

use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

use super::texts;
use super::values;

/// Adds one of the keywords, unless the schema has it.
pub fn add(schema: &mut Value, rng: &mut Rng) {
    let key = *rng.pick(&["allOf", "anyOf", "oneOf", "not"]);
    if !schema[key].is_null() {
        return;
    }
    let original = schema.clone();
    schema[key] = if key == "not" {
        branch(&original, rng, 0)
    } else {
        let count = rng.below(3) + 1;
        (0..count).map(|_| branch(&original, rng, 0)).collect()
    };
}

/// Value validations that fit the structure of a schema.
fn branch(schema: &Value, rng: &mut Rng, depth: usize) -> Value {
    if depth < 2 && rng.one_in(8) {
        let key = *rng.pick(&["allOf", "anyOf", "oneOf"]);
        let items: Vec<Value> = (0..2).map(|_| branch(schema, rng, depth + 1)).collect();
        return json!({key: items});
    }
    if depth < 2 && rng.one_in(10) {
        return json!({"not": branch(schema, rng, depth + 1)});
    }
    match schema["type"].as_str() {
        Some("string") => match rng.below(4) {
            0 => json!({"minLength": rng.range(1, 4)}),
            1 => json!({"pattern": texts::pattern(rng)}),
            2 => json!({"format": texts::format(rng)}),
            _ => json!({"enum": [values::value(schema, rng), values::value(schema, rng)]}),
        },
        Some("integer" | "number") => match rng.below(3) {
            0 => json!({"minimum": rng.range(0, 5)}),
            1 => json!({"maximum": rng.range(0, 8), "exclusiveMaximum": true}),
            _ => json!({"multipleOf": rng.range(1, 3)}),
        },
        Some("array") => match rng.below(3) {
            0 => json!({"minItems": 1}),
            1 => json!({"maxItems": 2}),
            _ => json!({"items": branch(&schema["items"], rng, depth + 1)}),
        },
        Some("object") => object_branch(schema, rng, depth),
        _ if schema["x-kubernetes-int-or-string"] == true => match rng.below(3) {
            0 => json!({"minimum": 1}),
            1 => json!({"minLength": 2}),
            _ => json!({"pattern": texts::pattern(rng)}),
        },
        _ => json!({"enum": [values::value(schema, rng), values::value(schema, rng)]}),
    }
}

fn object_branch(schema: &Value, rng: &mut Rng, depth: usize) -> Value {
    let properties = schema["properties"].as_object();
    let names: Vec<&String> = properties
        .into_iter()
        .flat_map(|it| it.keys())
        .filter(|it| depth > 0 || *it != "metadata")
        .collect();
    if names.is_empty() {
        return json!({"minProperties": rng.range(0, 2)});
    }
    let name = *rng.pick(&names);
    match rng.below(4) {
        0 => json!({"maxProperties": rng.range(1, 4)}),
        1 => json!({"required": [name]}),
        _ => {
            let below = branch(&schema["properties"][name], rng, depth + 1);
            let mut out = json!({"properties": {name: below}});
            if rng.one_in(2) {
                out["required"] = json!([name]);
            }
            out
        }
    }
}
