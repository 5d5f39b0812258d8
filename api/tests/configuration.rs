//! The reference of the configuration, made from the types that read it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::config::Config;
use lockkeeper_testkit::assert_file_is_current;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const HEAD: &str = "# Configuration

`lockkeeper serve` and `lockkeeper controller` read one YAML file, `--config FILE`. Every key is optional; an
unknown key or an invalid value is an error with file, line and column. Flags take precedence over the
file. `--print-config` prints the resulting configuration as a valid file.

The server reads the file again when it changes, within five seconds (`webhook.configPollSeconds`), also
when it is a mounted ConfigMap. Changes under `rules`, `priority` and `job` apply to the next request;
changes under `webhook` need a restart, and a log message says so. An invalid file changes nothing: the log
reports the error, and `lockkeeper_webhook_config_reloads_total{result=\"rejected\"}` is incremented. The pages of
`--rules` ([user-rules.md](user-rules.md)) are read again with it. An exception (`rules.exceptions`) ends at its time,
without a reload.
`waitForPodsReady`, `preemption` and `controller` are for the controller, which reads the file once, when it
starts.

This page is made from the types in `api/src/config.rs` and `api/src/config/`;
`UPDATE_DOCS=1 cargo test -p lockkeeper-api --test configuration` regenerates it.

";

/// The keys below one type, as rows. A map's keys are whatever the user names.
fn rows(schema: &Value, root: &Value, key: &str, default: &Value, out: &mut Vec<[String; 4]>) {
    let schema = resolved(schema, root);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let key = if key.is_empty() {
                name.clone()
            } else {
                format!("{key}.{name}")
            };
            row(property, root, &key, &default[name], out);
        }
    } else if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
        rows(values, root, &format!("{key}.*"), &Value::Null, out);
    } else if let Some(items) = schema.get("items") {
        rows(items, root, &format!("{key}[]"), &Value::Null, out);
    }
}

fn row(property: &Value, root: &Value, key: &str, default: &Value, out: &mut Vec<[String; 4]>) {
    let description = property["description"].as_str().expect(key);
    // The default of an absent field is the default in its schema.
    let shown = match (default, &property["default"]) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, value) | (value, _) => format!("`{value}`"),
    };
    let is_section = resolved(property, root)["properties"].is_object();
    let shown = if is_section { String::new() } else { shown };
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    out.push([format!("`{key}`"), kind(property, root), shown, text]);
    rows(property, root, key, default, out);
}

/// The text of a value in the documentation.
fn kind(schema: &Value, root: &Value) -> String {
    let schema = resolved(schema, root);
    if let Some(values) = words(schema) {
        return values.join(", ");
    }
    if let Some(values) = schema.get("additionalProperties").filter(|v| v.is_object()) {
        return format!("map of {}", kind(values, root));
    }
    let name = match &schema["type"] {
        Value::Array(names) => names[0].as_str().unwrap(),
        name => name.as_str().expect("a type"),
    };
    match name {
        "array" => format!("list of {}", kind(&schema["items"], root)),
        "integer" => number("whole number", schema),
        "number" => number("number", schema),
        "boolean" => "`true`, `false`".to_owned(),
        "object" => "section".to_owned(),
        name => name.to_owned(),
    }
}

/// The range is the schema's, so that it is defined once.
fn number(name: &str, schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!("{name}, {least} to {most}"),
        _ => name.to_owned(),
    }
}

/// The values of a closed set.
fn words(schema: &Value) -> Option<Vec<String>> {
    let values: Vec<&Value> = match (&schema["enum"], &schema["oneOf"]) {
        (Value::Array(values), _) => values.iter().collect(),
        (_, Value::Array(cases)) => cases.iter().map(|case| &case["const"]).collect(),
        _ => return None,
    };
    let quoted = values
        .iter()
        .map(|value| format!("`{}`", value.as_str().unwrap()));
    Some(quoted.collect())
}

fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    // An optional one: the other case is null.
    let schema = match &schema["anyOf"] {
        Value::Array(cases) => &cases[0],
        _ => schema,
    };
    match schema["$ref"].as_str() {
        Some(path) => root.pointer(path.trim_start_matches('#')).expect(path),
        None => schema,
    }
}

fn reference() -> String {
    let schema = json!(schemars::schema_for!(Config));
    let default = json!(Config::default());
    let mut table = Vec::new();
    rows(&schema, &schema, "", &default, &mut table);
    let mut out = HEAD.to_owned();
    out.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for cells in table {
        writeln!(out, "| {} |", cells.join(" | ")).unwrap();
    }
    out
}

/// `UPDATE_DOCS=1` regenerates the page.
#[test]
fn configuration_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let new = reference();
    let command = "cargo test -p lockkeeper-api --test configuration";
    assert_file_is_current(&path, &new, command);
}

/// The keys below a section that are not sections themselves.
fn leaves(section: &Value, key: &str, out: &mut Vec<String>) {
    for (name, value) in section.as_object().unwrap() {
        let key = format!("{key}{name}");
        if value.is_object() {
            leaves(value, &format!("{key}."), out);
        } else {
            out.push(key);
        }
    }
}

#[test]
fn limits_are_documented_in_reliability_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reliability.md");
    let text = fs::read_to_string(path).unwrap();
    let mut keys = Vec::new();
    leaves(
        &json!(Config::default())["webhook"]["limits"],
        "",
        &mut keys,
    );
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        assert!(
            text.contains(&format!("`{key}`")),
            "{key} is not in docs/reliability.md"
        );
    }
}
