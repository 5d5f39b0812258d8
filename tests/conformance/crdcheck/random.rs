//! Cases of the e2e scenario `random_definitions` that lockkeeper once answered differently from the API server.
//!
//! `CRDCHECK_RANDOM_CASES` names another file of cases.

use crate::compare::{Agreement, compare, request};
use lockkeeper_crd_schema::crd::{Schema, answer_definition};
use serde_json::Value;
use std::{env, fs};

/// The number of cases that are printed.
const PRINTED_MAX: usize = 100;

/// The cases, one per line.
fn cases() -> Vec<Value> {
    let text = match env::var_os("CRDCHECK_RANDOM_CASES") {
        Some(path) => fs::read_to_string(path).unwrap(),
        None => include_str!("../../samples/random_cases.jsonl").to_owned(),
    };
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The differences of a case.
fn differences(case: &Value) -> Vec<String> {
    let answer = match case.get("definition") {
        Some(definition) => Schema::from_crd(definition, "v1")
            .unwrap()
            .answer(&request(case)),
        None => answer_definition(&request(case)),
    };
    let it = compare(case, &answer);
    let measures = [
        it.outcome,
        it.decodes,
        it.stage,
        it.causes,
        it.strict,
        it.warnings,
        it.defaulted,
        it.costs,
    ];
    let differences = measures.into_iter().filter_map(|it| match it {
        Agreement::Differs(text) => Some(text),
        Agreement::Agrees | Agreement::NotMeasured => None,
    });
    differences.collect()
}

#[test]
fn random_cases_match_api_server() {
    let cases = cases();
    let mut failed = 0;
    for (line, case) in cases.iter().enumerate() {
        let differences = differences(case);
        failed += usize::from(!differences.is_empty());
        if !differences.is_empty() && failed <= PRINTED_MAX {
            println!("line {}: {}\n", line + 1, differences.join("\n"));
        }
    }
    assert_eq!(failed, 0, "of {} cases", cases.len());
}
