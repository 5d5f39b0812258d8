//! Compares the timelines of jobs with those that were recorded from Kueue.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `simulate/`; without it `../shared/data` and, failing that, the
//! sample beside this folder. `SIMULATE_FAILURES` is the number of differing traces that are printed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

mod compare;
mod counts;

use counts::Counts;
use lockkeeper_simulate::timeline::{JobTrace, simulate};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The differing traces that are printed without `SIMULATE_FAILURES`.
const FAILURES_SHOWN: usize = 5;

#[test]
fn timelines_match_kueue() {
    let folder = folder();
    let mut total = Counts::default();
    let mut failures = Vec::new();
    let files = trace_files(&folder);
    assert!(!files.is_empty(), "{} has no traces", folder.display());
    for path in files {
        let mut counts = Counts::default();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let trace: JobTrace = serde_json::from_str(line).unwrap();
            let mut recorded: Value = serde_json::from_str(line).unwrap();
            let expected = recorded["expected"].take();
            let timeline = simulate(&trace).unwrap();
            let difference = compare::difference(&timeline, &expected);
            counts.add(&timeline, difference.is_none());
            failures.extend(difference.map(|it| format!("{}: {it}", trace.id)));
        }
        counts.print(&path.file_stem().unwrap().to_string_lossy());
        total.sum(&counts);
    }
    total.print("all");
    let shown = env::var("SIMULATE_FAILURES").ok();
    let shown = shown.and_then(|it| it.parse().ok());
    for failure in failures.iter().take(shown.unwrap_or(FAILURES_SHOWN)) {
        println!("{failure}");
    }
    assert!(failures.is_empty(), "{} traces differ", failures.len());
}

fn folder() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Some(folder) = env::var_os("LOCKKEEPER_CONFORMANCE_DIR") {
        return here.join(folder).join("simulate");
    }
    let shared = here.join("../shared/data/simulate");
    if shared.is_dir() {
        return shared;
    }
    here.join("tests/conformance/data/simulate")
}

fn trace_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    files
}
