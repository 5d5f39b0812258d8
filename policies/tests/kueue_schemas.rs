//! Compares the built-in schemas of Kueue's kinds with Kueue's CRDs.
//! `UPDATE_SCHEMAS=1 cargo test -p lockkeeper-policies --test kueue_schemas` rewrites them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use lockkeeper_policies::kueue;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folder with Kueue's CRDs, if it exists.
fn definitions() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let given = env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(|it| here.join(it));
    let all = [given, Some(here.join("../shared/data"))];
    let mut folders = all.into_iter().flatten().map(|it| it.join("crds"));
    folders.find(|it| it.is_dir())
}

/// A schema without parts that no check uses: descriptions, and the thousands of fields of pod templates, which have
/// their own type.
fn lean(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter(|(key, value)| !(*key == "description" && value.is_string()));
            let fields = fields.map(|(key, value)| {
                let value = if key == "template" && is_of_pods(value) {
                    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
                } else {
                    lean(value)
                };
                (key.clone(), value)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(lean).collect(),
        other => other.clone(),
    }
}

fn is_of_pods(schema: &Value) -> bool {
    schema
        .pointer("/properties/spec/properties/containers")
        .is_some()
}

#[test]
fn bundled_schemas_match_kueue_crds() {
    let Some(folder) = definitions() else {
        eprintln!("Kueue's definitions are not at hand");
        return;
    };
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let crd: Value = serde_saphyr::from_str(&text).unwrap();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
        let mut versions = Map::new();
        for version in crd["spec"]["versions"].as_array().unwrap() {
            let name = version["name"].as_str().unwrap().to_owned();
            versions.insert(name, lean(&version["schema"]["openAPIV3Schema"]));
        }
        let made = serde_json::to_string_pretty(&Value::Object(versions)).unwrap() + "\n";
        let kept = Path::new(env!("CARGO_MANIFEST_DIR"));
        let kept = kept
            .join("src/kueue/schemas")
            .join(format!("{plural}.json"));
        if env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&kept, &made).unwrap();
        }
        let built_in = fs::read_to_string(&kept).unwrap_or_default();
        assert!(made == built_in, "{} is behind", kept.display());
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn fast_path_covers_kueue_queue_cohort_flavor_rules() {
    for kind in ["ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue"] {
        for version in ["v1beta1", "v1beta2"] {
            if let Some(structure) = kueue::structural_schema(kind, version) {
                let (simple, all) = structure.fast_expression_counts();
                assert_eq!(simple, all, "{kind} {version}");
            }
        }
    }
}
