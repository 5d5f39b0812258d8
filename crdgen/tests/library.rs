//! The kinds of others: the example is compiled and run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[path = "../examples/foreign.rs"]
#[expect(dead_code, reason = "its main is not called")]
mod foreign;

use foreign::generator;
use lockkeeper_crdgen::generator::{Error, Outcome, crd, unbounded};
use std::fs;
use tempfile::TempDir;

fn run(words: &[&str]) -> (Outcome, String) {
    let mut out = Vec::new();
    let words = [&["foreign"], words].concat();
    let outcome = generator().run(words, &mut out).unwrap().unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn foreign_kind_has_structural_schema() {
    let (outcome, text) = run(&[]);
    assert_eq!(outcome, Outcome::Done);
    insta::assert_snapshot!(text);
}

#[test]
fn generator_writes_checks_and_compares_files() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("crds");
    let shown = directory.to_str().unwrap();
    let file = directory.join("example.com_reservations.yaml");

    let (outcome, text) = run(&["--check", shown]);
    assert_eq!(outcome, Outcome::Findings);
    let header = format!(
        "--- /dev/null\n+++ emitted for {}\n@@ -0,0 ",
        file.display()
    );
    assert!(text.starts_with(&header), "{text}");
    let end = format!(
        "\nout of date: 1 of the files in {shown}; rewrite them with --output-dir {shown}\n"
    );
    assert!(text.ends_with(&end), "{text}");
    assert_eq!(
        run(&["--output-dir", shown]),
        (Outcome::Done, String::new())
    );
    assert_eq!(run(&["--check", shown]), (Outcome::Done, String::new()));
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, run(&[]).1);

    let (outcome, text) = run(&["changes", shown]);
    assert_eq!(outcome, Outcome::Done);
    assert!(text.starts_with("0 breaking, "), "{text}");
    fs::write(&file, written.replace("maximum: 5000", "maximum: 6000")).unwrap();
    let (outcome, text) = run(&["--check", shown]);
    assert_eq!(outcome, Outcome::Findings);
    for line in [
        "--- ",
        "-                maximum: 6000\n",
        "+                maximum: 5000\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.ends_with(&end), "{text}");
    for words in [&["changes", shown][..], &["diff", shown, "NEW"]] {
        let new = folder.path().join("new");
        generator().write_to(&new).unwrap();
        let words: Vec<&str> = words
            .iter()
            .map(|word| {
                if *word == "NEW" {
                    new.to_str().unwrap()
                } else {
                    word
                }
            })
            .collect();
        let (outcome, text) = run(&words);
        assert_eq!(outcome, Outcome::Findings);
        assert!(
            text.contains("v1 spec.nodes: maximum is 5000, it was 6000 [CD054 bound-tightened]"),
            "{text}"
        );
    }
}

#[test]
fn unbounded_paths_are_listed() {
    let (outcome, text) = run(&["unbounded"]);
    assert_eq!(outcome, Outcome::Findings);
    assert_eq!(
        text,
        "reservations.example.com v1 spec.selector[].value: give it a bound\n"
    );
    let definition = crd::<foreign::Reservation>().unwrap();
    assert_eq!(unbounded(&definition).len(), 1);
    let ours = lockkeeper_crdgen::plain_definitions();
    let ours: Vec<_> = ours
        .iter()
        .flat_map(unbounded)
        .map(|(_, path)| path.to_string())
        .collect();
    assert_eq!(ours, [""; 0]);
}

mod mixed {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    /// A kind that no CRD can say.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Mixed",
        plural = "mixeds"
    )]
    pub struct MixedSpec {
        /// A number or a list.
        pub value: Either,
    }

    /// One or the other.
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(untagged)]
    pub enum Either {
        /// A number.
        One(i32),
        /// A list.
        Many(Vec<i32>),
    }
}

#[test]
fn non_structural_kind_is_rejected_with_path() {
    let folder = TempDir::new().unwrap();
    let generator = generator().kind::<mixed::Mixed>();
    let error = generator.write_to(folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotStructural(_)), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with(
            "the API server would reject mixeds.example.com: \
             spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[value]."
        ),
        "{message}"
    );
}
