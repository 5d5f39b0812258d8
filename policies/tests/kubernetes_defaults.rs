//! Kubernetes' own defaults. Defaulting is idempotent.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests fail by panicking")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "cases read better with values"
)]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Config;
use lockkeeper_api::foreign::scheduling::PodGroup;
use lockkeeper_policies::defaulting::DefaultedField;
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Value, json};

/// The classes of a cluster: `low` is the default.
fn index(has_default: bool) -> Index {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    let class = |name, value, default: bool| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "globalDefault": default,
            "preemptionPolicy": "Never",
        })
    };
    for class in [class("low", 10, has_default), class("high", 1000, false)] {
        facts::ingest(&mut index, &class).unwrap();
    }
    index
}

/// The object with its defaults.
fn defaulted<T: ValidatedKind>(
    object: &Value,
    old: Option<&Value>,
    index: &Index,
    gates: &Value,
) -> Value {
    let config: Config = serde_json::from_value(json!({"rules": {"featureGates": gates}})).unwrap();
    let context = Context {
        cluster: index,
        settings: &registry::settings(&config).unwrap(),
    };
    let decoded = |object: &Value| -> T { serde_json::from_value(object.clone()).unwrap() };
    let defaults = T::defaults(&decoded(object), old.map(decoded).as_ref(), &context);
    let add = |it: &DefaultedField| json!({"op": "add", "path": it.pointer, "value": it.value});
    let operations = defaults.items().iter().map(add).collect();
    let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
    let mut out = object.clone();
    json_patch::patch(&mut out, &patch).unwrap();
    out
}

/// Checks the defaults, and that a second defaulting has no effect.
#[track_caller]
fn check<T: ValidatedKind>(
    object: Value,
    old: Option<Value>,
    index: &Index,
    gates: Value,
    expected: Value,
) {
    let once = defaulted::<T>(&object, old.as_ref(), index, &gates);
    assert_eq!(once, expected);
    assert_eq!(defaulted::<T>(&once, old.as_ref(), index, &gates), expected);
}

#[test]
fn priority_class_preemption_policy_is_defaulted() {
    let empty = Index::default();
    let class = |policy: &str| json!({"metadata": {}, "value": 1, "preemptionPolicy": policy});
    let bare = json!({"metadata": {}, "value": 1});
    let filled = class("PreemptLowerPriority");
    check::<PriorityClass>(bare, None, &empty, json!({}), filled);
    check::<PriorityClass>(class("Never"), None, &empty, json!({}), class("Never"));
}

#[test]
fn pod_priority_is_defaulted_on_create_only() {
    let none = || json!({});
    let bare = || json!({"metadata": {}, "spec": {"containers": []}});
    let named = |class: &str| {
        let mut pod = bare();
        pod["spec"]["priorityClassName"] = class.into();
        pod
    };
    let with = |mut pod: Value, priority: i32, policy: &str| {
        pod["spec"]["priority"] = priority.into();
        pod["spec"]["preemptionPolicy"] = policy.into();
        pod
    };
    let high = with(named("high"), 1000, "Never");
    let low = with(named("low"), 10, "Never");
    let zero = with(bare(), 0, "PreemptLowerPriority");
    check::<Pod>(named("high"), None, &index(true), none(), high.clone());
    check::<Pod>(bare(), None, &index(true), none(), low.clone());
    check::<Pod>(bare(), None, &index(false), none(), zero);
    // The class is unknown, or all classes are.
    check::<Pod>(named("lost"), None, &index(true), none(), named("lost"));
    check::<Pod>(bare(), None, &Index::default(), none(), bare());
    // An update keeps the values of the stored pod, even if the classes changed.
    let kept = with(bare(), 10, "Never");
    check::<Pod>(bare(), Some(low), &index(false), none(), kept);
    check::<Pod>(high.clone(), Some(bare()), &index(true), none(), high);
}

#[test]
fn pod_group_defaults_follow_feature_gates() {
    let bare = || json!({"metadata": {}, "spec": {"schedulingPolicy": {"basic": {}}}});
    check::<PodGroup>(bare(), None, &index(true), json!({}), bare());

    let mut protected = bare();
    protected["metadata"]["finalizers"] = json!(["scheduling.k8s.io/podgroup-protection"]);
    let generic = || json!({"GenericWorkload": true});
    check::<PodGroup>(bare(), None, &index(true), generic(), protected);
    check::<PodGroup>(bare(), Some(bare()), &index(true), generic(), bare());

    let preemption = || json!({"WorkloadAwarePreemption": true});
    let mut filled = bare();
    filled["spec"]["disruptionMode"] = "Pod".into();
    check::<PodGroup>(
        bare(),
        Some(bare()),
        &index(true),
        preemption(),
        filled.clone(),
    );
    filled["spec"]["priority"] = 0.into();
    check::<PodGroup>(bare(), None, &index(false), preemption(), filled.clone());
    filled["spec"]["priority"] = 10.into();
    filled["spec"]["priorityClassName"] = "low".into();
    check::<PodGroup>(bare(), None, &index(true), preemption(), filled);
    // A missing spec gets no defaults.
    check::<PodGroup>(
        json!({"metadata": {}}),
        None,
        &index(true),
        preemption(),
        json!({"metadata": {}}),
    );
}
