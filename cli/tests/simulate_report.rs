//! The files that `lockkeeper simulate` writes: the report and the plots.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_testkit::run_program;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const TRACE: &str = "\
id: one
clusterQueues:
- name: team
  resourceGroups:
  - resources: [cpu]
    flavors: [{name: spot, quotas: [{resource: cpu, nominal: \"8\"}]}]
  preemption: {withinClusterQueue: LowerPriority}
jobs:
- {name: low, clusterQueue: team, arrival: 0, runSeconds: 100, podSets: [{requests: {cpu: \"6\"}}]}
- {name: high, clusterQueue: team, arrival: 40, runSeconds: 10, priority: 1, podSets: [{requests: {cpu: \"4\"}}]}
";

/// A folder with a trace and two configurations.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [
        ("trace.yaml", TRACE),
        ("resume.yaml", "mode: resume\n"),
        ("restart.yaml", "mode: restart\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Returns the exit code, standard output and standard error.
fn simulate(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let words = [&["simulate"], words].concat();
    run_program(env!("CARGO_BIN_EXE_lockkeeper"), folder, &words)
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn report_compares_configs_and_is_reproducible() {
    let folder = folder();
    let configs = ["--config", "resume.yaml", "--config", "restart.yaml"];
    let words = [&["trace.yaml", "--report", "out.html"], &configs[..]].concat();
    let (code, text, error) = simulate(folder.path(), &words);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(text.contains("one, resume.yaml\n"), "{text}");
    let report = fs::read(folder.path().join("out.html")).unwrap();
    simulate(folder.path(), &words);
    assert_eq!(report, fs::read(folder.path().join("out.html")).unwrap());
    let report = String::from_utf8(report).unwrap();
    assert!(report.starts_with("<!DOCTYPE html>"));
    assert!(report.contains("one, restart.yaml") && report.contains("id=\"comparison\""));
    // On standard output, the report takes the place of the summary.
    let words = [&["trace.yaml", "--report", "-"], &configs[..]].concat();
    let (code, text, _) = simulate(folder.path(), &words);
    assert_eq!((code, text), (0, report));
}

#[test]
fn plots_are_svg_files() {
    let folder = folder();
    let (code, _, error) = simulate(folder.path(), &["trace.yaml", "--plots", "plots/new"]);
    assert_eq!(code, 0, "{error}");
    let plots = folder.path().join("plots/new");
    assert_eq!(
        file_names(&plots),
        [
            "001-queue-usage.svg",
            "002-workloads-by-state.svg",
            "003-wait-times-by-queue.svg",
            "004-wait-times-by-priority.svg",
        ]
    );
    for name in file_names(&plots) {
        let text = fs::read_to_string(plots.join(name)).unwrap();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>"));
    }
}

#[test]
fn failed_simulation_or_write_leaves_no_report() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("old.html"), "old").unwrap();
    let invalid = TRACE.replace("arrival: 40", "arrival: -4");
    fs::write(path.join("invalid.yaml"), invalid).unwrap();
    fs::create_dir(path.join("folder")).unwrap();
    let before = file_names(path);
    let many = ["trace.yaml"; 13];
    for (words, expected_code, expected) in [
        (
            &["trace.yaml", "invalid.yaml", "--report", "old.html"][..],
            2,
            "jobs[1].arrival: -4 is out of range",
        ),
        (
            &["invalid.yaml", "--report", "new.html"],
            2,
            "jobs[1].arrival",
        ),
        (
            &["trace.yaml", "--report", "none/new.html"],
            1,
            "cannot write the report none/new.html: No such file or directory",
        ),
        (
            &["trace.yaml", "--report", "folder"],
            1,
            "cannot write the report folder: is a directory",
        ),
        // A device without room.
        (
            &["trace.yaml", "--report", "/dev/full"],
            1,
            "cannot write the report /dev/full: No space left on device",
        ),
        (
            &["trace.yaml", "--report", "-", "--output", "json"],
            2,
            "--report - and --output json, csv or markdown both write to stdout",
        ),
        (
            &["trace.yaml", "--plots", "old.html"],
            1,
            "cannot create the folder old.html",
        ),
        (
            &[&many[..], &["--report", "new.html"]].concat(),
            2,
            "a report has at most 12 simulations, found 13",
        ),
    ] {
        let (code, text, error) = simulate(path, words);
        assert_eq!((code, text.as_str()), (expected_code, ""), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(file_names(path), before);
    let old = fs::read_to_string(path.join("old.html")).unwrap();
    assert_eq!(old, "old");
}

/// A disk that is full in the middle of the report: the limit on the size of files has the same effect.
#[test]
fn interrupted_write_keeps_old_report() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("out.html"), "old").unwrap();
    let before = file_names(path);
    let binary = env!("CARGO_BIN_EXE_lockkeeper");
    let script =
        format!("trap '' XFSZ; ulimit -f 8; exec '{binary}' simulate trace.yaml --report out.html");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(path)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("cannot write the report out.html: File too large"),
        "{error}"
    );
    assert_eq!(file_names(path), before);
    let old = fs::read_to_string(path.join("out.html")).unwrap();
    assert_eq!(old, "old");
}
