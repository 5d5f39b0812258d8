//! `lockkeeper rules test`: runs the fixtures of pages.

use super::{Output, format_json};
use crate::Failure;
use crate::user_rules::{RuleDirs, compile};
use anyhow::anyhow;
use clap::Args;
use lockkeeper_policies::user_rules::{FixtureResult, Outcome, Source, test_fixtures};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  all fixtures passed
  1  a fixture failed, or a page has none
  2  usage error, or a page is not a valid rule";

/// Flags of `lockkeeper rules test`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folders with pages of user rules (.md)
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// Returns the text to print and the exit code.
pub(super) fn run(arguments: &Arguments) -> Result<(String, u8), Failure> {
    let folders = RuleDirs::new(arguments.folders.clone());
    let pages = folders.pages().map_err(|it| Failure::Usage(it.into()))?;
    let rules = compile(&pages).map_err(|error| Failure::Usage(anyhow!("{error:#}")))?;
    let files = files_by_rule(&pages);
    let all = test_fixtures(&rules);
    let failed = all
        .iter()
        .filter(|it| it.outcome != Outcome::Passed)
        .count();
    let text = match arguments.output {
        Output::Human => {
            all.iter()
                .map(|it| format_result(it, &files))
                .collect::<String>()
                + &summary(all.len(), failed)
        }
        Output::Json => {
            let tests: Vec<Value> = all.iter().map(|it| result_json(it, &files)).collect();
            let summary = json!({"tests": all.len(), "failed": failed});
            format_json(&json!({"tests": tests, "summary": summary}))
        }
    };
    Ok((text, u8::from(failed > 0)))
}

/// The files by the ids of their rules, of pages that compile.
fn files_by_rule(pages: &[Source]) -> BTreeMap<String, &str> {
    let read = pages.iter().filter_map(|page| {
        let rule = lockkeeper_policies::user_rules::UserRule::parse(
            &page.text,
            &lockkeeper_policies::registry::all(),
        )
        .ok()?;
        Some((rule.id, page.name.as_str()))
    });
    read.collect()
}

fn location(tested: &FixtureResult, files: &BTreeMap<String, &str>) -> String {
    let file = files.get(&tested.rule).copied().unwrap_or_default();
    format!("{file}:{}", tested.line)
}

fn format_result(tested: &FixtureResult, files: &BTreeMap<String, &str>) -> String {
    let (place, fixture) = (location(tested, files), &tested.fixture);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = match &tested.outcome {
        Outcome::Passed => writeln!(out, "pass {place}: {fixture}"),
        Outcome::Broken(why) => writeln!(out, "FAIL {place}: {fixture}: {why}"),
        Outcome::Mismatch { expected, found } => {
            let lines = diff_findings(expected, found);
            writeln!(out, "FAIL {place}: {fixture}\n{lines}")
        }
    };
    out
}

/// Lines for the findings that only the page has (`-`), and those that only the rule has (`+`).
fn diff_findings(expected: &[String], found: &[String]) -> String {
    let mut unmatched: Vec<&String> = found.iter().collect();
    let mut out = Vec::new();
    for line in expected {
        match unmatched.iter().position(|it| *it == line) {
            Some(at) => {
                // Each found line matches one expected line, so that duplicates count.
                unmatched.remove(at);
                out.push(format!("  {line}"));
            }
            None => out.push(format!("- {line}")),
        }
    }
    out.extend(unmatched.iter().map(|line| format!("+ {line}")));
    out.join("\n")
}

fn summary(all: usize, failed: usize) -> String {
    let passed = all.saturating_sub(failed);
    format!("{passed} passed, {failed} failed\n")
}

fn result_json(tested: &FixtureResult, files: &BTreeMap<String, &str>) -> Value {
    let file = files.get(&tested.rule).copied().unwrap_or_default();
    let (passed, why, expected, found) = match &tested.outcome {
        Outcome::Passed => (true, None, None, None),
        Outcome::Broken(why) => (false, Some(why), None, None),
        Outcome::Mismatch { expected, found } => (false, None, Some(expected), Some(found)),
    };
    json!({
        "rule": tested.rule, "file": file, "line": tested.line, "fixture": tested.fixture, "passed": passed,
        "problem": why, "expected": expected, "found": found,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const FRONT: &str = "---\nid: TEAM001\nname: a\nkinds: [{version: v1, kind: ConfigMap}]\nvalidations:\n- {expression: object.data.n < 5, message: m, fieldPath: .data.n}\n---\n";
    const GOOD: &str = "```yaml good\ndata: {n: 4}\n```\n";

    #[track_caller]
    fn check(page: &str, output: Output) -> (String, u8) {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("a.md"), page).unwrap();
        let path = folder.path().to_owned();
        let shown = path.display().to_string();
        let arguments = Arguments {
            folders: vec![path],
            output,
        };
        match run(&arguments) {
            Ok((text, code)) => (text.replace(&format!("{shown}/"), ""), code),
            Err(Failure::Usage(error)) => (error.to_string().replace(&format!("{shown}/"), ""), 2),
            Err(Failure::Other(error)) => panic!("{error}"),
        }
    }

    fn bad(n: u8, finding: &str) -> String {
        format!("```yaml bad\ndata: {{n: {n}}}\n```\n```finding\n{finding}\n```\n")
    }

    #[test]
    fn failed_fixture_is_printed_with_diff() {
        let right = "TEAM001 data.n: Invalid value: 7: m [TEAM001]";
        let page = format!("{FRONT}{GOOD}{}{}", bad(7, right), bad(8, right));
        assert_eq!(
            check(&page, Output::Human),
            (
                "pass a.md:8: yaml good\npass a.md:11: yaml bad\nFAIL a.md:17: yaml bad\n\
                 - TEAM001 data.n: Invalid value: 7: m [TEAM001]\n\
                 + TEAM001 data.n: Invalid value: 8: m [TEAM001]\n2 passed, 1 failed\n"
                    .to_owned(),
                1
            )
        );
        let (text, code) = check(&page, Output::Json);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (code, &json["summary"]),
            (1, &json!({"tests": 3, "failed": 1}))
        );
        assert_eq!(json["tests"][2]["line"], 17);
        assert_eq!(
            json["tests"][2]["found"][0],
            "TEAM001 data.n: Invalid value: 8: m [TEAM001]"
        );
        let page = format!("{FRONT}{GOOD}{}", bad(7, right));
        assert_eq!(check(&page, Output::Human).1, 0);
    }

    #[test]
    fn broken_fixture_fails() {
        for (page, part, code) in [
            (
                FRONT.to_owned(),
                "FAIL a.md:8: page: a page has an example",
                1,
            ),
            (
                format!("{FRONT}{GOOD}```yaml bad\ndata: {{}}\n```\n"),
                "no block `finding` follows it",
                1,
            ),
            (
                format!("{FRONT}{GOOD}```yaml world\na: 1\n```\n"),
                "sees its object alone",
                1,
            ),
            (
                format!("{FRONT}```yaml good\n[\n```\n"),
                "FAIL a.md:8: yaml good: ",
                1,
            ),
            (
                format!("{FRONT}```yaml good\nkind: Pod\n```\n"),
                "does not hold for its apiVersion",
                1,
            ),
            (
                format!("{FRONT}```yaml good delete it\ndata: {{}}\n```\n"),
                "is no fixture",
                1,
            ),
            (
                FRONT.replace("TEAM001", "CQ001"),
                "a.md:2:5: the id \"CQ001\"",
                2,
            ),
        ] {
            let (text, actual) = check(&page, Output::Human);
            assert!(text.contains(part), "{text}");
            assert_eq!(actual, code, "{text}");
        }
    }

    #[test]
    fn exit_codes_are_documented() {
        for code in ["0", "1", "2"] {
            assert!(EXIT_CODES.contains(&format!("\n  {code}  ")));
        }
    }
}
