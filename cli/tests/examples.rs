//! The documentation shows the actual findings of the examples.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_doctor::CHECKS;
use lockkeeper_testkit::assert_file_is_current;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const HEAD: &str = "\
# The examples, checked

[examples/good](../examples/good) is right and [examples/bad](../examples/bad) has one mistake in each file, as the
pages of the [rules](rules/README.md) have them; [examples/mistakes](../examples/mistakes) are those that people
publish. `UPDATE_DOCS=1 cargo test --package lockkeeper --test examples` writes this page.

```console
$ lockkeeper check examples
";

#[test]
fn example_findings_match_documentation() {
    let output = Command::new(env!("CARGO_BIN_EXE_lockkeeper"))
        .args(["check", "examples"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let page = format!("{HEAD}{printed}```\n");
    let file = Path::new(ROOT).join("docs/check-examples.md");
    let command = "cargo test -p lockkeeper --test examples";
    assert_file_is_current(&file, &page, command);
    // One example has a duplicate key, so it cannot be read.
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn explain_page_shows_actual_output() {
    check_page("docs/explain.md");
}

#[test]
fn diff_page_shows_actual_output() {
    check_page("docs/diff.md");
}

#[test]
fn kueue_page_shows_actual_output() {
    check_page("docs/kueue.md");
}

#[test]
fn doctor_page_shows_actual_output() {
    check_page("docs/doctor.md");
}

#[test]
fn decision_log_page_shows_actual_output() {
    check_page("docs/decision-log.md");
}

#[test]
fn simulate_page_shows_actual_output() {
    check_page("docs/simulate.md");
}

#[test]
fn doctor_page_lists_all_checks() {
    let file = Path::new(ROOT).join("docs/doctor.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once("<!-- checks -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- /checks -->").unwrap();
    let mut table =
        "| check | severity | finding | source |\n| --- | --- | --- | --- |\n".to_owned();
    for check in CHECKS {
        let (id, severity, title, source) =
            (check.id, check.severity.name(), check.title, check.source);
        writeln!(table, "| {id} | {severity} | {title} | <{source}> |").unwrap();
    }
    let current = format!("{head}<!-- checks -->\n{table}<!-- /checks -->{tail}");
    let command = "cargo test -p lockkeeper --test examples";
    assert_file_is_current(&file, &current, command);
}

/// Every console block of a page has the output of its commands.
#[track_caller]
fn check_page(page: &str) {
    let file = Path::new(ROOT).join(page);
    let page = std::fs::read_to_string(&file).unwrap();
    let mut blocks = page.split("```console\n");
    let mut current = blocks.next().unwrap().to_owned();
    let mut commands = 0;
    for block in blocks {
        let (block, rest) = block.split_once("```").unwrap();
        current.push_str("```console\n");
        for command in block.lines().filter_map(|it| it.strip_prefix("$ ")) {
            writeln!(current, "$ {command}").unwrap();
            current.push_str(&run_documented(command));
            commands += 1;
        }
        write!(current, "```{rest}").unwrap();
    }
    assert!(commands >= 2, "{commands} commands");
    let command = "cargo test -p lockkeeper --test examples";
    assert_file_is_current(&file, &current, command);
}

/// The output of a command of the documentation, standard error included.
fn run_documented(command: &str) -> String {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("lockkeeper"), "{command}");
    let output = Command::new(env!("CARGO_BIN_EXE_lockkeeper"))
        .args(words)
        .current_dir(ROOT)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8(printed).unwrap()
}

/// Checked together with the bad examples, some good ones have findings; on their own they have none.
#[test]
fn good_examples_have_no_findings() {
    let output = Command::new(env!("CARGO_BIN_EXE_lockkeeper"))
        .args(["check", "examples/good", "--fail-on", "warning"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
}
