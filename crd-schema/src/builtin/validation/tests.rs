//! Objects that an API server has accepted and stored are valid.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `crdcheck/`; without it `../shared/data`. Without data the test
//! passes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use super::validate;
use serde_json::Value;
use std::path::PathBuf;
use std::{env, fs};

fn cases() -> Vec<Value> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = match env::var_os("LOCKKEEPER_CONFORMANCE_DIR") {
        Some(folder) => here.join(folder),
        None => here.join("../shared/data"),
    };
    let text = fs::read_to_string(folder.join("crdcheck/cases/builtin.jsonl"));
    let text = text.unwrap_or_default();
    let cases = text
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    let is_scored = |it: &Value| {
        it.get("environment").is_none()
            && it["kind"] != "CustomResourceDefinition"
            && it.get("object").is_some()
            && matches!(it["stage"].as_str(), Some("accepted" | "validate"))
    };
    cases.filter(is_scored).collect()
}

/// Objects of answers have their defaults. They are valid, also as an update of themselves.
#[test]
fn validate_defaulted_object_has_no_causes() {
    let mut total = 0;
    let mut differences = Vec::new();
    for case in cases() {
        let Some(object) = case
            .get("defaulted")
            .filter(|_| case["stage"] == "accepted")
        else {
            continue;
        };
        let kind = case["kind"].as_str().unwrap();
        // The recorder took generated labels out of Jobs.
        if kind == "Job" {
            continue;
        }
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split_once('/').map_or("", |it| it.0);
        let stored = case
            .get("oldObject")
            .filter(|_| case["operation"] == "UPDATE");
        for old in [stored, Some(object)] {
            total += 1;
            let findings = validate(group, kind, object, old);
            if !findings.is_empty() {
                let texts: Vec<String> =
                    findings.iter().map(crate::finding::Finding::text).collect();
                differences.push(format!("{} {texts:?}", case["id"]));
            }
        }
    }
    println!("defaulted {} of {total}", total - differences.len());
    assert_eq!(differences, Vec::<String>::new());
}
