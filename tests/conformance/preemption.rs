//! Nominations of one workload.

use crate::compare;
use crate::data::{Case, Tally};
use crate::ordering;
use lockkeeper_preemption::{
    Amount, Compatibility, FlavorResource, Mode, State, Trace, WhatIf, WorkloadId,
};
use lockkeeper_scenario::{LoadedScenario, Scenario, load};
use serde_json::Value;

pub fn check(case: &Case, tally: &mut Tally) {
    let value = &case.value;
    if value["schema"] == "kueue-candidate-ordering/1" {
        ordering::check(case, tally);
        return;
    }
    if value["expected"]["deterministic"] == false || value["assignment"]["deterministic"] == false
    {
        tally.skip(case);
        return;
    }
    let scenario: Scenario = serde_json::from_value(value.clone()).unwrap();
    let LoadedScenario {
        mut state,
        incoming,
        ..
    } = load(&scenario, Compatibility::Kueue).unwrap();
    let id = incoming.expect("an incoming workload");
    let mut problems = Vec::new();
    let assignment = &value["assignment"];
    if assignment["source"] == "flavorassigner" {
        let got = WhatIf::new(&mut state)
            .assign(id, &mut Trace::off())
            .unwrap();
        problems.extend(compare::assignment(&state, &got, assignment));
        let victims = match got.mode {
            Mode::Preempt => {
                WhatIf::new(&mut state).search(id, &got.needs(), &got.usage, &mut Trace::off())
            }
            _ => Vec::new(),
        };
        let got = compare::victims(&state, &victims);
        let expected = compare::expected_victims(&value["expected"]["victims"]);
        if got != expected {
            problems.push(format!("victims: got {got:?}, expected {expected:?}"));
        }
    } else {
        problems.extend(search(&mut state, id, assignment, &value["expected"]));
    }
    for direct in value["direct"].as_array().into_iter().flatten() {
        problems.extend(search(
            &mut state,
            id,
            &direct["assignment"],
            &direct["expected"],
        ));
    }
    tally.count(case, &problems);
}

/// Searches for victims for a given assignment.
fn search(
    state: &mut State,
    id: WorkloadId,
    assignment: &Value,
    expected: &Value,
) -> Option<String> {
    if expected["deterministic"] == false || expected["preemptorCalled"] == false {
        return None;
    }
    let needs: Vec<FlavorResource> = pairs(state, &assignment["needPreemption"])
        .into_iter()
        .map(|(of, _)| of)
        .collect();
    let request = pairs(state, &assignment["totalRequests"]);
    let victims = WhatIf::new(state).search(id, &needs, &request, &mut Trace::off());
    let got = compare::victims(state, &victims);
    let expected = compare::expected_victims(&expected["victims"]);
    (got != expected)
        .then(|| format!("victims for {assignment}: got {got:?}, expected {expected:?}"))
}

fn pairs(state: &mut State, value: &Value) -> Vec<(FlavorResource, Amount)> {
    let all = value.as_array().into_iter().flatten();
    all.map(|it| {
        let of = FlavorResource {
            flavor: state.flavor(it["flavor"].as_str().unwrap()),
            resource: state.resource(it["resource"].as_str().unwrap()),
        };
        (of, Amount::new(it["amount"].as_i64().unwrap_or_default()))
    })
    .collect()
}
