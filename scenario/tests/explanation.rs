//! The story leaves nothing out: every step of a trace has a name of its own, for programs and for people.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_preemption::{Compatibility, Decision};
use lockkeeper_scenario::explanation;
use lockkeeper_scenario::{Scenario, load};
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// Limits, and pods of which fewer will do.
const LIMITED: &str = r#"
maxVictimsPerCycle: 1
now: 100
clusterQueues:
- name: owner
  cohort: all
  resourceGroups: [{resources: [cpu], flavors: [{name: f, quotas: [{resource: cpu, nominal: "3"}]}]}]
  preemption: {reclaimWithinCohort: Any, limits: {reclaimMaxPriorityThreshold: 5}}
- name: guest
  cohort: all
  resourceGroups: [{resources: [cpu], flavors: [{name: f, quotas: [{resource: cpu, nominal: "0"}]}]}]
  preemption: {limits: {reclaimMinRunSeconds: 50}}
admitted:
- {name: young, clusterQueue: guest, quotaReservedTime: 90, podSets: [{requests: {cpu: "1"}, flavors: {cpu: f}}]}
- {name: old, clusterQueue: guest, quotaReservedTime: 1, podSets: [{requests: {cpu: "1"}, flavors: {cpu: f}}]}
- {name: high, clusterQueue: guest, priority: 9, quotaReservedTime: 1, podSets: [{requests: {cpu: "1"}, flavors: {cpu: f}}]}
pending:
- {name: elastic, clusterQueue: owner, priority: 3, podSets: [{count: 3, minCount: 2, requests: {cpu: "3"}}]}
"#;

/// Runs some cycles with damping. Preempted workloads stop one by one, the last preempted first. Returns the names of
/// the steps.
fn steps(name: &str, text: &str, seconds: i64) -> BTreeSet<String> {
    let mut scenario: Scenario = serde_saphyr::from_str(text).unwrap();
    scenario.damping = Some(true);
    let mut state = load(&scenario, Compatibility::Lockkeeper).unwrap().state;
    let mut leaving = VecDeque::new();
    let mut seen = BTreeSet::new();
    for round in 1..=12 {
        let cycle = state.next_cycle(scenario.now + round * seconds, true);
        for entry in &cycle.entries {
            let json = explanation::entry_json(&state, entry);
            for step in json["trace"].as_array().unwrap() {
                assert!(!step.to_string().contains("\"other\""), "{name}: {step}");
                seen.insert(step["step"].as_str().unwrap().to_owned());
            }
            let mut text = String::new();
            explanation::write_entry(&mut text, &state, entry).unwrap();
            let (_, considered) = text.split_once("in order\n").unwrap_or_default();
            let lines = considered.lines().count();
            let steps = entry.trace.steps().len();
            assert_eq!(lines, steps, "{name}: {steps} steps in\n{text}");
            if let Decision::Preempt(victims) = &entry.decision {
                let evicted = victims.iter().map(|it| it.workload);
                let new: Vec<_> = evicted.filter(|it| !leaving.contains(it)).collect();
                leaving.extend(new);
            }
        }
        if let Some(victim) = leaving.pop_back() {
            state.release(victim);
        }
    }
    seen
}

#[test]
fn trace_steps_all_have_a_name() {
    let loops = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops");
    let mut seen = BTreeSet::new();
    for folder in [loops.clone(), loops.join("fixed")] {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "yaml") {
                let text = fs::read_to_string(&path).unwrap();
                seen.extend(steps(&path.display().to_string(), &text, 1));
            }
        }
    }
    seen.extend(steps("limits, early", LIMITED, 1));
    let old_enough = LIMITED.replace("Threshold: 5", "Threshold: 9");
    seen.extend(steps("limits, late", &old_enough, 100));
    let all = [
        "attempt",
        "candidate",
        "displaced",
        "fewerPods",
        "filledBack",
        "flavor",
        "held",
        "inVain",
        "overBudget",
        "queue",
        "search",
        "searched",
        "spared",
        "stands",
        "thresholds",
    ];
    let missing: Vec<_> = all.iter().filter(|it| !seen.contains(**it)).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}");
}
