//! A reduced dump gives the same answers, and without names none of them is left.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_explain::{
    Answer, NameReplacer, Selector, WorldBuilder, WorldSettings, explain, reduce_object,
};
use serde_json::Value;

const EXAMPLE: &str = include_str!("../../examples/explain/kueue.yaml");

fn objects() -> Vec<Value> {
    let mut list: Value = serde_saphyr::from_str(EXAMPLE).unwrap();
    list.get_mut("items")
        .and_then(Value::as_array_mut)
        .unwrap()
        .clone()
}

fn answer(objects: Vec<Value>, subject: &str) -> Answer {
    let mut builder = WorldBuilder::new();
    for object in objects {
        builder.add(object);
    }
    let world = builder.build(WorldSettings::default());
    assert_eq!(world.unreadable(), []);
    let key = world
        .find(&Selector::parse(subject, None).unwrap())
        .unwrap()
        .to_owned();
    explain(&world, &key).unwrap()
}

#[test]
fn reduced_objects_give_the_same_answers() {
    let mut reduced = objects();
    reduced.iter_mut().for_each(reduce_object);
    let text = serde_json::to_string(&reduced).unwrap();
    assert!(!text.contains("image"), "{text}");
    for job in ["job/train", "job/llama", "job/eval"] {
        assert_eq!(answer(reduced.clone(), job), answer(objects(), job));
    }
}

#[test]
fn replaced_names_leave_no_name_and_keep_the_answer() {
    let mut replacer = NameReplacer::new();
    let mut anonymous = objects();
    for object in &mut anonymous {
        reduce_object(object);
        replacer.replace(object);
    }
    let text = serde_json::to_string(&anonymous).unwrap();
    for name in [
        "team-a",
        "team-b",
        "research",
        "a100",
        "main\",\"namespace",
        "train",
        "llama",
        "eval",
        "urgent",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let before = answer(objects(), "job/train");
    // Jobs are numbered in the order of the workloads: llama, eval, train.
    let after = answer(anonymous, "job/job-3");
    assert_eq!(shortages(&after), shortages(&before));
    assert_eq!(after.changes.len(), before.changes.len());
}

/// What is missing of each flavor and resource.
fn shortages(answer: &Answer) -> Vec<&str> {
    answer.quota.iter().map(|it| it.short.as_str()).collect()
}
