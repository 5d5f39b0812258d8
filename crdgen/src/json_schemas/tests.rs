#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn by_path() -> BTreeMap<String, Value> {
    files().into_iter().map(|it| (it.path, it.schema)).collect()
}

#[test]
fn schema_files_cover_all_kinds() {
    let all = by_path();
    let paths: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            "catalog.json",
            "lockkeeper-config.json",
            "lockkeeper.dev/clusterqueue_v1alpha1.json",
            "lockkeeper.dev/cohort_v1alpha1.json",
            "lockkeeper.dev/jobkind_v1alpha1.json",
            "lockkeeper.dev/localqueue_v1alpha1.json",
            "lockkeeper.dev/resourceflavor_v1alpha1.json",
            "lockkeeper.dev/workload_v1alpha1.json",
            "openapi.json",
        ]
    );
    for entry in all["catalog.json"]["schemas"].as_array().unwrap() {
        assert!(all.contains_key(entry["url"].as_str().unwrap()), "{entry}");
    }
}

/// The findings of a schema in an object.
fn findings(schema: &Value, object: &Value) -> Vec<String> {
    let validator = jsonschema::draft7::new(schema).unwrap();
    validator
        .iter_errors(object)
        .map(|it| format!("{}: {it}", it.instance_path()))
        .collect()
}

/// The objects of the examples that are good, each with the schema of its kind.
#[test]
fn schemas_accept_examples_and_reject_misspelt_fields() {
    let all = by_path();
    let mut count = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/good");
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            let kind = object["kind"].as_str().unwrap().to_lowercase();
            let Some(schema) = all.get(&format!("lockkeeper.dev/{kind}_v1alpha1.json")) else {
                continue;
            };
            assert_eq!(findings(schema, &object), Vec::<String>::new(), "{object}");
            object["spec"]["misspelt"] = true.into();
            assert_eq!(findings(schema, &object).len(), 1, "{object}");
            count += 1;
        }
    }
    assert!(count > 5, "{count} objects");
}

#[test]
fn printed_configuration_matches_schema() {
    let all = by_path();
    let schema = &all["lockkeeper-config.json"];
    let config = serde_json::to_value(Config::default()).unwrap();
    assert_eq!(findings(schema, &config), Vec::<String>::new());
    assert_eq!(findings(schema, &json!({"webhok": {}})).len(), 1);
}

#[test]
fn open_api_references_resolve() {
    let document = &by_path()["openapi.json"];
    let text = document.to_string();
    let mut references = 0;
    for rest in text.split("\"$ref\":\"#").skip(1) {
        let pointer = rest.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
        references += 1;
    }
    assert_eq!(references, 6 * 5);
}
