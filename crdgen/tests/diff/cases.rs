//! The cases of `cases.yaml`, as definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    #[serde(default)]
    pub of: CaseScope,
    old: Value,
    new: Value,
    pub expect: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CaseScope {
    #[default]
    Schema,
    Definition,
}

impl Case {
    pub fn before(&self) -> CustomResourceDefinition {
        definition(self.of, &self.old)
    }

    pub fn after(&self) -> CustomResourceDefinition {
        definition(self.of, &self.new)
    }
}

pub fn all() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("cases.yaml")).unwrap()
}

/// Changes that former values meet, or may not. crdify's verdicts on them are not recorded.
pub fn former_values() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("former_values.yaml")).unwrap()
}

fn schema() -> Value {
    let spec = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let status = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}})
}

fn definition(of: CaseScope, input: &Value) -> CustomResourceDefinition {
    let v1 = json!({"name": "v1", "served": true, "storage": true, "schema": schema()});
    let mut base = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [v1],
        },
    });
    match of {
        CaseScope::Schema => {
            let schema = json!({"type": "object", "properties": {"spec": input}});
            base["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        }
        CaseScope::Definition => merge(&mut base, &expand(input, &v1)),
    }
    serde_json::from_value(base).unwrap()
}

/// Puts in what `$v1` and `$schema` stand for.
fn expand(input: &Value, v1: &Value) -> Value {
    match input {
        Value::String(text) if text == "$v1" => v1.clone(),
        Value::String(text) if text == "$schema" => schema(),
        Value::Array(items) => items.iter().map(|it| expand(it, v1)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, it)| (key.clone(), expand(it, v1)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn merge(base: &mut Value, value: &Value) {
    let Value::Object(fields) = value else {
        *base = value.clone();
        return;
    };
    for (key, child) in fields {
        merge(&mut base[key], child);
    }
}
