//! The assignment of flavors without preemption.

use crate::compare;
use crate::data::{Case, Tally};
use lockkeeper_preemption::{Compatibility, FlavorResource, Possibility, WhatIf};
use lockkeeper_scenario::{LoadedScenario, Scenario, load};
use serde_json::Value;

pub fn check(case: &Case, tally: &mut Tally) {
    let value = &case.value;
    let scenario: Scenario = serde_json::from_value(value.clone()).unwrap();
    let LoadedScenario {
        mut state,
        incoming,
        ..
    } = load(&scenario, Compatibility::Kueue).unwrap();
    let id = incoming.expect("an incoming workload");
    let simulation = &value["preemptionSimulation"];
    let names = state.clone();
    let answer = |of: FlavorResource, level: u32| {
        let flavor = names.flavor_name(of.flavor);
        let resource = names.resource_name(of.resource);
        let mut results = simulation["results"].as_array().into_iter().flatten();
        let given = results
            .find(|it| it["flavor"] == flavor && it["resource"] == resource)
            .unwrap_or(&simulation["default"]);
        let _ = level;
        (
            possibility(given),
            u32::try_from(given["borrow"].as_u64().unwrap_or(0)).unwrap(),
        )
    };
    let got = WhatIf::new(&mut state).assign_assuming(id, answer).unwrap();
    let mut problems = compare::assignment(&state, &got, &value["expected"]);
    let usage = compare::amounts(&state, &got.usage);
    let expected = compare::expected_amounts(&value["expected"]["usage"]);
    if usage != expected && value["expected"]["representativeMode"] != "NoFit" {
        problems.push(format!("usage: got {usage:?}, expected {expected:?}"));
    }
    tally.count(case, &problems);
}

fn possibility(given: &Value) -> Possibility {
    match given["possibility"].as_str() {
        Some("Preempt") => Possibility::Preempt,
        Some("Reclaim") => Possibility::Reclaim,
        _ => Possibility::NoCandidates,
    }
}
