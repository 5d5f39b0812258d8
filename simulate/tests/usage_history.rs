//! The use of quota over time agrees with the totals of simulations.
#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use lockkeeper_simulate::timeline::{JobTrace, Outcome, Timeline, simulate, usage_history};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

fn trace(value: Value) -> JobTrace {
    serde_json::from_value(value).unwrap()
}

/// By queue, flavor and resource: the integral until the last instant, and the peak.
fn totals(trace: &JobTrace, timeline: &Timeline) -> Vec<(String, String, String, i64, i64)> {
    let until_s = timeline.events.last().map_or(0, |it| it.at_s);
    let histories = usage_history(trace, timeline).into_iter();
    let totals = histories.map(|history| {
        let mut integral = 0;
        for (at, (from_s, amount)) in history.steps.iter().enumerate() {
            let to_s = history.steps.get(at + 1).map_or(until_s, |it| it.0);
            integral += amount * (to_s - from_s);
        }
        let peak = history.steps.iter().map(|it| it.1).max().unwrap();
        let queue = trace.cluster_queues.get(history.queue).unwrap();
        let name = queue.name.clone();
        (name, history.flavor, history.resource, integral, peak)
    });
    let mut totals: Vec<_> = totals.collect();
    totals.sort();
    totals
}

fn random_queue(rng: &mut Rng, name: &str) -> Value {
    let flavor = |rng: &mut Rng, name: &str| {
        json!({"name": name, "quotas": [
            {"resource": "cpu", "nominal": 1 + rng.below(6_u64)},
            {"resource": "pods", "nominal": 2 + rng.below(9_u64)},
        ]})
    };
    json!({
        "name": name,
        "cohort": "all",
        "resourceGroups": [{
            "resources": ["cpu", "pods"],
            "flavors": [flavor(rng, "one"), flavor(rng, "two")],
        }],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    })
}

fn random_trace(seed: u64) -> Value {
    let mut rng = Rng::new(seed);
    let queues: Vec<Value> = ["a", "b"]
        .iter()
        .map(|name| random_queue(&mut rng, name))
        .collect();
    let mut arrival = 0;
    let mut jobs = Vec::new();
    for number in 0..30 {
        arrival += rng.below(4_u64);
        let count = 1 + rng.below(4_u64);
        jobs.push(json!({
            "name": format!("j{number}"), "clusterQueue": rng.pick(&["a", "b"]), "arrival": arrival,
            "runSeconds": 1 + rng.below(20_u64), "priority": rng.below(3_u64),
            "podSets": [
                {"count": count, "minCount": 1, "requests": {"cpu": count * rng.below(3_u64)}},
                {"name": "driver", "count": 1, "requests": {"cpu": 1}},
            ],
        }));
    }
    json!({
        "clusterQueues": queues, "jobs": jobs, "mode": rng.pick(&["restart", "resume"]),
        "gracePeriodSeconds": rng.pick(&[0, 3]), "maxCyclesPerInstant": 200, "maxPreemptionsPerJob": 20,
    })
}

#[test]
fn usage_history_agrees_with_totals_of_random_traces() {
    let (mut preemptions, mut partial) = (0, 0);
    for seed in 0..200 {
        let trace = trace(random_trace(seed));
        let timeline = simulate(&trace).unwrap();
        if timeline.outcome == Outcome::Livelock {
            continue;
        }
        preemptions += timeline.stats.preemptions;
        let mut runs = timeline.jobs.iter().flat_map(|it| &it.runs);
        partial += usize::from(runs.any(|it| it.assignment.counts.is_some()));
        let usage = timeline.usage.iter().map(|it| {
            let names = (&it.cluster_queue, &it.flavor, &it.resource);
            let names = (names.0.clone(), names.1.clone(), names.2.clone());
            (names.0, names.1, names.2, it.integral, it.peak)
        });
        let usage: Vec<_> = usage.collect();
        assert_eq!(totals(&trace, &timeline), usage, "seed {seed}");
    }
    assert!(
        preemptions > 100 && partial > 10,
        "{preemptions} preemptions, {partial} traces with partial admission"
    );
}
