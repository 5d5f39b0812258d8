//! The decision log: `lockkeeper replay` decides everything again, and `lockkeeper log show` tells what happened.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Trial;
use super::fixture::{ControllerFixture, NO_LEADER_ELECTION};
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper;
use crate::wait;

pub const TRIALS: [Trial; 4] = [
    ("every decision is made again", replay),
    (
        "files are renamed, and a process continues after a crash",
        files,
    ),
    ("standard output has the log alone", standard_output),
    ("a full disk delays no decision", full_disk),
];

#[track_caller]
fn open(stage: &mut Fixture) -> ControllerFixture<'_> {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.stop();
    site.flavor("default");
    site.classes();
    let more = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 8, &more);
    site
}

fn new_folder(site: &mut ControllerFixture<'_>) -> PathBuf {
    let folder = site.stage.new_folder();
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("a path of a test is UTF-8")
}

/// The result of `lockkeeper replay` as JSON, which must not report a problem.
#[track_caller]
fn replayed(log: &Path) -> Value {
    let output = lockkeeper::run(&["replay", text_of(log), "--output=json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{result:#}");
    assert_eq!(result["problem"], Value::Null);
    result
}

fn replay(stage: &mut Fixture) {
    let mut site = open(stage);
    let log = new_folder(&mut site).join("decisions.jsonl.gz");
    let flag = format!("--decision-log={}", text_of(&log));
    site.start_controller("", &[NO_LEADER_ELECTION, &flag]);
    site.job("first", "q", 6, "low", &json!({}));
    site.wait_until_running("first");
    site.job("second", "q", 4, "low", &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    site.job("urgent", "q", 8, "high", &json!({}));
    site.wait_until_running("urgent");
    site.wait_until_stopped("first");
    // Both could be created in the same second, and the order of equal workloads is not defined.
    let second = site.workload_name("second");
    site.objects.delete("Job", "second");
    site.objects.wait_until_gone("Workload", &second);
    site.finish("urgent");
    site.wait_until_running("first");
    let first = site.workload_name("first");
    let urgent = site.workload_name("urgent");
    wait_for_metric(&mut site, "decision_log_bytes_total");
    assert_eq!(site.controller().metric("decision_log_gaps_total"), Some(0));
    site.stop();

    let result = replayed(&log);
    assert!(result["decisions"].as_u64() >= Some(5), "{result:#}");
    let output = lockkeeper::run(&["log", "show", &first, text_of(&log)]);
    let history = String::from_utf8(output.stdout).unwrap();
    let events: Vec<&str> = history
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|event| *event != "Pending")
        .collect();
    assert_eq!(
        events,
        [
            "Created",
            "Admitted",
            "Preempted",
            "Evicted",
            "QuotaReleased",
            "Admitted"
        ],
        "{history}"
    );
    assert!(
        history.contains(&format!("by default/{urgent} (InClusterQueue)")),
        "{history}"
    );
    let report = log.with_extension("html");
    let words = ["report", text_of(&log), "--output", text_of(&report)];
    let output = lockkeeper::run(&words);
    assert!(output.status.success(), "{output:?}");
    let report = fs::read_to_string(&report).unwrap();
    assert!(report.contains(&first) && report.contains("recorded"));
    let output = lockkeeper::run(&["log", "show", "absent", text_of(&log)]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("has no Workload default/absent"), "{error}");
}

fn files(stage: &mut Fixture) {
    let mut site = open(stage);
    let folder = new_folder(&mut site);
    let log = folder.join("decisions.jsonl");
    let config = format!(
        "controller: {{decisionLog: {{file: {}, fileBytesMax: 65536, filesMax: 3}}}}\n",
        text_of(&log)
    );
    site.start_controller(&config, &[NO_LEADER_ELECTION]);
    site.job("before", "q", 2, "low", &json!({}));
    site.wait_until_running("before");
    // Each version of a Workload is a line.
    let name = site.workload_name("before");
    let renamed = folder.join("decisions.jsonl.2");
    let mut count = 0;
    let found = wait::until(
        || {
            count += 1;
            let labels = (0..40).map(|it| {
                (
                    format!("label-{it}"),
                    format!("{count}{}", "x".repeat(58)).into(),
                )
            });
            let labels: serde_json::Map<String, Value> = labels.collect();
            let change = json!({"metadata": {"labels": labels}});
            site.objects.patch("Workload", &name, &change);
            Ok(renamed.exists().then_some(()))
        },
        || "no file was renamed twice".to_owned(),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
    // The process is killed: the next one begins a file, and the log can be read.
    drop(site.controller.take());
    site.start_controller(&config, &[NO_LEADER_ELECTION]);
    site.job("after", "q", 2, "low", &json!({}));
    site.wait_until_running("after");
    site.stop();
    let result = replayed(&log);
    assert_eq!(result["files"], 3, "{result:#}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
    for name in ["before", "after"] {
        let workload = site.workload_name(name);
        let output = lockkeeper::run(&["log", "show", &workload, text_of(&log)]);
        assert!(output.status.success(), "{output:?}");
    }

    // A changed line is found.
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"count\":1", "\"count\":2", 1)).unwrap();
    let output = lockkeeper::run(&["replay", text_of(&log)]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("the hash does not match"), "{report}");
}

/// Waits until a counter is above zero.
#[track_caller]
fn wait_for_metric(site: &mut ControllerFixture<'_>, series: &str) {
    let controller = site.controller();
    let found = wait::until(
        || Ok(controller.metric(series).filter(|it| *it > 0)),
        || format!("{series} stays at zero"),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn standard_output(stage: &mut Fixture) {
    let mut site = open(stage);
    let log = new_folder(&mut site).join("decisions.jsonl");
    site.start_controller("", &[NO_LEADER_ELECTION, "--decision-log=-"]);
    site.job("first", "q", 6, "low", &json!({}));
    site.wait_until_running("first");
    let controller = site.controller();
    let mut text = String::new();
    let found = wait::until(
        || {
            text = controller.stdout();
            Ok(text.contains("\"decision\":\"Admit\"").then_some(()))
        },
        || "standard output has no decision".to_owned(),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
    for line in text.lines() {
        assert!(line.starts_with("{\"event\":\""), "{line}");
    }
    site.stop();
    fs::write(&log, text).unwrap();
    replayed(&log);
}

fn full_disk(stage: &mut Fixture) {
    let mut site = open(stage);
    let flag = "--decision-log=/dev/full";
    site.start_controller("", &[NO_LEADER_ELECTION, flag]);
    site.job("first", "q", 6, "low", &json!({}));
    site.wait_until_running("first");
    wait_for_metric(&mut site, "decision_log_gaps_total");
    // Later decisions are made as well.
    site.job("urgent", "q", 8, "high", &json!({}));
    site.wait_until_running("urgent");
    let log = site.stop_and_read_log();
    assert!(log.contains("cannot write the decision log"), "{log}");
}
