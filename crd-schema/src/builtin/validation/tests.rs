//! Compares causes with recorded answers of an API server.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `crdcheck/`; without it `../shared/data`. Without data the test
//! passes. `CRDCHECK_FAILURES` is the number of differences that are printed, `CRDCHECK_KIND` the only kind.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use super::validate;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs};

/// The least agreement in percent.
const FLOOR_PERCENT: usize = 99;

type Pairs = BTreeSet<(String, String)>;

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

fn expected(case: &Value) -> Pairs {
    let causes = case["outcome"]["causes"].as_array().into_iter().flatten();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    causes
        .map(|it| (text(&it["field"]), text(&it["reason"])))
        .collect()
}

fn actual(case: &Value) -> Pairs {
    let version = case["object"]["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |it| it.0);
    let kind = case["kind"].as_str().unwrap();
    let old = case
        .get("oldObject")
        .filter(|_| case["operation"] == "UPDATE");
    let findings = validate(group, kind, &case["object"], old);
    let pairs = findings.iter();
    pairs
        .map(|it| (it.field.to_string(), it.kind.reason().to_owned()))
        .collect()
}

#[test]
fn validate_recorded_object_has_causes_of_api_server() {
    let limit = env::var("CRDCHECK_FAILURES")
        .ok()
        .and_then(|it| it.parse().ok());
    let mut limit: usize = limit.unwrap_or(20);
    let only = env::var("CRDCHECK_KIND").ok();
    let mut scores: BTreeMap<(String, String), (usize, usize)> = BTreeMap::new();
    let (mut agreed, mut total) = (0, 0);
    for case in cases() {
        let kind = case["kind"].as_str().unwrap().to_owned();
        if only.as_ref().is_some_and(|it| *it != kind) {
            continue;
        }
        let (expected, actual) = (expected(&case), actual(&case));
        let score = scores
            .entry((case["stage"].as_str().unwrap().to_owned(), kind))
            .or_default();
        score.1 += 1;
        total += 1;
        if expected == actual {
            score.0 += 1;
            agreed += 1;
        } else if limit > 0 {
            limit -= 1;
            println!(
                "{} ({} {})\n    missing {:?}\n    unexpected {:?}",
                case["id"],
                case["mutation"],
                case["path"],
                expected.difference(&actual).collect::<Vec<_>>(),
                actual.difference(&expected).collect::<Vec<_>>(),
            );
        }
    }
    for ((stage, kind), (agreed, total)) in &scores {
        println!("{stage:9} {kind:32} {agreed:4} of {total}");
    }
    println!("all       {agreed} of {total}");
    assert!(agreed * 100 >= total * FLOOR_PERCENT, "{agreed} of {total}");
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
