//! Objects near what rules allow: the examples of their pages, changed a little, with values at a limit, below and above.

use lockkeeper_policies::rule_page::blocks;
use lockkeeper_testkit::Rng;
use serde_json::{Map, Value, json};

/// The examples of a page, as objects of a kind.
pub fn examples(page: &str, version: &str, kind: &str) -> Vec<Value> {
    let blocks = blocks(page).into_iter();
    let shown = blocks.filter(|block| {
        let words: Vec<&str> = block.info.split(' ').collect();
        matches!(words[..], ["yaml", "good" | "bad" | "old", ..])
    });
    let all = shown.flat_map(|it| serde_saphyr::from_multiple::<Value>(&it.text).unwrap());
    let of_kind = all.filter(|it| it["apiVersion"].is_null());
    let named = of_kind.map(|mut object| {
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = "example".into();
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object
    });
    named.collect()
}

/// Changes some fields of an object at random. `schema` has the possible fields.
pub fn random_change(object: &Value, schema: &Value, draw: &mut Rng) -> Value {
    let mut out = object.clone();
    for _ in 0..=draw.below(3) {
        let pool = Pool::from_object(&out);
        let spec = &schema["properties"];
        let top: Vec<&String> = spec.as_object().unwrap().keys().collect();
        let held = ["spec", "metadata"];
        let named: Vec<&&String> = top
            .iter()
            .filter(|it| held.contains(&it.as_str()))
            .collect();
        // For metadata only the fields of the examples are known.
        let name = if named.len() > 1 && !out["metadata"]["labels"].is_null() && draw.one_in(3) {
            "metadata"
        } else {
            "spec"
        };
        let node = &spec[name];
        if let Some(value) = out.get_mut(name) {
            change(value, node, &pool, draw);
        }
    }
    out
}

/// The values that an object contains, so that fields may become equal.
struct Pool {
    texts: Vec<String>,
    numbers: Vec<i64>,
    amounts: Vec<Value>,
}

impl Pool {
    fn from_object(object: &Value) -> Self {
        let mut pool = Self {
            texts: Vec::new(),
            numbers: Vec::new(),
            amounts: Vec::new(),
        };
        pool.add(object);
        pool
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.texts.push(key.clone());
                    self.add(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|it| self.add(it)),
            Value::String(text) => {
                self.texts.push(text.clone());
                if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                    self.amounts.push(value.clone());
                }
            }
            Value::Number(number) => {
                self.numbers.extend(number.as_i64());
                self.amounts.push(value.clone());
            }
            _ => {}
        }
    }
}

/// Names at the limits of what a label, a label key or a resource name may be.
fn odd_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "",
        "a",
        "A",
        "-a",
        "a-",
        "a.",
        "a_b",
        "a b",
        "a/b",
        "a/b/c",
        "/a",
        "a/",
        "a.b/c",
        "A.b/c",
        "a..b/c",
        "ä",
        "cpu",
        "nvidia.com/gpu",
        "true",
        "false",
        "True",
        "example.com/a_B.1",
    ]
    .map(str::to_owned)
    .to_vec();
    for length in [63, 64] {
        names.push("x".repeat(length));
        names.push(format!("a.b/{}", "x".repeat(length)));
    }
    for length in [253, 254] {
        let labels = [
            "x".repeat(63),
            "x".repeat(63),
            "x".repeat(63),
            "x".repeat(length - 192),
        ];
        names.push(format!("{}/a", labels.join(".")));
    }
    names
}

/// Amounts at, just below and just above one.
fn amounts_near(amount: &Value, draw: &mut Rng) -> Value {
    let text = amount.as_str().map_or(amount.to_string(), str::to_owned);
    let whole: Option<i64> = text.parse().ok();
    let near: Vec<Value> = match whole {
        Some(n) => vec![
            json!(n),
            json!(n.to_string()),
            json!(n.saturating_add(1)),
            json!(n.saturating_sub(1)),
            json!(format!("{}m", n.saturating_mul(1000))),
            json!(format!("{}m", n.saturating_mul(1000).saturating_add(1))),
            json!(format!(
                "{}u",
                n.saturating_mul(1_000_000).saturating_sub(1)
            )),
            json!(format!("{n}e0")),
            json!(format!("{n}.0")),
            json!(format!("{n}.000000001")),
            json!(n.saturating_neg()),
        ],
        None => vec![
            json!(text),
            json!("4"),
            json!("4001m"),
            json!("1Ki"),
            json!("1024"),
            json!("1k"),
        ],
    };
    draw.pick(&near).clone()
}

fn change(value: &mut Value, schema: &Value, pool: &Pool, draw: &mut Rng) {
    if schema["x-kubernetes-int-or-string"] == true {
        *value = amount(pool, draw);
        return;
    }
    match value {
        Value::Object(fields) => change_fields(fields, schema, pool, draw),
        Value::Array(items) => change_items(items, &schema["items"], pool, draw),
        _ => *value = random_value(schema, pool, draw),
    }
}

fn amount(pool: &Pool, draw: &mut Rng) -> Value {
    if draw.one_in(4) || pool.amounts.is_empty() {
        let few = [
            json!(0),
            json!("0"),
            json!(-1),
            json!("-1m"),
            json!("1n"),
            json!("2n"),
            json!("0.000000001"),
            json!(1),
        ];
        draw.pick(&few).clone()
    } else {
        let of = draw.pick(&pool.amounts).clone();
        amounts_near(&of, draw)
    }
}

fn change_fields(fields: &mut Map<String, Value>, schema: &Value, pool: &Pool, draw: &mut Rng) {
    let known: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    let present: Vec<String> = fields.keys().cloned().collect();
    let values = &schema["additionalProperties"];
    if values.is_object() {
        match draw.below(4) {
            0 if !present.is_empty() => {
                fields.remove(draw.pick(&present));
            }
            1 | 2 => {
                let key = name(pool, draw);
                fields.insert(key, random_value(values, pool, draw));
            }
            _ if !present.is_empty() => {
                let key = draw.pick(&present).clone();
                fields.insert(key, random_value(values, pool, draw));
            }
            _ => {}
        }
        return;
    }
    match draw.below(8) {
        0 if !present.is_empty() => {
            fields.remove(draw.pick(&present));
        }
        1 | 2 if !known.is_empty() => {
            let key = draw.pick(&known).clone();
            let value = random_value(&schema["properties"][&key], pool, draw);
            fields.entry(key).or_insert(value);
        }
        _ if !present.is_empty() => {
            let key = draw.pick(&present).clone();
            let child = schema["properties"]
                .get(&key)
                .unwrap_or(&schema["additionalProperties"]);
            if let Some(value) = fields.get_mut(&key) {
                change(value, child, pool, draw);
            }
        }
        _ => {}
    }
}

fn change_items(items: &mut Vec<Value>, schema: &Value, pool: &Pool, draw: &mut Rng) {
    let at = draw.below(items.len());
    match draw.below(8) {
        0 if !items.is_empty() => {
            items.remove(at);
        }
        1 if !items.is_empty() => items.push(items[at].clone()),
        2 if !items.is_empty() => {
            let mut copy = items[at].clone();
            change(&mut copy, schema, pool, draw);
            items.push(copy);
        }
        3 => {
            let other = draw.below(items.len());
            if !items.is_empty() {
                items.swap(at, other);
            }
        }
        4 => items.push(random_value(schema, pool, draw)),
        _ if !items.is_empty() => change(&mut items[at], schema, pool, draw),
        _ => {}
    }
}

fn name(pool: &Pool, draw: &mut Rng) -> String {
    if draw.one_in(3) || pool.texts.is_empty() {
        let odd = odd_names();
        draw.pick(&odd).clone()
    } else {
        draw.pick(&pool.texts).clone()
    }
}

/// A value as a schema has it.
fn random_value(schema: &Value, pool: &Pool, draw: &mut Rng) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return amount(pool, draw);
    }
    if let Some(values) = schema["enum"].as_array() {
        return draw.pick(values).clone();
    }
    match schema["type"].as_str() {
        Some("integer") => {
            let near: Vec<i64> = pool
                .numbers
                .iter()
                .flat_map(|it| [*it - 1, *it, *it + 1])
                .chain([0, 1, 2])
                .collect();
            json!(draw.pick(&near))
        }
        Some("boolean") => json!(draw.one_in(2)),
        Some("array") => {
            let count = draw.below(3);
            (0..count)
                .map(|_| random_value(&schema["items"], pool, draw))
                .collect()
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let count = draw.below(3);
            let entries = (0..count).map(|_| {
                (
                    name(pool, draw),
                    random_value(&schema["additionalProperties"], pool, draw),
                )
            });
            Value::Object(entries.collect())
        }
        Some("object") => {
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let mut fields = Map::new();
            for (key, child) in schema["properties"].as_object().into_iter().flatten() {
                if required.contains(&key.as_str()) || draw.one_in(3) {
                    fields.insert(key.clone(), random_value(child, pool, draw));
                }
            }
            Value::Object(fields)
        }
        _ => json!(name(pool, draw)),
    }
}
