//! The tree as a reader meets it: file sizes, words, pages and papers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest file, without its tests, in lines.
const FILE_LINES_MAX: usize = 500;

/// The longest rule, in lines.
const RULE_LINES_MAX: usize = 200;

/// Words that have a better one in this field.
const FORBIDDEN_WORDS: &[(&str, &str)] = &[
    ("evictee", "victim"),
    ("headcount", "count"),
    ("wl_", "workload_"),
];

const CRATES: &[&str] = &[
    "api",
    "preemption",
    "snapshot",
    "policies",
    "webhook",
    "controller",
    "crdgen",
    "cli",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn files(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, out);
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
}

fn sources(extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for name in CRATES {
        files(&root().join(name).join("src"), extension, &mut out);
    }
    files(&root().join("tests"), extension, &mut out);
    assert!(!out.is_empty());
    out
}

#[test]
fn source_files_stay_below_line_limit() {
    for path in sources("rs") {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap();
        let lines = code.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines", path.display());
        if path.with_extension("md").exists() {
            assert!(lines <= RULE_LINES_MAX, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn suppressions_are_read_only_by_check() {
    for path in sources("rs") {
        let text = fs::read_to_string(&path).unwrap();
        let of = path.strip_prefix(root()).unwrap();
        let may = ["cli", "policies", "tests"]
            .iter()
            .any(|it| of.starts_with(it));
        let reads = text.contains("suppression") || text.contains("lockkeeper.dev/ignore");
        assert!(may || !reads, "{}: it knows of suppressions", of.display());
    }
}

#[test]
fn sources_use_no_forbidden_words() {
    for path in sources("rs") {
        if path.ends_with("tests/tidy.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        for (word, better) in FORBIDDEN_WORDS {
            assert!(
                !text.contains(word),
                "{}: {word}, better {better}",
                path.display()
            );
        }
    }
}

#[test]
fn every_rule_page_belongs_to_a_rule() {
    // A rule for several kinds has one page.
    let pages: BTreeSet<&str> = lockkeeper_policies::registry::all()
        .iter()
        .map(|rule| rule.doc)
        .collect();
    let mut found = Vec::new();
    files(&root().join("policies/src"), "md", &mut found);
    for path in &found {
        let text = fs::read_to_string(path).unwrap();
        assert!(
            pages.contains(text.as_str()),
            "{}: no rule has this page",
            path.display()
        );
    }
    assert_eq!(found.len(), pages.len());
}

#[test]
fn project_documents_are_complete() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect(name);
    let architecture = read("ARCHITECTURE.md");
    for name in CRATES {
        let start = architecture.find(&format!("### {name}/")).expect(name);
        let section = &architecture[start..];
        let end = section[1..].find("\n### ").unwrap_or(section.len() - 1);
        assert!(
            section[..=end].contains("Must not know"),
            "{name} says what it must not know"
        );
    }
    assert!(read("CHANGELOG.md").contains("## Unreleased"));
    assert!(read("LICENSE").contains("Apache License"));
    assert!(read("README.md").contains("cargo run --release -- serve"));
    assert!(read("README.md").contains("tests/run"));
    assert!(read("CONTRIBUTING.md").contains("first rule in fifteen minutes"));
}

/// The README shows what kubectl prints: the end-to-end tests hold the snapshot, this the copy.
#[test]
fn readme_shows_actual_output() {
    let snapshot = root().join("tests/e2e/snapshots/bad--cq001-borrow-without-reclaim.snap");
    let snapshot = fs::read_to_string(snapshot).unwrap();
    let printed = snapshot.lines().last().unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(printed), "{printed}");
}
