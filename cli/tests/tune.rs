//! `lockkeeper tune`: goals, limits, results that are kept, and bad input.
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
const TRACE: &str = "docs/traces/backfill.yaml";
const SEARCH: &str = "docs/traces/search.yaml";

/// Returns the exit code, standard output and standard error.
fn run(words: &[&str]) -> (i32, String, String) {
    run_program(env!("CARGO_BIN_EXE_lockkeeper"), Path::new(ROOT), words)
}

fn tune(more: &[&str]) -> (i32, String, String) {
    run(&[&["tune", TRACE], more].concat())
}

#[track_caller]
fn json(more: &[&str]) -> Value {
    let words = [&["--search", SEARCH, "--output", "json"], more].concat();
    let (code, text, error) = tune(&words);
    assert_eq!((code, error.as_str()), (0, ""));
    serde_json::from_str(&text).unwrap()
}

/// A search file in a folder.
fn search_file(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("search.yaml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn written_configurations_have_the_reported_values() {
    let folder = TempDir::new().unwrap();
    let best = folder.path().join("best");
    let result = json(&["--write", best.to_str().unwrap()]);
    assert_eq!(result["today"]["meetsLimits"], true);
    let found = result["best"].as_array().unwrap();
    assert!(!found.is_empty());
    for (at, it) in found.iter().enumerate() {
        let config = best.join(format!("{}.json", at + 1));
        let config = config.to_str().unwrap();
        let (code, text, _) = run(&["simulate", TRACE, "--config", config, "-o", "json"]);
        assert_eq!(code, 0);
        let simulated: Value = serde_json::from_str(&text).unwrap();
        let wait = &simulated["simulations"][0]["stats"]["wait"];
        assert_eq!(it["values"][0].as_f64(), wait["max"].as_f64());
        assert_eq!(it["values"][1].as_f64(), wait["p50"].as_f64());
    }
}

#[test]
fn limit_that_no_configuration_meets_is_exit_code_1() {
    let folder = TempDir::new().unwrap();
    let search = search_file(
        &folder,
        "goals: [{measure: wait_max_seconds, atMost: 1}]\nfields: [{path: queueingStrategy, values: [BestEffortFIFO]}]",
    );
    let (code, text, error) = tune(&["--search", &search]);
    assert_eq!((code, error.as_str()), (1, ""));
    assert!(
        text.contains("No configuration is within all limits; the nearest are"),
        "{text}"
    );
    assert!(text.contains(" ! "), "{text}");
}

#[test]
fn kept_results_are_used_again() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("results.jsonl");
    let words = ["--results", kept.to_str().unwrap()];
    let first = json(&words);
    let complete = fs::read_to_string(&kept).unwrap();
    assert_eq!(complete.lines().count(), 28);
    assert_eq!(json(&words), first);
    assert_eq!(fs::read_to_string(&kept).unwrap(), complete);

    // A crash may leave a part of a line. A result that is changed shows that it is not simulated again.
    let cut = complete.lines().take(5).collect::<Vec<_>>().join("\n");
    let changed = cut.replacen("\"neverAdmitted\":0", "\"neverAdmitted\":7", 1);
    fs::write(&kept, format!("{changed}\n{{\"candi")).unwrap();
    let again = json(&words);
    assert_eq!(again["today"]["neverAdmitted"], 7);
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), 28);

    let other = [&words[..], &["--search", SEARCH]].concat();
    let config = folder.path().join("config.yaml");
    fs::write(&config, "gracePeriodSeconds: 5\n").unwrap();
    let other = [&other[..], &["--config", config.to_str().unwrap()]].concat();
    let (code, _, error) = tune(&other);
    assert_eq!(code, 2);
    assert!(error.contains("its results are of other inputs"), "{error}");
}

#[test]
fn time_of_nothing_measures_the_configuration_of_today() {
    let (code, text, _) = tune(&["--search", SEARCH, "--timeout", "0s"]);
    assert_eq!(code, 0);
    assert!(text.starts_with("tried 1 of 27 configurations\n"), "{text}");
    assert!(text.contains("the time of --timeout is over"), "{text}");
}

#[test]
fn limit_of_configurations_is_kept() {
    let result = json(&["--max-configurations", "5"]);
    assert_eq!(result["tried"], 5);
    assert_eq!(result["configurations"], 27);
}

#[test]
fn bad_input_names_file_and_remedy() {
    let folder = TempDir::new().unwrap();
    let goal = "goals: [{measure: wait_max_seconds, best: lowest}]";
    let field = "fields: [{path: queueingStrategy, values: [StrictFIFO]}]";
    for (text, expected) in [
        (
            "goals: []\nfields: []".to_owned(),
            "goals and fields must not be empty",
        ),
        (
            format!("goals: [{{measure: wait_max_seconds}}]\n{field}"),
            "give one of atMost, atLeast and best",
        ),
        (
            format!("goals: [{{measure: speed, best: lowest}}]\n{field}"),
            "the simulation has no such measure; `lockkeeper simulate --output csv` lists all",
        ),
        (
            format!("goals: [{{measure: outcome, best: lowest}}]\n{field}"),
            "its value \"drained\" is no number",
        ),
        (
            format!("{goal}\nfields: [{{path: 'clusterQueues[a].cohort', values: [x]}}]"),
            "clusterQueues[a].cohort: no element of the list is a",
        ),
        (
            format!("{goal}\nfields: [{{path: queuingStrategy, values: [StrictFIFO]}}]"),
            "unknown field `queuingStrategy`",
        ),
        (
            format!("{goal}\nfields: [{{path: queueingStrategy, values: [FIFO]}}]"),
            "unknown variant `FIFO`",
        ),
        (
            format!("{goal}\nfields: [{{path: queueingStrategy, values: []}}]"),
            "queueingStrategy: give 1 to 1000 values",
        ),
        (format!("{goal}\nfield: []"), "unknown field"),
    ] {
        let search = search_file(&folder, &text);
        let (code, out, error) = tune(&["--search", &search]);
        assert_eq!((code, out.as_str()), (2, ""), "{text}");
        assert!(error.contains(expected), "{text}: {error}");
    }
    let results = folder.path().join("search.yaml");
    let (code, _, error) = tune(&["--search", SEARCH, "--results", results.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(error.contains("no file of results"), "{error}");
    assert!(Path::new(&results).exists());
}
