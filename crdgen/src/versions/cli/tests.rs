#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use crate::cli::{Command, Outcome, outcome};
use clap::Parser;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use tempfile::TempDir;

/// As in the binaries, each command has a `--version`.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A definition that stores v1beta1, of which v1alpha1 may be served.
fn definition(name: &str, is_served: bool, stored: Option<Value>) -> String {
    let version = |version: &str, served: bool, storage: bool| {
        json!({"name": version, "served": served, "storage": storage,
               "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut out = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": name},
                 "versions": [version("v1alpha1", is_served, false), version("v1beta1", true, true)]},
    });
    if let Some(stored) = stored {
        out["status"] =
            json!({"storedVersions": stored, "acceptedNames": {"kind": "Thing", "plural": name}});
    }
    out.to_string()
}

/// The exit code and the output of a command, with this file in place of `CRD`.
fn run_crdgen(text: &str, words: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("crd.yaml");
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let words = words.iter().map(|it| if *it == "CRD" { path } else { it });
    let line = Line::try_parse_from(["crdgen"].into_iter().chain(words)).unwrap();
    let mut out = Vec::new();
    let (code, output) = match outcome(line.command, &mut out) {
        Ok(Outcome::Done) => (0, String::from_utf8(out).unwrap()),
        Ok(Outcome::Findings) => (1, String::from_utf8(out).unwrap()),
        Err(error) => (error.exit_code(), format!("error: {error}\n")),
    };
    format!("exit code {code}\n{}", output.replace(path, "CRD"))
}

/// The complete output for some definitions, in both formats.
fn transcript(cases: &[(&str, String)], words: &[&str]) -> String {
    let mut out = String::new();
    for (title, text) in cases {
        for output in ["human", "json"] {
            let words = [words, &["--output", output]].concat();
            writeln!(out, "# {title}, {output}\n{}", run_crdgen(text, &words)).unwrap();
        }
    }
    out
}

#[test]
fn migration_is_printed_for_other_stored_versions() {
    let both = [
        definition("things", true, Some(json!(["v1alpha1", "v1beta1"]))),
        definition("others", true, Some(json!(["v1beta1"]))),
    ];
    let cases = [
        ("two definitions", both.join("\n---\n")),
        ("no status", definition("things", true, None)),
    ];
    insta::assert_snapshot!(transcript(&cases, &["migration", "CRD"]));
}

#[test]
fn removal_reports_all_blockers() {
    let cases = [
        (
            "it may go",
            definition("things", false, Some(json!(["v1beta1"]))),
        ),
        (
            "stored once and served",
            definition("things", true, Some(json!(["v1alpha1", "v1beta1"]))),
        ),
        ("no status", definition("things", false, None)),
        ("no definition", "kind: List\n".to_owned()),
    ];
    insta::assert_snapshot!(transcript(&cases, &["check-removal", "CRD", "v1alpha1"]));
}

#[test]
fn stored_flag_replaces_missing_status() {
    let text = definition("things", false, None);
    let removal = |stored: &str| {
        run_crdgen(
            &text,
            &["check-removal", "CRD", "v1alpha1", "--stored", stored],
        )
    };
    assert_eq!(
        removal("v1beta1"),
        "exit code 0\nthings.example.com: v1alpha1 can be removed\n"
    );
    assert!(removal("v1beta1,v1alpha1").starts_with("exit code 1\n"));
    let migration = run_crdgen(&text, &["migration", "CRD", "--stored", "v1beta1"]);
    assert!(!migration.contains("kind:"), "{migration}");
}

#[test]
fn undecided_removal_is_error() {
    let text = definition("things", false, Some(json!(["v1beta1"])));
    for (words, expected) in [
        (
            ["check-removal", "CRD", "v2"],
            "things.example.com has no version v2, only v1alpha1, v1beta1; give one of these",
        ),
        (
            ["check-removal", "no/such", "v2"],
            "cannot read no/such: No such file or directory (os error 2); name a file, a folder, - or a revision of git",
        ),
        (["check-removal", "CRD", "v1beta1"], ""),
    ] {
        let output = run_crdgen(&text, &words);
        if expected.is_empty() {
            assert!(
                output.starts_with("exit code 1\nthings.example.com stores v1beta1; "),
                "{output}"
            );
        } else {
            assert_eq!(output, format!("exit code 2\nerror: {expected}\n"));
        }
    }
}
