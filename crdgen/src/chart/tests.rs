#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use lockkeeper_testkit::assert_file_is_current;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn chart() -> PathBuf {
    root().join("charts/lockkeeper")
}

#[test]
fn committed_chart_files_are_current() {
    let remedy = "cargo run -p lockkeeper-crdgen --bin crdgen -- all --output-dir .";
    let files = files().unwrap();
    for File { path, text } in &files {
        let committed = fs::read_to_string(chart().join(path)).unwrap_or_default();
        assert_eq!(committed, *text, "{path} is behind; {remedy}");
    }
    let made: BTreeSet<PathBuf> = files.iter().map(|it| chart().join(&it.path)).collect();
    for entry in fs::read_dir(chart().join(GENERATED)).unwrap() {
        let path = entry.unwrap().path();
        assert!(made.contains(&path), "{}: not generated", path.display());
    }
}

#[test]
fn chart_files_are_sorted_and_unique() {
    let paths: Vec<String> = files().unwrap().into_iter().map(|it| it.path).collect();
    let mut sorted = paths.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(paths, sorted);
    assert_eq!(files().unwrap(), files().unwrap());
}

#[test]
fn template_has_condition_and_chart_labels() {
    let plain = json!({"kind": "A", "metadata": {"name": "a"}});
    let labelled = json!({"kind": "B", "metadata": {"labels": {"team": "speech"}, "name": "b"}});
    let text = template(&[plain, labelled], ".Values.policies.enabled").unwrap();
    assert_eq!(
        text,
        r#"{{- /* Made by `crdgen chart`: change what it is made from. */}}
{{- if .Values.policies.enabled }}
kind: A
metadata:
  labels:
    {{- include "lockkeeper.labels" . | nindent 4 }}
  name: a
---
kind: B
metadata:
  labels:
    {{- include "lockkeeper.labels" . | nindent 4 }}
    team: speech
  name: b
{{- end }}
"#
    );
}

#[test]
fn templates_leave_no_placeholder() {
    for File { path, text } in files().unwrap() {
        assert!(!text.contains("hole.chart"), "{path}");
        let opened = text.matches("{{- if ").count() + text.matches("{{- with ").count();
        assert_eq!(opened, text.matches("{{- end }}").count(), "{path}");
    }
}

proptest! {
    #[test]
    fn template_syntax_in_text_is_escaped(text in "[ -~\n]{0,40}|[{} ]{0,20}") {
        let yaml = yaml::document(&json!({"text": text})).unwrap();
        let filled = placeholders::render(&yaml);
        let printed = filled.replace(r#"{{ "{{" }}"#, "{{");
        prop_assert_eq!(&printed, &yaml);
        let actions = filled.replace(r#"{{ "{{" }}"#, "");
        prop_assert!(!actions.contains("{{"), "{}", filled);
    }
}

/// Every section of the schema, with where it is.
fn sections(schema: &Value, path: &str, out: &mut Vec<(String, Value)>) {
    match schema {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object) {
                out.push((path.to_owned(), schema.clone()));
            }
            for (key, value) in map {
                sections(value, &format!("{path}/{key}"), out);
            }
        }
        Value::Array(items) => items.iter().for_each(|it| sections(it, path, out)),
        _ => {}
    }
}

#[test]
fn values_schema_rejects_unknown_keys() {
    let schema: Value = serde_json::from_str(&values::schema_text().unwrap()).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let mut all = Vec::new();
    sections(&schema, "", &mut all);
    assert!(all.len() > 40, "{}", all.len());
    for (path, section) in all {
        assert_eq!(section["additionalProperties"], false, "{path}");
    }
}

#[test]
fn values_file_matches_defaults() {
    let text = values::defaults_text().unwrap();
    let read: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(read, json!(values::Values::default()));
}

#[test]
fn values_are_documented() {
    let text = values::defaults_text().unwrap();
    let mut before = "";
    let mut section = usize::MAX;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_key = !line.is_empty() && !line.trim_start().starts_with(['#', '-']);
        // Names that users choose, such as the resources of a container.
        let is_named = indent > section;
        if !is_named {
            section = usize::MAX;
        }
        if is_key && !is_named {
            assert!(before.trim_start().starts_with('#'), "{line}");
            if ["requests:", "limits:"].contains(&line.trim()) {
                section = indent;
            }
        }
        before = line;
    }
}

#[test]
fn chart_version_matches_binary() {
    let text = fs::read_to_string(chart().join("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
}

/// Where the table begins and ends in the page.
const TABLE: [&str; 2] = [
    "<!-- The table is made from crdgen/src/chart/values.rs. -->\n",
    "<!-- End of the table. -->\n",
];

/// `UPDATE_DOCS=1` rewrites the table.
#[test]
fn values_page_is_current() {
    let path = root().join("docs/installation.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(TABLE[0]).expect("a table begins");
    let (_, after) = rest.split_once(TABLE[1]).expect("a table ends");
    let mut table = "| value | default | meaning |\n| --- | --- | --- |\n".to_owned();
    for row in values::rows() {
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    let new = [before, TABLE[0], &table, TABLE[1], after].concat();
    assert_file_is_current(&path, &new, "cargo test -p lockkeeper-crdgen");
}
