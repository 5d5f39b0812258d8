//! The tables of docs/metrics.md match the exposed metrics.

use lockkeeper_api::config::Config;
use lockkeeper_policies::registry;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules;
use lockkeeper_testkit::assert_file_is_current;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use crate::app;

/// Returns the documentation of the metrics as two tables.
fn described(text: &str) -> String {
    let mut metrics: Vec<(String, String, String)> = Vec::new();
    let mut labels: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut help = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            rest.split_once(' ').unwrap().1.clone_into(&mut help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            metrics.push((name.to_owned(), kind.to_owned(), help.clone()));
        } else if let Some((_, rest)) = line.split_once('{') {
            let of = labels.entry(metrics.last().unwrap().0.clone()).or_default();
            for pair in rest.split_once('}').unwrap().0.split(',') {
                let (label, value) = pair.split_once('=').unwrap();
                let values = of.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    metrics.sort();
    let mut out = String::from("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n");
    let mut values: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (name, kind, help) in &metrics {
        let of = labels.get(name).into_iter().flatten();
        let of: Vec<_> = of.filter(|(label, _)| *label != "le").collect();
        for (label, known) in &of {
            let known = placeholder(label, known);
            values
                .entry(label)
                .or_default()
                .entry(known)
                .or_default()
                .push(name);
        }
        let of: Vec<String> = of.iter().map(|(label, _)| format!("`{label}`")).collect();
        writeln!(out, "| `{name}` | {kind} | {} | {help} |", of.join(", ")).unwrap();
    }
    out.push_str("\n| label | values |\n| --- | --- |\n");
    for (label, known) in values {
        let differs = known.len() > 1;
        for (known, names) in known {
            let of = if differs {
                format!(" of `{}`", names.join("`, `"))
            } else {
                String::new()
            };
            writeln!(out, "| `{label}`{of} | {known} |").unwrap();
        }
    }
    out
}

/// Returns settings with one user rule.
fn settings_with_user_rule(config: &Value) -> Settings {
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    let text = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: Pod}]\nvalidations: [{expression: 'true'}]\n---\n";
    let source = user_rules::Source {
        name: "a.md".to_owned(),
        text: text.to_owned(),
    };
    let rules = Arc::new(
        user_rules::UserRules::parse(&[source], &lockkeeper_policies::registry::all()).unwrap(),
    );
    registry::settings_with(&config, rules).unwrap()
}

fn placeholder(label: &str, known: &BTreeSet<String>) -> String {
    match label {
        "version" => "the version of lockkeeper".to_owned(),
        "rule" => "the ids of all rules".to_owned(),
        "exception" => "the names of the exceptions".to_owned(),
        _ => {
            let known: Vec<String> = known.iter().map(|value| format!("`{value}`")).collect();
            known.join(", ")
        }
    }
}

/// `UPDATE_DOCS=1` updates the tables.
#[test]
fn documented_metrics_match_exposed_metrics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let old = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- begin generated -->\n\n", "\n<!-- end generated -->");
    let (head, rest) = old.split_once(begin).expect(begin);
    let (_, tail) = rest.split_once(end).expect(end);
    // These series exist only for configured rules and exceptions.
    let config = json!({"rules": {"exceptions": [
        {"rules": ["CQ007"], "selector": {"names": ["a"]}, "reason": "r", "expires": "9999-12-31"},
    ]}});
    let named = app(&config);
    named.set_settings(settings_with_user_rule(&config));
    let tables = described(&named.metrics().prometheus());
    let new = format!("{head}{begin}{tables}{end}{tail}");
    let command = "cargo test -p lockkeeper-webhook --test metrics";
    assert_file_is_current(&path, &new, command);
}
