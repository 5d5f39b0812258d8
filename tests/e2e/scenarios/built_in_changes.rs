//! The API server rejects the changes that `check --old` rejects.

use std::collections::BTreeSet;
use std::fs;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use super::Scenario;
use crate::ROOT;
use crate::fixture::Fixture;
use crate::lockkeeper::{self, Protocol};

pub fn scenarios() -> Vec<Scenario> {
    let name = "check and the API server reject the same changes of built-in kinds";
    vec![
        Scenario::new(name, same_changes_are_rejected)
            .only(Protocol::Http1)
            .since(37),
    ]
}

/// A change, as in `tests/samples/built_in_changes.yaml`.
#[derive(Deserialize)]
struct Case {
    name: String,
    old: Value,
    patch: Value,
    fields: Vec<String>,
}

fn same_changes_are_rejected(stage: &mut Fixture, _: Protocol) {
    let kubectl = stage.without_webhook_and_rules();
    let text = fs::read_to_string(format!("{ROOT}/tests/samples/built_in_changes.yaml")).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&text).unwrap();
    let folder = TempDir::new().unwrap();
    for case in cases {
        let mut new = case.old.clone();
        json_patch::merge(&mut new, &case.patch);
        let (old, new) = (case.old.to_string(), new.to_string());
        // The cluster keeps objects of earlier trials, and a cluster-scoped one can have the name of the sample.
        let remove = [
            "delete",
            "--ignore-not-found",
            "--wait=false",
            "--force",
            "-f",
            "-",
        ];
        kubectl.with_input(&remove, &old).expect_accepted();
        kubectl.apply(&old, &[]).expect_accepted();
        let applied = kubectl.apply(&new, &["--dry-run=server"]);
        let is_accepted = applied.code == Some(0);
        assert_eq!(
            is_accepted,
            case.fields.is_empty(),
            "{}: {}",
            case.name,
            applied.stderr
        );
        for field in &case.fields {
            let cause = format!("{field}: ");
            assert!(
                applied.stderr.contains(&cause),
                "{}: {}",
                case.name,
                applied.stderr
            );
        }
        kubectl.with_input(&remove, &old).expect_accepted();

        let [old_file, file] = ["old.json", "new.json"].map(|it| folder.path().join(it));
        fs::write(&old_file, &old).unwrap();
        fs::write(&file, &new).unwrap();
        let flags = ["check", "--output", "json", "--select", "SC", "--old"];
        let paths = [old_file.to_str().unwrap(), file.to_str().unwrap()];
        let output = lockkeeper::run(&[&flags[..], &paths].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let found: BTreeSet<&str> = findings.map(|it| it["field"].as_str().unwrap()).collect();
        let expected: BTreeSet<&str> = case.fields.iter().map(String::as_str).collect();
        assert_eq!(found, expected, "{}: {report:#}", case.name);
    }
}
