//! The values as a schema, as a file with comments, and as rows of a table.

use super::Values;
use crate::yaml::YamlError;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The maximum width of comment lines, in columns.
const WIDTH_MAX: usize = 110;

/// The head of `values.yaml`.
const HEAD: &str = "\
# The values of the chart, with their defaults. Made by `crdgen chart` from crdgen/src/chart/values.rs; to set some,
# give Helm a file of your own. values.schema.json rejects keys that are not here.
";

/// `values.schema.json` in draft 7, which Helm requires. It rejects unknown keys, also in sections with
/// types of Kubernetes.
///
/// # Errors
///
/// When the schema has no JSON form; a test generates it, so this does not happen.
pub fn schema_text() -> Result<String, YamlError> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}

fn schema() -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<Values>().to_value();
    tighten(&mut schema);
    schema
}

/// Makes every section reject unknown keys.
fn tighten(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_section = map.get("properties").is_some_and(Value::is_object);
            if is_section {
                map.entry("additionalProperties").or_insert(false.into());
            }
            map.values_mut().for_each(tighten);
        }
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}

/// `values.yaml`: the defaults, each key with its description above it.
///
/// # Errors
///
/// When the defaults have no YAML form; a test generates them, so this does not happen.
pub fn defaults_text() -> Result<String, YamlError> {
    let schema = schema();
    let yaml = serde_saphyr::to_string(&Values::default())?;
    let mut out = HEAD.to_owned();
    let mut path: Vec<&str> = Vec::new();
    for line in yaml.lines() {
        let text = line.trim_start();
        let indent = line.len().saturating_sub(text.len());
        let key = text.split_once(':').map(|(key, _)| key);
        if let Some(key) = key.filter(|_| !text.starts_with("- ")) {
            // The YAML writer indents each level by two spaces.
            path.truncate(indent / 2);
            path.push(key);
            if indent == 0 {
                out.push('\n');
            }
            comment(&description(&schema, &path), indent, &mut out);
        }
        out.extend([line, "\n"]);
    }
    Ok(out)
}

/// Writes a text as comment lines of limited width.
fn comment(text: &str, indent: usize, out: &mut String) {
    let mut line = String::new();
    let mut flush = |line: &mut String| {
        if !line.is_empty() {
            out.extend([&" ".repeat(indent), "#", line.as_str(), "\n"]);
            line.clear();
        }
    };
    for word in text.split_whitespace() {
        if indent + line.len() + word.len() > WIDTH_MAX {
            flush(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    flush(&mut line);
}

/// The values as rows of a table: the key, its default, its description. Sections of Kubernetes and the configuration
/// are one row each.
#[must_use]
pub fn rows() -> Vec<[String; 3]> {
    let schema = schema();
    let defaults = serde_json::to_value(Values::default()).unwrap_or_default();
    let mut out = Vec::new();
    rows_below(&schema, &mut Vec::new(), &defaults, &mut out);
    out
}

fn rows_below(schema: &Value, path: &mut Vec<String>, value: &Value, out: &mut Vec<[String; 3]>) {
    let Value::Object(map) = value else {
        return;
    };
    for (key, value) in map {
        path.push(key.clone());
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = description(schema, &keys);
        if !text.is_empty() {
            let shown = if is_section(value) {
                String::new()
            } else {
                format!("`{value}`")
            };
            out.push([format!("`{}`", keys.join(".")), shown, text]);
            rows_below(schema, path, value, out);
        }
        path.pop();
    }
}

fn is_section(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty())
}

/// The description of the key at this path; empty for a key that the user names.
fn description(schema: &Value, path: &[&str]) -> String {
    let mut text = "";
    let mut at = schema;
    for key in path {
        let property = resolved(schema, at).pointer("/properties");
        let Some(property) = property.and_then(|it| it.get(key)) else {
            return String::new();
        };
        text = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        at = property;
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The schema itself, or the one that it refers to.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    // schemars wraps a reference with a description of its own in `allOf`.
    let reference = schema
        .get("$ref")
        .or_else(|| schema.pointer("/allOf/0/$ref"));
    reference
        .and_then(Value::as_str)
        .and_then(|it| root.pointer(it.trim_start_matches('#')))
        .unwrap_or(schema)
}
