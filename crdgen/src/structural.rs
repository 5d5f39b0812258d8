//! Structural schemas of CRDs, generated from the types.
//!
//! schemars emits JSON Schema 2020-12; a structural schema has one type per node, no `const`, no
//! `oneOf` with types, and no null type.
//!
//! No field is `nullable`: as with Kubernetes' own kinds, the API server drops an explicit null, and
//! then applies the default if there is one. So `cohortName: null` in a template creates an object
//! without a cohort, no null is stored, and a null for a required field is rejected.

pub mod check;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The maximum length of a quantity in a string. The longest useful one has 40 digits; Kubernetes has
/// no bound, and without one the cost of a CEL rule that parses a quantity has none either.
const QUANTITY_LENGTH_MAX: usize = 40;

/// A schema, or a part of one.
type Node = Map<String, Value>;

/// The schema of a kind.
pub(crate) fn schema<T: JsonSchema>() -> JSONSchemaProps {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // The API server rejects `$ref` and `$schema` in a CRD.
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut root = settings.into_generator().into_root_schema_for::<T>();
    let root = root.ensure_object();
    make_structural(root);
    // The input is fixed when this is compiled, and a test reads each schema back: it always fits.
    serde_json::from_value(root.clone().into()).unwrap_or_default()
}

/// Rewrites a node and its children.
fn make_structural(node: &mut Node) {
    drop_null(node);
    list_values(node);
    join_lines(node);
    explain_quantity(node);
    node.remove("title");
    // The API server warns of formats that it does not know.
    if text(node, "format").is_some_and(|format| format.starts_with("uint")) {
        node.remove("format");
    }
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(make_child_structural);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            make_child_structural(child);
        }
    }
}

fn make_child_structural(child: &mut Value) {
    if let Value::Object(node) = child {
        make_structural(node);
    }
}

/// Removes null from the types of an optional value.
fn drop_null(node: &mut Node) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|name| name != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            node.insert("type".to_owned(), single);
        }
    }
    if node.get("default") == Some(&Value::Null) {
        node.remove("default");
    }
    let Some(Value::Array(branches)) = node.get("anyOf") else {
        return;
    };
    if let [Value::Object(inner), null] = branches.as_slice()
        && *null == json!({"type": "null"})
    {
        let inner = inner.clone();
        node.remove("anyOf");
        for (key, value) in inner {
            // The keywords of the field take precedence over those of its type.
            node.entry(key).or_insert(value);
        }
    }
}

/// Turns the `oneOf` of an enum of strings into `enum`, and appends the meanings to the description.
fn list_values(node: &mut Node) {
    let Some(Value::Array(variants)) = node.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut lines = Vec::new();
    for variant in variants {
        // A branch without `const` is a type: this `oneOf` is no list of values.
        let Some(value) = variant.get("const").and_then(Value::as_str) else {
            return;
        };
        let meaning = variant.get("description").and_then(Value::as_str);
        lines.push(format!(
            "- {value}: {}",
            joined(meaning.unwrap_or_default())
        ));
        values.push(value.to_owned());
    }
    let description = text(node, "description").unwrap_or_default();
    let description = format!("{}\n\n{}", joined(description), lines.join("\n"));
    node.remove("oneOf");
    node.insert("type".to_owned(), "string".into());
    node.insert("enum".to_owned(), values.into());
    node.insert("description".to_owned(), description.into());
}

/// Undoes the line breaks of the source in a description, unless it has a list of values.
fn join_lines(node: &mut Node) {
    if let Some(description) = text(node, "description")
        && !description.contains("\n- ")
    {
        let description = joined(description);
        node.insert("description".to_owned(), description.into());
    }
}

/// Bounds a quantity that is written as a string. `kubectl explain` calls it an object, so the
/// description has examples.
fn explain_quantity(node: &mut Node) {
    if node.get("x-kubernetes-int-or-string") != Some(&Value::Bool(true)) {
        return;
    }
    node.insert("maxLength".to_owned(), QUANTITY_LENGTH_MAX.into());
    // An int-or-string without a pattern may be a port or a percentage.
    if let Some(description) = text(node, "description").filter(|_| node.contains_key("pattern")) {
        let description = format!("{description} A quantity, such as 500m, 4 or 16Gi.");
        node.insert("description".to_owned(), description.into());
    }
}

/// Whether an expression refers to `oldSelf`.
pub(crate) fn uses_old_self(expression: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Whole words: `oldSelf` may be a part of a longer name.
    let mut words = expression.split(|c| !is_part(c));
    words.any(|word| word == "oldSelf")
}

/// Paragraphs with one line each.
fn joined(text: &str) -> String {
    let paragraphs: Vec<String> = text.split("\n\n").map(|p| p.replace('\n', " ")).collect();
    paragraphs.join("\n\n")
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
