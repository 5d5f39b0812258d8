//! Reads the cases, and counts the passed ones.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

/// The number of failures that are printed in full.
const FAILURES_SHOWN_MAX: usize = 5;

/// One line of a file.
pub struct Case {
    pub file: String,
    pub id: String,
    pub value: Value,
}

/// All lines of all files of a folder.
pub fn cases(folder: &str) -> Vec<Case> {
    let folder = root().join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            cases.push(Case {
                file: name.clone(),
                id: value["id"].as_str().unwrap_or_default().to_owned(),
                value,
            });
        }
    }
    assert!(!cases.is_empty(), "{} has no cases", folder.display());
    cases
}

/// The cases that `deviations.md` names.
pub fn deviations() -> Vec<String> {
    let lines = include_str!("deviations.md").lines();
    let ids = lines.filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`'));
    ids.map(str::to_owned).collect()
}

fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    if let Some(folder) = env::var_os("LOCKKEEPER_CONFORMANCE_DIR") {
        return here.join(folder);
    }
    let shared = here.join("../shared/data");
    if shared.is_dir() {
        return shared;
    }
    here.join("tests/conformance/data")
}

/// The results of the cases, by file.
#[derive(Default)]
pub struct Tally {
    passed: BTreeMap<String, usize>,
    skipped: BTreeMap<String, usize>,
    failed: Vec<String>,
}

impl Tally {
    pub fn pass(&mut self, case: &Case) {
        *self.passed.entry(case.file.clone()).or_default() += 1;
    }

    pub fn skip(&mut self, case: &Case) {
        *self.skipped.entry(case.file.clone()).or_default() += 1;
    }

    /// Counts a case; `problems` are the differences.
    pub fn count(&mut self, case: &Case, problems: &[String]) {
        if problems.is_empty() {
            self.pass(case);
        } else {
            let text = problems.join("\n  ");
            self.failed
                .push(format!("{} {}:\n  {text}", case.file, case.id));
        }
    }

    pub fn finish(self, what: &str) {
        for (file, count) in &self.passed {
            let left_out = self.skipped.get(file).copied().unwrap_or_default();
            println!("{what}/{file}: {count} passed, {left_out} left out");
        }
        for failure in self.failed.iter().take(FAILURES_SHOWN_MAX) {
            eprintln!("{failure}");
        }
        assert!(self.failed.is_empty(), "{} cases differ", self.failed.len());
    }
}
