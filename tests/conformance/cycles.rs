//! Consecutive cycles, with events between them.

use crate::compare;
use crate::data::{Case, Tally};
use lockkeeper_preemption::{
    Compatibility, Cycle, Decision, Entry, RequeueDestination, RequeueReason, SkipReason, State,
    WorkloadId,
};
use lockkeeper_scenario::{LoadedScenario, Scenario, load};
use serde_json::{Map, Value, json};

pub fn check(case: &Case, tally: &mut Tally) {
    let value = &case.value;
    let scenario: Scenario = serde_json::from_value(value.clone()).unwrap();
    let mut loaded = load(&scenario, Compatibility::Kueue).unwrap();
    let mut problems = Vec::new();
    for expected in value["cycles"].as_array().unwrap() {
        let number = &expected["cycle"];
        let cycle = loaded
            .state
            .next_cycle(expected["now"].as_i64().unwrap(), false);
        let mut found = Vec::from_iter(heads(&loaded.state, &cycle, expected));
        found.extend(entries(&loaded.state, &cycle, expected));
        found.extend(queues(&loaded.state, &expected["queuesAfterCycle"]));
        found.extend(events(&mut loaded, expected));
        if !found.is_empty() {
            let at = |it: String| format!("cycle {number}: {it}");
            problems.extend(found.into_iter().map(at));
            break;
        }
    }
    if problems.is_empty() {
        problems.extend(compare_final_state(&loaded, &value["final"]));
    }
    tally.count(case, &problems);
}

fn differ(what: &str, got: &Value, expected: &Value) -> Option<String> {
    (got != expected).then(|| format!("{what}:\n    got      {got}\n    expected {expected}"))
}

fn name(state: &State, id: WorkloadId) -> &str {
    state.workload_name(id)
}

fn heads(state: &State, cycle: &Cycle, expected: &Value) -> Option<String> {
    let mut got: Vec<Value> = cycle
        .heads
        .iter()
        .map(|it| json!([name(state, it.workload), it.is_sticky]))
        .collect();
    got.extend(
        cycle
            .out_of_scope
            .iter()
            .map(|it| json!([name(state, *it), false])),
    );
    let all = expected["heads"].as_array().into_iter().flatten();
    let mut expected: Vec<Value> = all
        .map(|it| json!([it["workload"], it["isPreemptor"] == true]))
        .collect();
    let key = |it: &Value| it.to_string();
    got.sort_by_key(key);
    expected.sort_by_key(key);
    differ("heads", &got.into(), &expected.into())
}

fn entries(state: &State, cycle: &Cycle, expected: &Value) -> Vec<String> {
    let all: Vec<&Value> = expected["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let order: Vec<&str> = cycle
        .entries
        .iter()
        .map(|it| name(state, it.workload))
        .collect();
    let expected_order: Vec<&str> = all
        .iter()
        .map(|it| it["workload"].as_str().unwrap())
        .collect();
    let mut problems = Vec::new();
    if order != expected_order {
        problems.push(format!("order: got {order:?}, expected {expected_order:?}"));
    }
    for expected in all {
        let entry = cycle
            .entries
            .iter()
            .find(|it| name(state, it.workload) == expected["workload"]);
        let Some(entry) = entry else {
            problems.push(format!("no entry for {}", expected["workload"]));
            continue;
        };
        let found = compare_entry(state, entry, expected);
        let who = name(state, entry.workload);
        problems.extend(found.into_iter().map(|it| format!("{who}: {it}")));
    }
    problems
}

fn compare_entry(state: &State, entry: &Entry, expected: &Value) -> Vec<String> {
    let mut problems = compare::assignment(state, &entry.nominated, &expected["nominated"]);
    let got = compare::victims(state, &entry.nominated_victims);
    let wanted = compare::expected_victims(&expected["nominatedTargets"]);
    if got != wanted {
        problems.push(format!(
            "nominated victims: got {got:?}, expected {wanted:?}"
        ));
    }
    let (decision, victims) = decision(&entry.decision);
    problems.extend(differ("decision", &decision.into(), &expected["decision"]));
    let got = compare::victims(state, victims);
    let wanted = compare::expected_victims(&expected["victims"]);
    if got != wanted {
        problems.push(format!("victims: got {got:?}, expected {wanted:?}"));
    }
    if expected["recomputed"].is_null() != entry.recomputed.is_none() {
        problems.push(format!("recomputed: expected {}", expected["recomputed"]));
    } else if let Some(got) = &entry.recomputed
        && decision != "deferredFit"
    {
        problems.extend(compare::assignment(state, got, &expected["recomputed"]));
    }
    let got = compare::amounts(state, &entry.reserved);
    let wanted = compare::expected_amounts(&expected["reserved"]);
    if got != wanted {
        problems.push(format!("reserved: got {got:?}, expected {wanted:?}"));
    }
    if let Decision::Skip(reason) = entry.decision {
        let reason = match reason {
            SkipReason::NoLongerFits => "noLongerFits",
            SkipReason::OverlappingVictims => "overlappingPreemptionTargets",
            SkipReason::BorrowingGate => "borrowingGate",
            SkipReason::VictimLimit => "budget",
        };
        problems.extend(differ(
            "skipReason",
            &reason.into(),
            &expected["skipReason"],
        ));
    }
    let (reason, to) = match entry.requeued {
        Some((reason, to)) => (json!(requeue_reason(reason)), json!(requeued_to(to))),
        None => (Value::Null, Value::Null),
    };
    problems.extend(differ("requeueReason", &reason, &expected["requeueReason"]));
    problems.extend(differ("requeuedTo", &to, &expected["requeuedTo"]));
    problems
}

fn decision(decision: &Decision) -> (&'static str, &[lockkeeper_preemption::Victim]) {
    match decision {
        Decision::Admit => ("admitted", &[]),
        Decision::Preempt(victims) => ("preempting", victims),
        Decision::Skip(_) => ("skipped", &[]),
        Decision::DeferredFit => ("deferredFit", &[]),
        Decision::NoCandidates => ("preemptNoCandidates", &[]),
        Decision::NoFit => ("noFit", &[]),
    }
}

fn requeue_reason(reason: RequeueReason) -> &'static str {
    match reason {
        RequeueReason::FailedAfterNomination => "FailedAfterNomination",
        RequeueReason::PendingPreemption => "PendingPreemption",
        RequeueReason::PreemptionNoCandidates => "PreemptionNoCandidates",
        RequeueReason::NoFit => "NoFit",
        RequeueReason::NamespaceMismatch => "NamespaceMismatch",
    }
}

fn requeued_to(to: RequeueDestination) -> &'static str {
    match to {
        RequeueDestination::Active => "active",
        RequeueDestination::Inadmissible => "inadmissible",
    }
}

fn queues(state: &State, expected: &Value) -> Option<String> {
    let mut got = Map::new();
    for (queue, id) in state.queues() {
        let names = |ids: Vec<WorkloadId>| -> Vec<String> {
            ids.into_iter()
                .map(|it| name(state, it).to_owned())
                .collect()
        };
        let active = names(state.node_view(id).active());
        let mut parked = names(state.node_view(id).inadmissible());
        parked.sort();
        if !(active.is_empty() && parked.is_empty()) {
            let places = json!({"active": active, "inadmissible": parked});
            got.insert(queue.to_owned(), places);
        }
    }
    differ("queues", &got.into(), expected)
}

/// Applies the events after a cycle.
fn events(loaded: &mut LoadedScenario, expected: &Value) -> Option<String> {
    let list = |key: &str| -> Vec<String> {
        let all = expected[key].as_array().into_iter().flatten();
        all.map(|it| {
            it.as_str()
                .unwrap_or_else(|| it["workload"].as_str().unwrap())
                .to_owned()
        })
        .collect()
    };
    let state = &mut loaded.state;
    let queues: Vec<_> = state.queues().map(|(_, id)| id).collect();
    let all_parked = |state: &State| -> Vec<WorkloadId> {
        let queues = queues.iter();
        queues
            .flat_map(|queue| state.node_view(*queue).inadmissible())
            .collect()
    };
    let parked = all_parked(state);
    for workload in list("evictedAfter") {
        let id = state.workload(&workload).expect("an admitted workload");
        state.release(id);
    }
    let mut gone = Vec::new();
    for workload in list("finishedAfter")
        .into_iter()
        .chain(list("deletedAfter"))
    {
        let id = state.workload(&workload).expect("an existing workload");
        gone.push(id);
        state.remove(id);
    }
    let left = all_parked(state);
    let mut moved: Vec<String> = parked
        .into_iter()
        .filter(|it| !gone.contains(it) && !left.contains(it))
        .map(|it| name(state, it).to_owned())
        .collect();
    moved.sort();
    let mut wanted = list("movedToActiveAfter");
    wanted.sort();
    for workload in list("arrivedAfter") {
        let late = loaded.late.remove(&workload).expect("a late workload");
        loaded.add_pending(&late);
    }
    differ("moved to active", &moved.into(), &wanted.into())
}

fn compare_final_state(loaded: &LoadedScenario, expected: &Value) -> Vec<String> {
    let mut problems: Vec<String> = queues(&loaded.state, &expected["queues"])
        .into_iter()
        .collect();
    for (queue, usage) in expected["usage"].as_object().into_iter().flatten() {
        let node = loaded.state.queue(queue).expect("a queue");
        let got = loaded.usage(node);
        let wanted = compare::expected_amounts(usage);
        if got != wanted {
            problems.push(format!(
                "usage of {queue}: got {got:?}, expected {wanted:?}"
            ));
        }
    }
    problems
}
