//! Generated scenes.

use super::objects::{class, cohort, flavor, pod, queue, quota, workload};
use super::*;

/// The strategies for the parts of objects.
pub(super) struct LeafStrategies {
    pub(super) names: BoxedStrategy<String>,
    pub(super) amounts: BoxedStrategy<Value>,
}

/// Few names and amounts, so that duplicates and exact limits are frequent.
pub(super) fn well_formed() -> LeafStrategies {
    let names = select(vec!["a", "b", "c"]);
    let amounts = select(vec!["0", "1", "2", "2000m", "-1"]);
    LeafStrategies {
        names: names.prop_map(str::to_owned).boxed(),
        amounts: amounts.prop_map(Value::from).boxed(),
    }
}

/// Any object that decodes.
pub(super) fn malformed() -> LeafStrategies {
    // Three bytes per character, so that truncation at a power of two splits one.
    let long = "€".repeat(70);
    let odd = [
        "",
        "].a[0]",
        "a.b/c~1",
        "\u{0}\u{1b}[31m",
        "*",
        long.as_str(),
    ];
    let odd: Vec<String> = odd.into_iter().map(str::to_owned).collect();
    let amounts = vec![
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-0.1),
        json!("1e20"),
        json!("170141183460469231731687303715884105727n"),
        json!("-170141183460469231731687303715884105727n"),
        json!("8Ei"),
    ];
    LeafStrategies {
        names: prop_oneof![well_formed().names, select(odd), any::<String>()].boxed(),
        amounts: prop_oneof![well_formed().amounts, select(amounts)].boxed(),
    }
}

pub(super) fn scenario(leaves: &LeafStrategies) -> impl Strategy<Value = Scenario> + use<> {
    let kinds = [queue, cohort, flavor, workload, class, pod, quota];
    let pairs = kinds.map(|kind| (kind(leaves), kind(leaves)).boxed());
    // Kinds with more rules are generated more often.
    let pair = select(vec![0_usize, 0, 0, 1, 2, 3, 3, 3, 4, 5, 5, 6, 6, 6])
        .prop_flat_map(move |kind| pairs[kind].clone());
    let picks = vec(any::<bool>(), 16);
    let order = vec(any::<u8>(), 8);
    let known = any::<bool>();
    let around = (config(), world(leaves), known, metadata());
    (pair, picks, order, around).prop_map(
        |((old, other), picks, order, (config, world, known, metadata))| Scenario {
            config,
            world,
            known,
            new: update(&old, &other, &picks),
            old,
            metadata,
            order,
        },
    )
}

/// The old object with some parts of another one.
pub(super) fn update(old: &Value, other: &Value, picks: &[bool]) -> Value {
    let mut new = merged(old, other, &mut picks.iter().copied().cycle());
    for key in ["name", "namespace"] {
        new["metadata"][key] = old["metadata"][key].clone();
    }
    new
}

pub(super) fn merged(old: &Value, other: &Value, picks: &mut dyn Iterator<Item = bool>) -> Value {
    match (old, other) {
        (Value::Object(old), Value::Object(other)) => {
            let mut new = old.clone();
            for (key, value) in other {
                if let Some(before) = new.get_mut(key) {
                    *before = merged(before, value, picks);
                } else if picks.next().unwrap() {
                    new.insert(key.clone(), value.clone());
                }
            }
            Value::Object(new)
        }
        (Value::Array(old), Value::Array(other)) if old.len() == other.len() => {
            let items = old.iter().zip(other);
            items
                .map(|(old, other)| merged(old, other, picks))
                .collect()
        }
        _ if picks.next().unwrap() => other.clone(),
        _ => old.clone(),
    }
}

pub(super) fn config() -> impl Strategy<Value = Value> {
    let rules: Vec<&str> = registry::all().iter().map(|rule| rule.id).collect();
    let action = select(vec!["enforce", "warn", "audit", "off"]);
    let actions = btree_map(select(rules), action, 0..24);
    let above = option::of(select(vec![0, 5]));
    let allowed = option::of(vec(classes(), 0..2));
    (actions, above, allowed, any::<bool>()).prop_map(|(actions, above, allowed, disabled)| {
        let caps = json!({
            "maxPreemptionAboveScheduling": above, "separatePreemptionAllowedFor": allowed,
        });
        let job = json!({"disableDefaultPreemptiable": disabled});
        json!({"rules": {"actions": actions}, "priority": caps, "job": job})
    })
}

pub(super) fn classes() -> impl Strategy<Value = String> {
    select(vec!["low", "high", "lost", "system-node-critical"]).prop_map(str::to_owned)
}

/// PriorityClasses, objects that use them, and pods of jobs, with distinct names.
pub(super) fn world(leaves: &LeafStrategies) -> impl Strategy<Value = Vec<Value>> + use<> {
    let some = |kind: BoxedStrategy<Value>| vec(kind, 0..4);
    let sets = (
        some(class(leaves)),
        some(workload(leaves)),
        some(pod(leaves)),
        some(quota(leaves)),
    );
    sets.prop_map(|(classes, workloads, pods, quotas)| {
        let mut world = BTreeMap::new();
        for object in [classes, workloads, pods, quotas].concat() {
            world.insert(
                format!("{} {}", object["kind"], object["metadata"]["name"]),
                object,
            );
        }
        world.into_values().collect()
    })
}

pub(super) fn metadata() -> impl Strategy<Value = Value> {
    let words = || option::of(btree_map("[a-z]{1,3}", "[a-z]{0,3}", 0..3));
    let finalizers = option::of(vec("[a-z]{1,3}/[a-z]{1,3}", 0..2));
    let deleted = option::of(Just("2026-01-01T00:00:00Z"));
    (words(), words(), finalizers, deleted).prop_map(
        |(labels, annotations, finalizers, deleted)| {
            json!({
                "labels": labels, "annotations": annotations, "finalizers": finalizers,
                "deletionTimestamp": deleted,
            })
        },
    )
}
