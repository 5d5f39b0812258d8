//! `docs/rules/` equals the pages of the rules, and every rule of the catalogue is covered.
//! `UPDATE_DOCS=1 cargo test -p lockkeeper-policies --test reference` rewrites the pages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use lockkeeper_policies::reference::{entries, file_name, index};
use lockkeeper_policies::registry;
use lockkeeper_testkit::assert_file_is_current;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rules")
}

#[test]
fn reference_pages_are_up_to_date() {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    pages.insert("README.md".to_owned(), index());
    for entry in entries() {
        let text = entry.rule.doc.to_owned();
        pages.insert(file_name(&entry.rule), text);
    }
    for (name, text) in &pages {
        let command = "cargo test -p lockkeeper-policies --test reference";
        assert_file_is_current(&folder().join(name), text, command);
    }
    let there = fs::read_dir(folder()).unwrap();
    let there = there.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut there: BTreeSet<String> = there.collect();
    assert!(there.remove("not-covered.md"));
    let names: BTreeSet<String> = pages.keys().cloned().collect();
    assert_eq!(there, names);
}

#[test]
fn catalogue_rows_are_all_covered() {
    let rows: BTreeSet<&str> = include_str!("rows.txt").lines().collect();
    let mut covered: BTreeSet<String> = BTreeSet::new();
    for rule in registry::all() {
        covered.extend(rule.covers.iter().map(|it| (*it).to_owned()));
    }
    let text = fs::read_to_string(folder().join("not-covered.md")).unwrap();
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut left_out = BTreeSet::new();
    for row in named {
        assert!(
            rows.contains(row),
            "not-covered.md names {row}, which there is not"
        );
        assert!(
            !covered.contains(row),
            "{row} is covered, and not-covered.md says it is not"
        );
        assert!(left_out.insert(row), "not-covered.md names {row} twice");
    }
    let lost: Vec<&&str> = rows
        .iter()
        .filter(|row| !covered.contains(**row) && !left_out.contains(**row))
        .collect();
    assert!(
        lost.is_empty(),
        "neither covered nor named in not-covered.md: {lost:?}"
    );
}
