//! Files of a decision log as `lockkeeper replay` and `lockkeeper log show` find them.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../examples/decision-log/decisions.jsonl"
);

fn example() -> String {
    fs::read_to_string(EXAMPLE).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    command.args(arguments).output().unwrap()
}

/// The result of a replay as JSON, its exit code, and its warnings.
fn replay(file: &Path) -> (Value, Option<i32>, String) {
    let output = run(&["replay", file.to_str().unwrap(), "--output=json"]);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let warnings = String::from_utf8(output.stderr).unwrap();
    (json, output.status.code(), warnings)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap()
}

#[test]
fn plain_and_compressed_files_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, code, _) = replay(Path::new(EXAMPLE));
    assert_eq!(code, Some(0), "{expected}");
    assert!(expected["decisions"].as_u64() > Some(5), "{expected}");
    // The name does not matter.
    let file = folder.path().join("log");
    fs::write(&file, gzip(&example())).unwrap();
    assert_eq!(replay(&file).0, expected);
}

#[test]
fn renamed_files_are_read_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Without `continues` each file is the first of a process.
    for name in ["log.2", "log.1", "log"] {
        fs::write(path(name), example()).unwrap();
    }
    let (all, ..) = replay(&path("log"));
    let (one, ..) = replay(Path::new(EXAMPLE));
    assert_eq!(all["files"], 3);
    assert_eq!(
        all["decisions"].as_u64(),
        one["decisions"].as_u64().map(|it| it * 3)
    );
    // Those after a gap in the numbers belong to no log.
    fs::remove_file(path("log.1")).unwrap();
    assert_eq!(replay(&path("log")).0["files"], 1);
}

#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    let text = example();
    let compressed = gzip(&text);
    for content in [
        &text.as_bytes()[..text.len() - 20],
        &compressed[..compressed.len() - 20],
    ] {
        fs::write(&file, content).unwrap();
        let (result, code, warnings) = replay(&file);
        assert_eq!(code, Some(0), "{result}");
        assert!(
            warnings.contains("the last line is incomplete"),
            "{warnings}"
        );
    }
}

#[test]
fn other_lines_are_not_read() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
    command.args(["replay", "-", "--output=json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut mixed = String::from("2026-11-28T09:00:46Z  INFO leading\n\n");
    mixed.push_str(&example().replace(
        '\n',
        "\na message\n{\"timestamp\":\"2026-11-28T09:00:46Z\"}\n",
    ));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(mixed.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result, replay(Path::new(EXAMPLE)).0);
}

#[test]
fn input_without_a_log_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    fs::write(&file, "text\n").unwrap();
    let (_, code, error) = replay(&file);
    assert_eq!(code, Some(2));
    assert!(error.contains("no line of a decision log"), "{error}");
    let (_, code, error) = replay(&folder.path().join("absent"));
    assert_eq!(code, Some(2));
    assert!(error.contains("cannot read"), "{error}");
}

#[test]
fn a_line_that_is_too_long_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    fs::write(&file, example() + &"x".repeat(17 << 20) + "\n").unwrap();
    let (_, code, error) = replay(&file);
    assert_eq!(code, Some(2));
    assert!(error.contains("the line has more than"), "{error}");
}

#[test]
fn a_changed_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    fs::write(
        &file,
        example().replacen("\"nominalQuota\":\"8\"", "\"nominalQuota\":\"6\"", 1),
    )
    .unwrap();
    let (result, code, _) = replay(&file);
    assert_eq!(code, Some(1), "{result}");
    assert_eq!(result["problem"]["kind"], "Damage");
    let position = result["problem"]["position"].as_str().unwrap();
    assert!(position.starts_with(file.to_str().unwrap()), "{position}");
    // What the log says up to there is still shown.
    let output = run(&["log", "show", "team-a/train", file.to_str().unwrap()]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("the hash does not match"), "{warning}");
}

#[test]
fn report_shows_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let (file, plots) = (
        folder.path().join("report.html"),
        folder.path().join("plots"),
    );
    let arguments = [
        "report",
        EXAMPLE,
        "--output",
        file.to_str().unwrap(),
        "--plots",
        plots.to_str().unwrap(),
    ];
    let output = run(&arguments);
    assert!(output.status.success(), "{output:?}");
    let report = fs::read_to_string(&file).unwrap();
    for expected in [
        "team-a/train",
        "team-b/serve",
        "recorded",
        "2026-11-28T10:34:15",
    ] {
        assert!(report.contains(expected), "{expected}");
    }
    assert!(fs::read_dir(&plots).unwrap().count() > 2);
    let printed = run(&["report", EXAMPLE, "--output", "-"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), report);
}

#[test]
fn report_of_a_log_without_workloads_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let header = example().lines().next().unwrap().to_owned();
    fs::write(&log, header + "\n").unwrap();
    let file = folder.path().join("report.html");
    let arguments = [
        "report",
        log.to_str().unwrap(),
        "-o",
        file.to_str().unwrap(),
    ];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("has no Workload in a ClusterQueue"),
        "{error}"
    );
    assert!(!file.exists());
}
