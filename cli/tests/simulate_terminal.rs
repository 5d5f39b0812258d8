//! `lockkeeper simulate --tui`: what it needs, and a session in a terminal.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_testkit::run_program;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const TRACE: &str = "\
id: one
clusterQueues:
- name: team
  resourceGroups:
  - resources: [cpu]
    flavors: [{name: spot, quotas: [{resource: cpu, nominal: \"8\"}]}]
jobs:
- {name: low, clusterQueue: team, arrival: 0, runSeconds: 100, podSets: [{requests: {cpu: \"6\"}}]}
";

const LEAVE_ALTERNATE_SCREEN: &str = "\u{1b}[?1049l";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("trace.yaml"), TRACE).unwrap();
    folder
}

#[test]
fn views_need_a_terminal_and_a_file() {
    let folder = folder();
    for (words, expected) in [
        (&["trace.yaml"][..], "--report FILE"),
        (&["trace.yaml", "--output", "json"], "exclude each other"),
        (&["trace.yaml", "--report", "-"], "both write to stdout"),
        (&["-"], "a trace cannot be `-`"),
    ] {
        let words = [&["simulate", "--tui"], words].concat();
        let program = env!("CARGO_BIN_EXE_lockkeeper");
        let (code, text, error) = run_program(program, folder.path(), &words);
        assert_eq!((code, text.as_str()), (2, ""), "{words:?}");
        assert!(error.contains(expected), "{error}");
    }
}

/// The output of a session in a pseudo-terminal after some keys; `None` if util-linux is not installed. Keys follow when
/// the output has the text before them.
fn session(folder: &TempDir, flags: &str, steps: &[(&str, &str)]) -> Option<(bool, String)> {
    let program = env!("CARGO_BIN_EXE_lockkeeper");
    let command =
        format!("stty rows 24 cols 80; exec '{program}' simulate trace.yaml --tui {flags}");
    let child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(folder.path())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        other => other.unwrap(),
    };
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    let mut part = [0; 4096];
    let mut steps = steps.iter().peekable();
    loop {
        let length = output.read(&mut part).unwrap();
        if length == 0 {
            break;
        }
        seen.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&seen);
        while let Some((_, keys)) = steps.next_if(|(shown, _)| text.contains(shown)) {
            input.write_all(keys.as_bytes()).unwrap();
        }
    }
    let status = child.wait().unwrap();
    let text = String::from_utf8_lossy(&seen).into_owned();
    Some((status.success(), text))
}

#[test]
fn session_shows_views_and_restores_the_terminal() {
    let folder = folder();
    let steps = [("Makespan", "5"), ("Terminating", "q")];
    let Some((is_success, text)) = session(&folder, "--report out.html", &steps) else {
        return;
    };
    assert!(is_success, "{text:?}");
    assert!(text.contains(LEAVE_ALTERNATE_SCREEN), "{text:?}");
    assert!(
        folder.path().join("out.html").exists(),
        "the report is written, too"
    );
    // Control-C is a key in raw mode.
    let (is_success, text) = session(&folder, "", &[("Makespan", "\u{3}")]).unwrap();
    assert!(
        is_success && text.contains(LEAVE_ALTERNATE_SCREEN),
        "{text:?}"
    );
}
