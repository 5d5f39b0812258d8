#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use lockkeeper_policies::settings::Settings;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    schema: Value,
    #[serde(default)]
    status: bool,
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("cases.yaml")).unwrap()
}

fn definition(versions: &Value) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": versions,
        },
    }))
    .unwrap()
}

fn version(case: &Case) -> Value {
    let subresources = if case.status {
        json!({"status": {}})
    } else {
        json!({})
    };
    json!({
        "name": "v1", "served": true, "storage": true, "subresources": subresources,
        "schema": {"openAPIV3Schema": case.schema},
    })
}

/// The paths in `text`, which has lines such as `  path: message` under the name of each case.
fn paths(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        match line.strip_prefix("  ") {
            None => name = line,
            Some(problem) => {
                let path = problem.split(": ").next().unwrap();
                all.entry(name).or_default().insert(path);
            }
        }
        all.entry(name).or_default();
    }
    all
}

/// `apiserver.txt` has the results of the API server's own library for the same cases; `tests/apiserver/run` writes it.
#[test]
fn rejections_match_api_server_paths() {
    let mut out = String::new();
    for case in cases() {
        let found = check(&definition(&json!([version(&case)])));
        writeln!(out, "{}", case.name).unwrap();
        let error = found.err();
        for problem in error.iter().flat_map(|it| it.problems.iter()) {
            let text = problem
                .text()
                .replace("spec.versions[0].schema.openAPIV3Schema", "…");
            writeln!(out, "  {text}").unwrap();
        }
    }
    let (ours, theirs) = (paths(&out), paths(include_str!("apiserver.txt")));
    for (name, paths) in &ours {
        assert_eq!(paths, &theirs[name], "{name}");
        assert_eq!(paths.is_empty(), name.starts_with("fine"), "{name}");
    }
    assert_eq!(ours.len(), theirs.len());
    insta::assert_snapshot!(out);
}

#[test]
fn versions_have_unique_names_and_one_stored() {
    let case = &cases()[0];
    let twice = definition(&json!([version(case), version(case)]));
    assert_eq!(
        check(&twice).unwrap_err().to_string(),
        "the API server would reject things.example.com: spec.versions: Invalid value: must contain unique version \
         names; spec.versions: Invalid value: must have exactly one version marked as storage version"
    );
    let none = definition(&json!([{"name": "v1", "served": true, "storage": true}]));
    assert_eq!(
        check(&none).unwrap_err().problems.to_string(),
        "spec.versions[0].schema.openAPIV3Schema: Required value: must be given"
    );
}

#[test]
fn lockkeeper_definitions_are_structural() {
    for definition in crate::definitions(&Settings::default()).unwrap() {
        assert_eq!(check(&definition), Ok(()));
    }
}

/// Accepts schemas in daily use: `policies` has the schemas of Kueue's kinds.
#[test]
fn kueue_schemas_are_structural() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/src/kueue/schemas");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let versions: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        for schema in versions.into_values() {
            let case = Case {
                name: "Kueue".to_owned(),
                schema,
                status: true,
            };
            assert_eq!(check(&definition(&json!([version(&case)]))), Ok(()));
            count += 1;
        }
    }
    assert_eq!(count, 12);
}
