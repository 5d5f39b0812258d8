//! A change of the class compatible rejects no object that was valid and stored.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use lockkeeper_crdgen::diff::{ChangeClass, Effect, compare_schemas};
use lockkeeper_policies::schema::StructuralSchema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::cell::Cell;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const WORDS: [&str; 4] = ["", "x", "yy", "zzzz"];

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

/// Some keywords, of those that are given.
fn random_subset(
    keywords: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Map<String, Value>> {
    let each: Vec<BoxedStrategy<Option<(String, Value)>>> = keywords
        .into_iter()
        .map(|(key, value)| {
            let entry = value.prop_map(move |it| Some((key.to_owned(), it)));
            prop_oneof![3 => Just(None), 1 => entry].boxed()
        })
        .collect();
    each.prop_map(|all| all.into_iter().flatten().collect())
        .boxed()
}

fn with(base: Value, more: Map<String, Value>) -> Value {
    let Value::Object(mut base) = base else {
        unreachable!()
    };
    base.extend(more);
    Value::Object(base)
}

fn number(most: i64) -> BoxedStrategy<Value> {
    (0..most).prop_map(Value::from).boxed()
}

fn scalar() -> BoxedStrategy<Value> {
    let flag = || any::<bool>().prop_map(Value::from).boxed();
    let text = random_subset(vec![
        ("minLength", number(3)),
        ("maxLength", number(5)),
        (
            "pattern",
            select(vec!["^x", "^y*$", "^$"])
                .prop_map(Value::from)
                .boxed(),
        ),
        (
            "enum",
            vec(select(&WORDS[..]), 1..4)
                .prop_map(|it| json!(it))
                .boxed(),
        ),
        ("nullable", flag()),
        ("default", select(&WORDS[..]).prop_map(Value::from).boxed()),
    ]);
    let whole = random_subset(vec![
        ("minimum", number(4)),
        ("maximum", number(5)),
        ("exclusiveMinimum", flag()),
        ("exclusiveMaximum", flag()),
        ("enum", vec(0..4_i64, 1..4).prop_map(|it| json!(it)).boxed()),
        ("nullable", flag()),
        ("default", number(4)),
        (
            "not",
            (0..4_i64).prop_map(|it| json!({"enum": [it]})).boxed(),
        ),
        (
            "anyOf",
            vec(0..4_i64, 1..3)
                .prop_map(|all| all.iter().map(|it| json!({"minimum": it})).collect())
                .boxed(),
        ),
    ]);
    prop_oneof![
        text.prop_map(|it| with(json!({"type": "string"}), it)),
        (select(vec!["integer", "number"]), whole).prop_map(|(t, it)| with(json!({"type": t}), it)),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ]
    .boxed()
}

fn junctors() -> BoxedStrategy<Map<String, Value>> {
    let clauses = || {
        vec(name(), 1..3)
            .prop_map(|names| {
                names
                    .iter()
                    .map(|it| json!({"required": [it]}))
                    .collect::<Value>()
            })
            .boxed()
    };
    random_subset(vec![
        ("anyOf", clauses()),
        ("oneOf", clauses()),
        ("allOf", clauses()),
        (
            "not",
            name().prop_map(|it| json!({"required": [it]})).boxed(),
        ),
    ])
}

fn schema() -> BoxedStrategy<Value> {
    scalar()
        .prop_recursive(3, 24, 4, |inner| {
            let object = (
                btree_map(name(), inner.clone(), 0..4),
                random_subset(vec![
                    (
                        "required",
                        vec(name(), 0..3).prop_map(|it| json!(it)).boxed(),
                    ),
                    ("minProperties", number(3)),
                    ("maxProperties", number(4)),
                    (
                        "x-kubernetes-preserve-unknown-fields",
                        Just(json!(true)).boxed(),
                    ),
                    ("nullable", any::<bool>().prop_map(Value::from).boxed()),
                    ("default", Just(json!({})).boxed()),
                ]),
                junctors(),
            );
            let object = object.prop_map(|(properties, more, junctors)| {
                let all = with(json!({"type": "object", "properties": properties}), more);
                with(all, junctors)
            });
            let map = (
                inner.clone(),
                random_subset(vec![("maxProperties", number(4))]),
            );
            let map = map.prop_map(|(entry, more)| {
                with(
                    json!({"type": "object", "additionalProperties": entry}),
                    more,
                )
            });
            let list = (
                inner,
                random_subset(vec![
                    ("minItems", number(3)),
                    ("maxItems", number(4)),
                    (
                        "x-kubernetes-list-type",
                        select(vec!["set", "atomic"]).prop_map(Value::from).boxed(),
                    ),
                ]),
            );
            let list =
                list.prop_map(|(items, more)| with(json!({"type": "array", "items": items}), more));
            prop_oneof![3 => object, 1 => map, 1 => list].boxed()
        })
        .boxed()
}

/// A value that a schema may well take, and often does not.
fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        select(&WORDS[..]).prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!(1.5)),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            3 => btree_map(name(), inner.clone(), 0..4).prop_map(|it| json!(it)),
            1 => vec(inner, 0..4).prop_map(Value::from),
        ]
    })
    .boxed()
}

/// A value with the types of a schema; its bounds are ignored.
fn value_of_shape(
    schema: &Value,
    seeds: &mut impl Iterator<Item = usize>,
    fallback: &Value,
) -> Value {
    let mut pick = |most: usize| seeds.next().unwrap_or(0) % most;
    match schema["type"].as_str() {
        Some("string") => json!(WORDS[pick(4)]),
        Some("integer") => json!(pick(5)),
        Some("number") => [json!(1.5), json!(3), json!(0)][pick(3)].clone(),
        Some("boolean") => json!(pick(2) == 0),
        Some("array") => {
            let count = pick(4);
            (0..count)
                .map(|_| value_of_shape(&schema["items"], seeds, fallback))
                .collect()
        }
        Some("object") => {
            let mut fields = Map::new();
            for (name, child) in schema["properties"].as_object().into_iter().flatten() {
                match seeds.next().unwrap_or(0) % 8 {
                    0..5 => {
                        drop(fields.insert(name.clone(), value_of_shape(child, seeds, fallback)));
                    }
                    5 => drop(fields.insert(name.clone(), Value::Null)),
                    _ => {}
                }
            }
            if let Some(entry) = schema.get("additionalProperties") {
                for name in NAMES.iter().take(seeds.next().unwrap_or(0) % 4) {
                    fields.insert((*name).to_owned(), value_of_shape(entry, seeds, fallback));
                }
            }
            if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
                fields.entry("d").or_insert_with(|| fallback.clone());
            }
            Value::Object(fields)
        }
        _ => fallback.clone(),
    }
}

/// Its defaults are valid, as the API server requires, or it has none.
fn with_valid_defaults(mut schema: Value) -> Value {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, child) in fields.into_iter().flatten() {
        *child = with_valid_defaults(child.take());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(key) {
            *child = with_valid_defaults(child.take());
        }
    }
    if let Some(default) = schema.get("default").cloned() {
        let around = json!({"type": "object", "properties": {"default": schema}});
        let structure = StructuralSchema::new(&around).unwrap();
        if !structure
            .check_shape(&json!({"default": default}), None)
            .is_empty()
        {
            schema.as_object_mut().unwrap().remove("default");
        }
    }
    schema
}

/// One thing that may be changed in a schema, by a number.
fn random_edit(mut schema: Value, seeds: &mut impl Iterator<Item = usize>, other: &Value) -> Value {
    let mut pick = |most: usize| seeds.next().unwrap_or(0) % most;
    let fields = schema.as_object_mut().unwrap();
    let keys: Vec<String> = fields.keys().filter(|it| *it != "type").cloned().collect();
    match pick(6) {
        0 if !keys.is_empty() => {
            let key = &keys[pick(keys.len())];
            if key != "items" {
                fields.remove(key);
            }
        }
        1 => {
            for (key, value) in other.as_object().unwrap() {
                if !["type", "items", "properties", "additionalProperties"].contains(&key.as_str())
                {
                    fields.insert(key.clone(), value.clone());
                }
            }
        }
        2 => {
            for value in fields.values_mut() {
                if let Some(number) = value.as_i64() {
                    *value = json!((number + 1) - 2 * i64::try_from(pick(2)).unwrap());
                    if value.as_i64() == Some(-1) {
                        *value = json!(0);
                    }
                }
            }
        }
        3 if fields.contains_key("properties") => {
            let name = NAMES[pick(4)];
            fields["properties"][name] = other.clone();
        }
        4 => {
            for key in ["enum", "required", "anyOf", "allOf", "oneOf"] {
                if let Some(Value::Array(all)) = fields.get_mut(key) {
                    let has_more = all.len() > 1;
                    if pick(2) == 0 && has_more {
                        all.pop();
                    } else if let Some(Value::Array(more)) = other.get(key) {
                        all.extend(more.clone());
                    }
                }
            }
        }
        _ => {
            for (_, child) in fields
                .get_mut("properties")
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten()
            {
                *child = random_edit(child.take(), seeds, other);
            }
            for key in ["items", "additionalProperties"] {
                if let Some(child) = fields.get_mut(key).filter(|it| it.is_object()) {
                    *child = random_edit(child.take(), seeds, other);
                }
            }
        }
    }
    schema
}

fn read(schema: &Value) -> JSONSchemaProps {
    serde_json::from_value(schema.clone()).unwrap()
}

fn root(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

/// An object as it is stored, or read, under a schema.
fn decode_stored(structure: &StructuralSchema, object: &Value) -> Value {
    let mut object = object.clone();
    structure.prune(&mut object);
    structure.apply_defaults(&mut object);
    object
}

fn is_compatible(old: &Value, new: &Value) -> bool {
    let changes = compare_schemas("things.example.com", "v1", &read(old), &read(new));
    changes.iter().all(|it| it.class == ChangeClass::Compatible)
}

/// The main property. It counts the rejected objects, so that it cannot pass without any.
#[test]
fn compatible_changes_keep_values_valid() {
    let (compatible, rejected) = (Cell::new(0), Cell::new(0));
    let input = (
        schema(),
        schema(),
        vec(any::<usize>(), 64),
        vec(value(), 4),
        any::<bool>(),
    );
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(8000)
    };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let done = runner.run(&input, |(old, other, seeds, values, is_twice)| {
        let mut seeds = seeds.into_iter();
        let old = with_valid_defaults(old);
        let mut new = random_edit(old.clone(), &mut seeds, &other);
        if is_twice {
            new = random_edit(new, &mut seeds, &other);
        }
        let (old, new) = (root(&old), root(&with_valid_defaults(new)));
        let (Ok(before), Ok(after)) = (StructuralSchema::new(&old), StructuralSchema::new(&new))
        else {
            return Ok(());
        };
        let is_compatible = is_compatible(&old, &new);
        for value in &values {
            for spec in [
                value.clone(),
                value_of_shape(&old["properties"]["spec"], &mut seeds, value),
            ] {
                let object = decode_stored(&before, &json!({"spec": spec}));
                if !before.check_shape(&object, None).is_empty() {
                    continue;
                }
                let found = after.check_shape(&decode_stored(&after, &object), None);
                if is_compatible {
                    compatible.set(compatible.get() + usize::from(old != new));
                    prop_assert!(found.is_empty(), "{old}\n{new}\n{object}\n{found:?}");
                }
                rejected.set(rejected.get() + usize::from(!found.is_empty()));
            }
        }
        Ok(())
    });
    done.unwrap();
    assert!(compatible.get() > 2000, "{}", compatible.get());
    assert!(rejected.get() > 500, "{}", rejected.get());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn schema_compared_with_itself_has_no_changes(schema in schema()) {
        let schema = read(&root(&schema));
        prop_assert_eq!(compare_schemas("things.example.com", "v1", &schema, &schema), []);
    }

    /// Bounds and choices that are taken away or widened, one after another.
    #[test]
    fn loosened_schema_is_never_breaking(schema in schema(), steps in vec(any::<usize>(), 24)) {
        let mut now = schema.clone();
        let mut steps = steps.into_iter();
        for _ in 0..4 {
            now = loosen(now, &mut steps);
        }
        let changes = compare_schemas("things.example.com", "v1", &read(&root(&schema)), &read(&root(&now)));
        for change in changes {
            prop_assert_eq!(change.class, ChangeClass::Compatible, "{}: {}\n{}\n{}", change.place, change.description, schema, now);
            prop_assert!(matches!(change.effect, Effect::Wider | Effect::Same));
        }
    }
}

fn loosen(mut schema: Value, steps: &mut impl Iterator<Item = usize>) -> Value {
    let step = steps.next().unwrap_or(0);
    let fields = schema.as_object_mut().unwrap();
    let free = [
        "enum",
        "required",
        "minimum",
        "maxLength",
        "pattern",
        "not",
        "anyOf",
        "allOf",
        "oneOf",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    match step % 4 {
        0 => drop(fields.remove(free[step / 4 % free.len()])),
        1 => {
            for key in ["maximum", "maxLength", "maxItems", "maxProperties"] {
                if let Some(number) = fields.get(key).and_then(Value::as_i64) {
                    fields.insert(key.to_owned(), json!(number + 1));
                }
            }
        }
        2 => {
            for key in ["enum", "anyOf"] {
                if let Some(Value::Array(all)) = fields.get_mut(key) {
                    let more = if key == "enum" {
                        json!("more")
                    } else {
                        json!({"minLength": 9})
                    };
                    all.push(more);
                }
            }
        }
        _ => {
            for (_, child) in fields
                .get_mut("properties")
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten()
            {
                *child = loosen(child.take(), steps);
            }
        }
    }
    schema
}
