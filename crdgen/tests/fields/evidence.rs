//! Checks that the tests that a row names exist.
//!
//! A reference has one of three forms: `` `file::function` `` for a test function, `` `file`: "title" `` for an
//! end-to-end trial, and `[ID](rules/page.md)` for a rule, whose page has examples that a test of the policies runs.

use crate::document::{Row, SECTION_WITHOUT_EFFECT};
use crate::root;
use std::fs;

/// The problems of a row.
pub(crate) fn faults(row: &Row) -> Vec<String> {
    let mut out = Vec::new();
    if !row.effect.ends_with('.') {
        out.push(format!("{}: the effect is not a sentence", row.name));
    }
    for reference in &row.references {
        // A field without effect need not have a rule that warns.
        let is_exempt = row.section == SECTION_WITHOUT_EFFECT && reference == "none";
        if !is_exempt && let Err(problem) = check(reference) {
            out.push(format!("{}: {reference}: {problem}", row.name));
        }
    }
    out
}

fn check(reference: &str) -> Result<(), &'static str> {
    if let Some((id, page)) = reference
        .strip_prefix('[')
        .and_then(|it| it.strip_suffix(')'))
        .and_then(|it| it.split_once("](rules/"))
    {
        let exists = root().join("docs/rules").join(page).is_file();
        return if exists && page.starts_with(id) {
            Ok(())
        } else {
            Err("no such rule")
        };
    }
    if let Some((file, title)) = reference
        .strip_prefix('`')
        .and_then(|it| it.strip_suffix('"'))
        .and_then(|it| it.split_once("`: \""))
    {
        if !file.starts_with("tests/e2e/scenarios/") {
            return Err("not a file of end-to-end trials");
        }
        let text = read(file)?;
        return if text.contains(&format!("\"{title}\"")) {
            Ok(())
        } else {
            Err("the file has no such trial")
        };
    }
    let path = reference
        .strip_prefix('`')
        .and_then(|it| it.strip_suffix('`'));
    let (file, function) = path
        .and_then(|it| it.split_once("::"))
        .ok_or("not a reference to a test")?;
    if has_test(&read(file)?, function) {
        Ok(())
    } else {
        Err("the file has no such test")
    }
}

fn read(file: &str) -> Result<String, &'static str> {
    fs::read_to_string(root().join(file)).map_err(|_| "no such file")
}

/// Whether a source has this function with an attribute of a test.
fn has_test(source: &str, function: &str) -> bool {
    let start = format!("fn {function}(");
    let mut attributes: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            attributes.push(line);
        } else if line
            .strip_prefix("async ")
            .unwrap_or(line)
            .starts_with(&start)
        {
            let is_test = |it: &&str| it.starts_with("#[test]") || it.starts_with("#[tokio::test");
            return attributes.iter().any(is_test);
        } else if !line.starts_with("//") {
            attributes.clear();
        }
    }
    false
}

#[test]
fn references_to_missing_tests_are_reported() {
    let this = "crdgen/tests/fields/evidence.rs";
    let trials = "tests/e2e/scenarios/control/limits.rs";
    for (reference, expected) in [
        (
            format!("`{this}::references_to_missing_tests_are_reported`"),
            Ok(()),
        ),
        (
            format!("`{this}::has_test`"),
            Err("the file has no such test"),
        ),
        (
            format!("`{trials}`: \"an excluded resource needs no quota\""),
            Ok(()),
        ),
        (
            format!("`{trials}`: \"no such title\""),
            Err("the file has no such trial"),
        ),
        ("`gone.rs::has_test`".to_owned(), Err("no such file")),
        (
            "[WL011](rules/WL011-unknown-pod-group.md)".to_owned(),
            Ok(()),
        ),
        ("[WL011](rules/README.md)".to_owned(), Err("no such rule")),
        (String::new(), Err("not a reference to a test")),
    ] {
        assert_eq!(check(&reference), expected, "{reference}");
    }
}
