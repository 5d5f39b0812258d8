//! Converts decisions to the form of the data.

use lockkeeper_preemption::{Assignment, Mode, State, Victim};
use lockkeeper_scenario::{UsageAmount, quota_pairs};
use serde_json::{Map, Value, json};

pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::NoFit => "NoFit",
        Mode::Preempt => "Preempt",
        Mode::Fit => "Fit",
    }
}

/// The victims, sorted by name.
pub fn victims(state: &State, victims: &[Victim]) -> Vec<(String, String, String)> {
    let mut all: Vec<_> = victims
        .iter()
        .map(|it| {
            let queue = state.workload_view(it.workload).queue().unwrap();
            (
                state.workload_name(it.workload).to_owned(),
                state.node_view(queue).name().to_owned(),
                it.reason.as_str().to_owned(),
            )
        })
        .collect();
    all.sort();
    all
}

pub fn expected_victims(victims: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = victims
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            (
                text(&it["workload"]),
                text(&it["clusterQueue"]),
                text(&it["reason"]),
            )
        })
        .collect();
    all.sort();
    all
}

/// The differences between an assignment and the expected one.
pub fn assignment(state: &State, got: &Assignment, expected: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |what: &str, got: Value, expected: &Value| {
        if got != *expected {
            problems.push(format!("{what}: got {got}, expected {expected}"));
        }
    };
    check(
        "mode",
        mode(got.mode).into(),
        &expected["representativeMode"],
    );
    if !expected["borrowing"].is_null() && got.mode != Mode::NoFit {
        check(
            "borrowing",
            got.borrowing_level.into(),
            &expected["borrowing"],
        );
    }
    let pod_sets: Vec<Value> = got
        .pod_sets
        .iter()
        .map(|it| {
            let flavors: Map<String, Value> = it
                .flavors
                .iter()
                .map(|it| {
                    let tried = it
                        .tried_flavor_index
                        .map_or(-1, |at| i64::try_from(at).unwrap());
                    let flavor = json!({
                        "flavor": state.flavor_name(it.flavor), "mode": mode(it.mode),
                        "borrow": it.borrowing_level, "triedFlavorIdx": tried,
                    });
                    (state.resource_name(it.resource).to_owned(), flavor)
                })
                .collect();
            json!({"count": it.count, "mode": mode(it.mode), "flavors": flavors})
        })
        .collect();
    let expected: Vec<Value> = expected["podSets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| json!({"count": it["count"], "mode": it["mode"], "flavors": it["flavors"]}))
        .collect();
    check("podSets", pod_sets.into(), &expected.into());
    problems
}

pub fn amounts(
    state: &State,
    got: &[(
        lockkeeper_preemption::FlavorResource,
        lockkeeper_preemption::Amount,
    )],
) -> Vec<UsageAmount> {
    quota_pairs(state, got)
}

pub fn expected_amounts(value: &Value) -> Vec<UsageAmount> {
    let mut amounts: Vec<UsageAmount> = match value {
        Value::Null => Vec::new(),
        value => serde_json::from_value(value.clone()).unwrap(),
    };
    amounts.sort();
    amounts
}
