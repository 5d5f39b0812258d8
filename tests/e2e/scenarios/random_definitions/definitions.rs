//! Random definitions and objects of their kinds.

use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

use super::place::Place;
use super::rules;
use super::schemas::SchemaGenerator;
use super::texts;
use super::values;

/// The group of all definitions.
pub const GROUP: &str = "random.example.com";

/// The label of all definitions, for their deletion.
pub const LABEL: &str = "random.example.com/definition";

/// A field of every schema: its values show which version of the definition the API server uses.
pub const PROBE: &str = "revision";

/// The value of the probe that only the tightened definition allows.
pub const PROBE_TIGHTENED: &str = "second";

/// The definition of a seed.
pub fn definition(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let has_mistakes = rng.one_in(5);
    let mut schema = SchemaGenerator::new(&mut rng, has_mistakes).root();
    schema["properties"][PROBE] = json!({"type": "string", "enum": ["first"]});
    let has_status = !schema["properties"]["status"].is_null();
    let mut version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
    });
    if has_status && rng.one_in(2) {
        version["subresources"] = json!({"status": {}});
    }
    if rng.one_in(10) {
        version["deprecated"] = true.into();
    }
    if rng.one_in(8) {
        let scale =
            json!({"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"});
        version["subresources"]["scale"] = scale;
    }
    // The API server panics if the schema is not structural.
    if !has_mistakes && rng.one_in(10) {
        let path = *rng.pick(&[".revision", ".spec.name", ".spec.items", ".metadata.name"]);
        version["selectableFields"] = json!([{"jsonPath": path}]);
    }
    let plural = format!("things{seed}");
    let scope = *rng.pick(&["Namespaced", "Namespaced", "Cluster"]);
    let kind = format!("Thing{seed}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"), "labels": {LABEL: "random"}},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [version],
        },
    })
}

/// The schema of a definition.
pub fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// The path of the kind's collection.
pub fn collection(definition: &Value) -> String {
    let spec = &definition["spec"];
    let plural = spec["names"]["plural"].as_str().unwrap();
    if spec["scope"] == "Cluster" {
        format!("/apis/{GROUP}/v1/{plural}")
    } else {
        format!("/apis/{GROUP}/v1/namespaces/default/{plural}")
    }
}

/// An object of the kind without fields.
pub fn empty_object(definition: &Value, name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": definition["spec"]["names"]["kind"],
        "metadata": {"name": name},
    })
}

/// An object of the kind.
pub fn object(definition: &Value, name: &str, rng: &mut Rng) -> Value {
    let mut out = empty_object(definition, name);
    let Value::Object(fields) = values::value(schema(definition), rng) else {
        return out;
    };
    for (key, value) in fields {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | PROBE) {
            out[key] = value;
        }
    }
    out
}

/// The definition with a schema that rejects more objects.
pub fn tightened(definition: &Value, rng: &mut Rng) -> Value {
    let mut out = definition.clone();
    let schema = &mut out["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for _ in 0..=rng.below(4) {
        tighten(schema, rng, 0);
    }
    schema["properties"][PROBE]["enum"] = json!(["first", PROBE_TIGHTENED]);
    out
}

fn tighten(schema: &mut Value, rng: &mut Rng, depth: usize) {
    let names: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys().cloned())
        .filter(|it| it != PROBE && it != "metadata")
        .collect();
    if !names.is_empty() && (depth == 0 || rng.percent(70)) && !rng.one_in(8) {
        return tighten(&mut schema["properties"][rng.pick(&names)], rng, depth + 1);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() && rng.percent(60) {
            return tighten(&mut schema[key], rng, depth + 1);
        }
    }
    if schema["x-kubernetes-validations"].is_null() && rng.one_in(3) {
        let place = if depth == 0 {
            Place::root()
        } else {
            Place::in_list()
        };
        rules::add(schema, &place, rng, false);
        return;
    }
    match schema["type"].as_str() {
        Some("string") if rng.one_in(2) => schema["pattern"] = texts::pattern(rng).into(),
        Some("string") => schema["maxLength"] = rng.range(0, 4).into(),
        Some("integer" | "number") => schema["maximum"] = rng.range(-1, 3).into(),
        Some("array") if rng.one_in(3) => schema["minItems"] = rng.range(1, 3).into(),
        Some("array") => schema["maxItems"] = rng.range(0, 2).into(),
        Some("object") if !names.is_empty() && rng.one_in(2) => {
            schema["required"] = json!([rng.pick(&names)]);
        }
        Some("object") => schema["maxProperties"] = rng.range(0, 2).into(),
        _ => schema["enum"] = json!([values::value(schema, rng)]),
    }
}
