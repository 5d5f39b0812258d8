//! The inputs of `lockkeeper simulate`, and its outputs for several configurations.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_testkit::run_program;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const QUEUES: [&str; 2] = ["--config", "docs/traces/queues.yaml"];

/// Returns the exit code, standard output and standard error.
fn simulate(words: &[&str]) -> (i32, String, String) {
    let words = [&["simulate"], words].concat();
    run_program(env!("CARGO_BIN_EXE_lockkeeper"), Path::new(ROOT), &words)
}

/// The output of a successful run.
#[track_caller]
fn output(words: &[&str]) -> String {
    let (code, text, error) = simulate(words);
    assert_eq!((code, error.as_str()), (0, ""));
    text
}

fn csv_words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = ["docs/traces/jobs.csv", "--map", "docs/traces/csv-map.yaml"];
    [&words[..], &QUEUES, more].concat()
}

#[test]
fn assumptions_are_in_text_json_csv_and_report() {
    let words = ["docs/traces/jobs.swf", "--map", "docs/traces/swf-map.yaml"];
    let words = [&words[..], &QUEUES].concat();
    let assumption = "run time unknown: the requested time is used";
    let line = format!("          1  {assumption}\n");
    assert!(output(&words).contains(&line));
    let json = output(&[&words[..], &["-o", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let assumptions = json["simulations"][0]["assumptions"].as_array().unwrap();
    let found = assumptions.iter().find(|it| it["text"] == assumption);
    assert_eq!(found.unwrap()["count"], 1);
    let csv = output(&[&words[..], &["-o", "csv"]].concat());
    let row =
        format!("docs/traces/jobs.swf,docs/traces/queues.yaml,assumption,{assumption},,,count,1\n");
    assert!(csv.contains(&row), "{csv}");
    let report = output(&[&words[..], &["--report", "-"]].concat());
    assert!(report.contains(&format!("<td>{assumption}</td>")));
}

#[test]
fn format_flag_and_file_ending_select_the_parser() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.txt");
    fs::copy(Path::new(ROOT).join("docs/traces/jobs.csv"), &path).unwrap();
    let path = path.to_str().unwrap();
    let mut words = csv_words(&[]);
    let by_ending = output(&words);
    words[0] = path;
    let (code, _, error) = simulate(&words);
    assert_eq!(code, 2, "{error}");
    words.extend(["--format", "csv"]);
    assert_eq!(
        output(&words).replace(path, "docs/traces/jobs.csv"),
        by_ending
    );
    let generated = output(&["--format", "generator", "tests/bench/generator.yaml"]);
    assert!(
        generated.contains("jobs         15000, finished 15000"),
        "{generated}"
    );
}

#[test]
fn dump_needs_run_times_and_keeps_running_workloads() {
    let words = ["--dump", "examples/explain/kueue.yaml"];
    let (code, text, error) = simulate(&words);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(
        error.contains("give one with --assume-run-seconds"),
        "{error}"
    );
    let short = output(&[&words[..], &["--assume-run-seconds", "4000"]].concat());
    let long = output(&[&words[..], &["--assume-run-seconds", "90000"]].concat());
    assert!(
        short.contains("3  run time unknown: 4000 s (--assume-run-seconds)"),
        "{short}"
    );
    assert_ne!(short, long);
    let (code, _, error) = simulate(&["--assume-run-seconds", "0"]);
    assert_eq!(code, 2, "{error}");
}

#[test]
fn comparison_has_affected_jobs_with_decisions() {
    let words = csv_words(&["--config", "docs/traces/no-preemption.yaml"]);
    let text = output(&words);
    let (_, comparison) = text.split_once("most affected jobs").unwrap();
    assert!(comparison.contains("train-2"), "{comparison}");
    let json = output(&[&words[..], &["-o", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["simulations"].as_array().unwrap().len(), 2);
    let comparison = &json["comparisons"][0];
    assert_eq!(comparison["first"], "docs/traces/queues.yaml");
    let affected = comparison["affected"].as_array().unwrap();
    assert!(
        affected.iter().all(|it| it["decision"].is_string()),
        "{affected:?}"
    );
    // The same files in the same order give the same bytes, whatever thread ends first.
    assert_eq!(output(&words), text);
    let markdown = output(&[&words[..], &["-o", "markdown"]].concat());
    let header = "| measure | docs/traces/jobs.csv, docs/traces/queues.yaml | docs/traces/jobs.csv, docs/traces/no-preemption.yaml |\n";
    assert!(markdown.contains(header), "{markdown}");
    assert!(
        markdown.contains("| outcome | drained | drained |\n"),
        "{markdown}"
    );
}

/// The fields of the outputs are stable: other programs read them.
#[test]
fn field_names_are_stable() {
    let csv = output(&csv_words(&["-o", "csv"]));
    let mut rows = csv.lines();
    assert_eq!(
        rows.next(),
        Some("trace,config,scope,name,flavor,resource,measure,value")
    );
    let names = rows.map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        format!("{} {}", fields[2], fields[fields.len() - 2])
    });
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names.sort();
    names.dedup();
    let json: Value = serde_json::from_str(&output(&csv_words(&["-o", "json"]))).unwrap();
    let mut paths = Vec::new();
    for key in ["metrics", "stats"] {
        collect_paths(&json["simulations"][0][key], key, &mut paths);
    }
    paths.sort();
    paths.dedup();
    insta::assert_snapshot!(format!("{}\n\n{}", names.join("\n"), paths.join("\n")));
}

fn collect_paths(value: &Value, path: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect_paths(value, &format!("{path}.{key}"), out);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_paths(item, &format!("{path}[]"), out);
            }
        }
        _ => out.push(path.to_owned()),
    }
}

#[test]
fn mistakes_have_file_and_line_and_leave_no_output() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let record = "1 0 -1 60 4 -1 -1 4 90 -1 1 7 3 -1 2 1 -1 -1";
    let good = file("good.swf", record);
    let cut = file("cut.swf", &format!("{record}\n2 5 -1 60 4"));
    let binary = file("binary.swf", "1 2\u{0}3");
    let unknown_queue = file("map.yaml", "queues:\n- {user: 7, clusterQueue: team-x}\n");
    let typo = file("typo.yaml", "queues: []\ndefualtQueue: a\n");
    let generator = file("generator.yaml", "cohorts:\n- {className: a, count: x}\n");
    let known_queue = file("known.yaml", "defaultQueue: team-a\n");
    for (words, expected) in [
        (
            vec![good.as_str(), "--map", &known_queue],
            "good.swf: the file has jobs only; give their ClusterQueues with --config".to_owned(),
        ),
        (
            [&[good.as_str(), "--map", &unknown_queue], &QUEUES[..]].concat(),
            "good.swf:1 with docs/traces/queues.yaml: jobs[0].clusterQueue: unknown ClusterQueue \"team-x\"".to_owned(),
        ),
        (
            [&[cut.as_str(), "--map", &known_queue], &QUEUES[..]].concat(),
            "cut.swf:2: 5 fields; a record of the Standard Workload Format has 18".to_owned(),
        ),
        (
            [&[binary.as_str(), "--map", &known_queue], &QUEUES[..]].concat(),
            "binary.swf:1: 2 fields".to_owned(),
        ),
        (
            [&[good.as_str(), "--map", &typo], &QUEUES[..]].concat(),
            "typo.yaml:2:1: ".to_owned(),
        ),
        (
            vec!["--format", "generator", &generator],
            "generator.yaml:2:18: ".to_owned(),
        ),
        (
            vec!["none.swf", "--config", QUEUES[1]],
            "cannot read none.swf: No such file or directory".to_owned(),
        ),
        (
            vec!["docs/traces/generator.yaml", "--format", "generator", "--map", &known_queue],
            "--map has no effect: no file is in the format swf, csv or parquet".to_owned(),
        ),
        (
            vec!["--dump", "examples/explain/kueue.yaml", "--map", &known_queue],
            "required arguments were not provided".to_owned(),
        ),
        (vec!["--dump", "none"], "cannot read none".to_owned()),
        (Vec::new(), "required arguments were not provided".to_owned()),
    ] {
        let (code, text, error) = simulate(&words);
        assert_eq!((code, text.as_str()), (2, ""), "{error}");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn readiness_is_in_all_outputs() {
    let words = ["docs/traces/pods-ready.yaml"];
    let with = |more: &[&str]| output(&[&words[..], more].concat());
    let text = with(&[]);
    let line = "  evictions    4: DeactivatedDueToRequeuingLimitExceeded 1, PodsReadyTimeout 3\n";
    assert!(text.contains(line), "{text}");
    let json: Value = serde_json::from_str(&with(&["-o", "json"])).unwrap();
    let simulation = &json["simulations"][0];
    let mut paths = Vec::new();
    for key in ["metrics", "stats"] {
        collect_paths(&simulation[key], key, &mut paths);
    }
    paths.retain(|it| it.contains("podsReady"));
    paths.sort();
    paths.dedup();
    let csv = with(&["-o", "csv"]);
    let rows = csv.lines().filter(|row| {
        ["eviction", "requeue", "deactivated", "evicted", "not_ready"]
            .iter()
            .any(|it| row.contains(it))
    });
    let rows: Vec<&str> = rows.collect();
    insta::assert_snapshot!(format!("{}\n\n{}", paths.join("\n"), rows.join("\n")));
    let markdown = with(&["-o", "markdown"]);
    assert!(markdown.contains("## Evictions by reason\n"), "{markdown}");
    let report = with(&["--report", "-"]);
    let reasons =
        "Evictions by reason: DeactivatedDueToRequeuingLimitExceeded 1, PodsReadyTimeout 3.";
    assert!(report.contains(reasons));
    assert!(report.contains("Pods not ready"));
    let without = output(&["docs/traces/gangs.yaml", "--report", "-"]);
    assert!(!without.contains("Pods not ready"));
}

#[test]
fn mistakes_of_readiness_have_file_and_line() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.yaml");
    let trace = |settings: &str, ready: &str| {
        format!(
            "waitForPodsReady:\n  {settings}\nclusterQueues:\n- {{name: a, resourceGroups: []}}\njobs:\n- name: j\n  \
             clusterQueue: a\n  arrival: 0\n  runSeconds: 9\n  readySeconds: {ready}\n  podSets: [{{}}]\n"
        )
    };
    let good = "timeout: 5m";
    for (settings, ready, expected) in [
        (
            good,
            "-1",
            "10:3: jobs[0].readySeconds: -1 is out of range; use 0 to 1099511627776",
        ),
        (
            good,
            "[1, 1099511627777]",
            "10:21: jobs[0].readySeconds[1]: 1099511627777 is out of range; use 0 to 1099511627776",
        ),
        (
            good,
            "soon",
            "10:3: jobs[0].readySeconds: invalid value: string \"soon\", expected a number",
        ),
        (
            good,
            "1e99",
            "10:3: jobs[0].readySeconds: invalid type: number `1e+99`, expected a number",
        ),
        (
            "timeout: -5s",
            "1",
            "2:3: waitForPodsReady.timeout: \"-5s\" is negative; give 0s or more",
        ),
        (
            "timeuot: 5s",
            "1",
            "2:3: waitForPodsReady.timeuot: unknown field `timeuot`, expected one of",
        ),
        (
            "requeuingStrategy: {backoffLimitCount: -1}",
            "1",
            "2:23: waitForPodsReady.requeuingStrategy.backoffLimitCount: invalid value: integer `-1`",
        ),
        (
            "requeuingStrategy: {preset: kep-1282, backoffFactor: 2}",
            "1",
            "2:23: waitForPodsReady.requeuingStrategy.preset: ",
        ),
    ] {
        fs::write(&path, trace(settings, ready)).unwrap();
        let (code, text, error) = simulate(&[path.to_str().unwrap()]);
        assert_eq!((code, text.as_str()), (2, ""), "{error}");
        assert!(error.contains(&format!("trace.yaml:{expected}")), "{error}");
    }
    fs::write(&path, trace(good, "never")).unwrap();
    output(&[path.to_str().unwrap()]);
}

/// Names in files are untrusted.
#[test]
fn hostile_names_do_not_break_outputs() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("jobs.csv");
    let name = "=1+1|<script>`x`";
    fs::write(
        &path,
        format!("JobID,Account,Submit,Start,End,Nodes,CPUs,Priority\n\"{name},\"\"q\n\",team-a,2026-11-29T08:00:00Z,2026-11-29T08:00:10Z,2026-11-29T08:10:10Z,1,60,0\n\
                 high,team-a,2026-11-29T08:01:00Z,2026-11-29T08:02:00Z,2026-11-29T08:03:00Z,1,60,9\n"),
    )
    .unwrap();
    let mut words = csv_words(&["--config", "docs/traces/no-preemption.yaml"]);
    words[0] = path.to_str().unwrap();
    let markdown = output(&[&words[..], &["-o", "markdown"]].concat());
    assert!(!markdown.contains("<script>"), "{markdown}");
    let csv = output(&[&words[..], &["-o", "csv"]].concat());
    assert!(csv.contains("\"=1+1|<script>`x`,\"\"q\""), "{csv}");
    let report = output(&[&words[..], &["--report", "-"]].concat());
    assert!(!report.contains("|<script>"));
}
