//! YAML in the style of Kubernetes manifests.

use crate::manifests::SyntaxError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Why an object has no YAML form.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// It has no JSON form, such as a map whose keys are lists.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It cannot be written as YAML.
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// One document, without a separator. The keys are in alphabetical order, which for an object of
/// Kubernetes means apiVersion, kind, metadata, spec.
pub(crate) fn document(object: &impl Serialize) -> Result<String, YamlError> {
    let value = normal(serde_json::to_value(object)?);
    Ok(serde_saphyr::to_string(&value)?)
}

/// One JSON document, with its keys in alphabetical order and a line break at its end.
pub(crate) fn json(value: &Value) -> Result<String, YamlError> {
    let text = serde_json::to_string_pretty(&normal(value.clone()))?;
    Ok(format!("{text}\n"))
}

/// Decodes a document. The error is one line with the position and the cause.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| SyntaxError::from_parser(&error).to_string())
}

/// The value with keys in order, without a fraction where a number is whole.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            // Sorted here, because features of serde_json decide whether its map sorts or keeps the order.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let entries = entries.into_iter().map(|(key, value)| (key, normal(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Number(number) => whole(&number).map_or(Value::Number(number), Value::from),
        other => other,
    }
}

/// The number as an integer if it has no fraction: `minimum` and `maximum` of a schema are floats.
fn whole(number: &serde_json::Number) -> Option<i64> {
    number.to_string().strip_suffix(".0")?.parse().ok()
}

#[cfg(test)]
mod tests;
