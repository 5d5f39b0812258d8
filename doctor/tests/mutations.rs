//! Objects with random faults cause no panic: neither in the checks nor in the answers about workloads.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print their counts"
)]

use lockkeeper_doctor::{Kind, Snapshot, diagnose};
use lockkeeper_explain::{
    NameReplacer, Project, WorldBuilder, WorldSettings, compare, explain, pending_pod_sets,
    pending_workloads, quota_rows, reduce_object, write_answer,
};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z.
const NOW_S: i64 = 1_767_225_600;

const ROUNDS: u64 = 200;

/// The lists of objects that are mutated.
fn samples() -> Vec<Vec<Value>> {
    let example: Value =
        serde_saphyr::from_str(include_str!("../../examples/explain/kueue.yaml")).unwrap();
    let cases: Vec<Value> = serde_saphyr::from_str(include_str!("cases.yaml")).unwrap();
    let lists = cases.iter().filter_map(|it| it.get("objects"));
    let lists = lists.chain(example.get("items"));
    lists.map(|it| it.as_array().unwrap().clone()).collect()
}

/// A value that no schema was applied to.
fn fault(rng: &mut Rng) -> Value {
    let values = [
        json!(null),
        json!(-1),
        json!(i64::MAX),
        json!(1e300),
        json!(""),
        json!("9223372036854775807"),
        json!("99999999999999999999Ei"),
        json!("1m"),
        json!("-5"),
        json!("true"),
        json!([]),
        json!({}),
        json!([null]),
        json!("2025-12-31T23:59:60Z"),
        json!("main"),
        json!("team-a"),
    ];
    rng.pick(&values).clone()
}

/// Replaces one value at a random place.
fn mutate(value: &mut Value, rng: &mut Rng) {
    let stops = rng.one_in(6);
    match value {
        Value::Array(items) if !items.is_empty() && !stops => {
            let at = rng.below(items.len());
            if rng.one_in(8) {
                let copy = items.get(at).unwrap().clone();
                items.push(copy);
            } else {
                mutate(items.get_mut(at).unwrap(), rng);
            }
        }
        Value::Object(fields) if !fields.is_empty() && !stops => {
            let at = rng.below(fields.len());
            let key = fields.keys().nth(at).unwrap().clone();
            if rng.one_in(8) {
                fields.remove(&key);
            } else {
                mutate(fields.get_mut(&key).unwrap(), rng);
            }
        }
        _ => *value = fault(rng),
    }
}

#[test]
fn objects_with_faults_cause_no_panic() {
    let samples = samples();
    let mut answers = 0_u32;
    let mut findings = 0;
    for seed in 0..ROUNDS {
        let mut rng = Rng::new(seed);
        for sample in &samples {
            let mut objects = sample.clone();
            for _ in 0..=rng.below(3_u64) {
                let at = rng.below(objects.len());
                mutate(objects.get_mut(at).unwrap(), &mut rng);
            }
            findings += check(&objects);
            answers += answer_all(&objects);
        }
    }
    println!("{answers} answers, {findings} findings");
    // Most objects are still valid: otherwise nothing is tested.
    assert!(answers > 500 && findings > 500, "{answers} {findings}");
}

fn check(objects: &[Value]) -> usize {
    let mut snapshot = Snapshot::new();
    for object in objects {
        snapshot.add(object.clone());
    }
    for kind in [
        Kind::Service,
        Kind::EndpointSlice,
        Kind::PodDisruptionBudget,
    ] {
        snapshot.mark_complete(kind);
    }
    for endpoint in snapshot.endpoints() {
        let _ = snapshot.addresses(&endpoint);
    }
    diagnose(&snapshot, &WorldSettings::default(), &[], NOW_S)
        .findings
        .len()
}

fn answer_all(objects: &[Value]) -> u32 {
    let mut builder = WorldBuilder::new();
    let mut changed = WorldBuilder::new();
    let mut replacer = NameReplacer::new();
    for (at, object) in objects.iter().enumerate() {
        builder.add(object.clone());
        if at % 3 != 0 {
            changed.add(object.clone());
        }
        let mut reduced = object.clone();
        reduce_object(&mut reduced);
        replacer.replace(&mut reduced);
    }
    let mut answers = 0;
    for project in [Project::Lockkeeper, Project::Kueue] {
        let settings = WorldSettings {
            project: Some(project),
            ..WorldSettings::default()
        };
        let world = builder.clone().build(settings.clone());
        let _ = pending_workloads(&world);
        let _ = quota_rows(&world);
        let _ = pending_pod_sets(&world);
        let _ = compare(&world, &changed.clone().build(settings));
        for key in world.workload_keys() {
            if let Some(answer) = explain(&world, key) {
                write_answer(&mut String::new(), &answer).unwrap();
                answers += 1;
            }
        }
    }
    answers
}
