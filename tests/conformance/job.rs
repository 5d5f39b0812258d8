//! Jobs under elastic quotas: the rules of Koordinator's proposal, and what Koordinator's code decided.

use lockkeeper_scenario::job::Case;
use serde_json::{Map, Value};

/// Remarks of the data that are not compared.
const UNCOMPARED_FIELDS: [&str; 1] = ["why"];

/// The fields with amounts, in which a resource with amount 0 may be listed or not.
const SUMS: [&str; 5] = [
    "job_total",
    "non_preemptible_used_plus_job",
    "used_plus_job",
    "min_of_min_and_np_request",
    "checked_sum",
];

/// The differences from the expected result. Fields that the case does not expect are not compared.
pub fn check(value: &Value) -> Vec<String> {
    let answer = match Case::parse(value.clone()).and_then(|it| it.decide()) {
        Ok(answer) => answer,
        Err(e) => return vec![e.to_string()],
    };
    let Some(expected) = value["expected"].as_object() else {
        return Vec::from_iter(differ("decision", &answer.decision, &value["expected"]));
    };
    let none = Map::new();
    let got = answer.decision.as_object().unwrap_or(&none);
    let mut problems = Vec::new();
    for (field, expected) in expected {
        if UNCOMPARED_FIELDS.contains(&field.as_str()) {
            continue;
        }
        let got = got.get(field).unwrap_or(&Value::Null);
        if SUMS.contains(&field.as_str()) {
            problems.extend(differ(field, &without_zeros(got), &without_zeros(expected)));
        } else {
            problems.extend(differ(field, got, expected));
        }
    }
    problems
}

fn without_zeros(amounts: &Value) -> Value {
    let mut amounts = amounts.clone();
    if let Some(amounts) = amounts.as_object_mut() {
        amounts.retain(|_, amount| *amount != 0);
    }
    amounts
}

fn differ(what: &str, got: &Value, expected: &Value) -> Option<String> {
    (got != expected).then(|| format!("{what}: got {got}, expected {expected}"))
}
