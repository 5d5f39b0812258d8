//! The responses that differ from lockkeeper's answers.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lockkeeper_crd_schema::crd::{Answer, Schema, answer_definition};
use serde_json::Value;

use super::compare::{Agreement, compare, request};

/// The environment variable that names a file for the cases that differ, one a line.
const FILE: &str = "LOCKKEEPER_RANDOM_CASES";

/// The number of differences that are printed.
const PRINTED_MAX: usize = 5;

/// The numbers of requests and the differences.
#[derive(Default)]
pub struct Tally {
    pub requests: usize,
    pub accepted: usize,
    pub invalid: usize,
    pub undecodable: usize,
    /// The case and the differences of each.
    differences: Vec<(Value, String)>,
}

impl Tally {
    /// Compares a recorded response with lockkeeper's answer. `schema` is that of the object's kind; none for a
    /// definition.
    pub fn add(&mut self, case: Value, schema: Option<&Schema>) {
        self.requests += 1;
        match case["stage"].as_str() {
            Some("accepted") => self.accepted += 1,
            Some("validate") => self.invalid += 1,
            _ => self.undecodable += 1,
        }
        let answer = catch_unwind(AssertUnwindSafe(|| match schema {
            Some(schema) => schema.answer(&request(&case)),
            None => answer_definition(&request(&case)),
        }));
        let differences = match answer {
            Ok(answer) => differences(&case, &answer),
            Err(_) => "panic: lockkeeper's answer\n".to_owned(),
        };
        if !differences.is_empty() {
            self.differences.push((case, differences));
        }
    }

    /// Adds a definition for which the API server closes the connection: it panics.
    pub fn add_unanswered(&mut self, definition: &Value) {
        let text = "the API server does not answer\n".to_owned();
        self.differences.push((definition.clone(), text));
    }

    /// Prints the numbers, and fails if there are differences.
    pub fn report(&self) {
        println!(
            "random definitions: {} requests, {} accepted, {} invalid, {} undecodable, {} differences",
            self.requests,
            self.accepted,
            self.invalid,
            self.undecodable,
            self.differences.len()
        );
        if let Ok(path) = env::var(FILE) {
            let lines = self.differences.iter();
            let lines: Vec<String> = lines.map(|(case, _)| format!("{case}\n")).collect();
            fs::write(path, lines.concat()).unwrap();
        }
        for (case, differences) in self.differences.iter().take(PRINTED_MAX) {
            println!("{differences}{case}\n");
        }
        assert!(
            self.accepted > 0 && self.invalid > 0 && self.undecodable > 0,
            "the API server answers in all ways"
        );
        assert!(
            self.differences.is_empty(),
            "lockkeeper and the API server differ; the cases above can be added to \
             tests/samples/random_cases.jsonl"
        );
    }
}

/// A line for each measure that differs.
fn differences(case: &Value, answer: &Answer) -> String {
    let comparison = compare(case, answer);
    let mut out = String::new();
    for (measure, agreement) in comparison.measures() {
        if let Agreement::Differs(text) = agreement {
            writeln!(out, "{measure}: {text}").unwrap();
        }
    }
    if comparison.is_false_positive {
        out.push_str("the API server accepts the object\n");
    }
    out
}
