//! The order of candidates: the order of the victims in a search that needs all candidates.

use crate::data::{Case, Tally};
use lockkeeper_preemption::{CandidateVerdict, Compatibility, Step, Trace, WhatIf};
use lockkeeper_scenario::{Scenario, load};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub fn check(case: &Case, tally: &mut Tally) {
    let value = &case.value;
    let own = value["preemptorClusterQueue"].as_str().unwrap();
    let candidates = value["candidates"].as_array().unwrap();
    // The preemptor's queue has all the quota, and each candidate uses one of it.
    let queue = |name: &str, nominal: usize| {
        json!({
            "name": name, "cohort": "all",
            "resourceGroups": [{"resources": ["cpu"], "flavors": [
                {"name": "default", "quotas": [{"resource": "cpu", "nominal": nominal}]},
            ]}],
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        })
    };
    let names = candidates
        .iter()
        .map(|it| it["clusterQueue"].as_str().unwrap());
    let others: BTreeSet<&str> = names.filter(|name| *name != own).collect();
    let mut queues = vec![queue(own, candidates.len())];
    queues.extend(others.into_iter().map(|name| queue(name, 0)));
    let admitted: Vec<Value> = candidates
        .iter()
        .map(|it| {
            let mut it = it.clone();
            it["podSets"] = json!([{"requests": {"cpu": 1}, "flavors": {"cpu": "default"}}]);
            it
        })
        .collect();
    let scenario = json!({
        "now": value["now"], "clusterQueues": queues, "admitted": admitted,
        "incoming": {
            "name": "the preemptor", "clusterQueue": own, "priority": i32::MAX,
            "podSets": [{"requests": {"cpu": candidates.len()}}],
        },
    });
    let scenario: Scenario = serde_json::from_value(scenario).unwrap();
    let mut loaded = load(&scenario, Compatibility::Kueue).unwrap();
    let id = loaded.incoming.unwrap();
    let assignment = WhatIf::new(&mut loaded.state)
        .assign(id, &mut Trace::off())
        .unwrap();
    let mut trace = Trace::on();
    let (needs, request) = (assignment.needs(), assignment.usage);
    WhatIf::new(&mut loaded.state).search(id, &needs, &request, &mut trace);
    let taken = trace.steps().iter().filter_map(|step| match step {
        Step::Candidate {
            workload,
            verdict: CandidateVerdict::Selected,
            ..
        } => Some(loaded.state.workload_name(*workload)),
        _ => None,
    });
    let order = Value::from(taken.collect::<Vec<_>>());
    let mut problems = Vec::new();
    if order != value["wantOrder"] {
        problems.push(format!("got {order}, expected {}", value["wantOrder"]));
    }
    tally.count(case, &problems);
}
