//! Objects that an API server has accepted and stored are valid.
//!
//! Without recorded answers the test passes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::validate;
use crate::builtin::recorded_cases;
use serde_json::Value;

fn cases() -> Vec<Value> {
    let is_scored = |it: &Value| {
        it.get("object").is_some() && matches!(it["stage"].as_str(), Some("accepted" | "validate"))
    };
    recorded_cases::cases()
        .into_iter()
        .filter(is_scored)
        .collect()
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
