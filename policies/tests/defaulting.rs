//! Defaults are idempotent, set unset fields only, and cause no findings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Config;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::{ClusterQueue, Cohort, JobSet, ResourceFlavor, Workload, labels};
use lockkeeper_policies::defaulting::{DefaultedField, Defaults};
use lockkeeper_policies::engine::{ReviewSubject, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context};
use lockkeeper_policies::validated_kind::ValidatedKind;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseResult, TestRunner};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

// ---- Scenes ------------------------------------------------------------------------------------

/// A new object or an update of `old`, with other objects and a configuration.
#[derive(Clone, Debug)]
struct Scenario {
    config: Value,
    /// The PriorityClasses.
    classes: Vec<Value>,
    old: Option<Value>,
    object: Value,
}

impl Scenario {
    /// Calls `f` with the decoded objects.
    fn decoded<T: ValidatedKind, R>(&self, f: impl FnOnce(&T, Option<&T>, &Context<'_>) -> R) -> R {
        let mut index = Index::default();
        index.mark_complete(IndexedKind::PriorityClass);
        for class in &self.classes {
            facts::ingest(&mut index, class).unwrap();
        }
        let labels = json!({koordinator::TREE_ID: "tree"});
        let parent = json!({"metadata": {"name": "p", "labels": labels}});
        facts::ingest(&mut index, &object::<ElasticQuota>(parent)).unwrap();
        let config: Config = serde_json::from_value(self.config.clone()).unwrap();
        let context = Context {
            cluster: &index,
            settings: &registry::settings(&config).unwrap(),
        };
        let object = T::deserialize(&self.object).unwrap();
        let old = self.old.as_ref().map(|old| T::deserialize(old).unwrap());
        f(&object, old.as_ref(), &context)
    }

    fn defaults(&self) -> Defaults {
        match self.object["kind"].as_str().unwrap() {
            "ClusterQueue" => self.decoded(ClusterQueue::defaults),
            "Cohort" => self.decoded(Cohort::defaults),
            "ResourceFlavor" => self.decoded(ResourceFlavor::defaults),
            "Workload" => self.decoded(Workload::defaults),
            "PriorityClass" => self.decoded(PriorityClass::defaults),
            "Pod" => self.decoded(Pod::defaults),
            "Job" => self.decoded(Job::defaults),
            "JobSet" => self.decoded(JobSet::defaults),
            "ElasticQuota" => self.decoded(ElasticQuota::defaults),
            other => panic!("no defaults for {other}"),
        }
    }

    /// The rules that reject the object.
    fn rejecting_rules(&self) -> BTreeSet<Cow<'static, str>> {
        match self.object["kind"].as_str().unwrap() {
            "ClusterQueue" => self.decoded(denials::<ClusterQueue>),
            "ResourceFlavor" => self.decoded(denials::<ResourceFlavor>),
            "Workload" => self.decoded(denials::<Workload>),
            _ => BTreeSet::new(),
        }
    }

    /// The scene with the defaults in the object, as the API server applies the patch.
    fn defaulted(&self) -> Self {
        let add = |filled: &DefaultedField| json!({"op": "add", "path": filled.pointer, "value": filled.value});
        let operations = self.defaults().items().iter().map(add).collect();
        let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
        let mut filled = self.clone();
        json_patch::patch(&mut filled.object, &patch).unwrap();
        filled
    }
}

fn denials<T: ValidatedKind>(
    new: &T,
    old: Option<&T>,
    context: &Context<'_>,
) -> BTreeSet<Cow<'static, str>> {
    let subject = match old {
        None => ReviewSubject::Create(new),
        Some(old) => ReviewSubject::Update(Change { old, new }),
    };
    let verdict = review(&subject, context);
    let rules = verdict.denials.into_iter();
    rules.map(|finding| finding.rule).collect()
}

/// Checks a property with generated scenes, before and after defaulting.
#[track_caller]
fn check(property: impl Fn(&Scenario, &Scenario) -> TestCaseResult) {
    let config = ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome =
        TestRunner::new(config).run(&scenario(), |scene| property(&scene, &scene.defaulted()));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

// ---- Properties --------------------------------------------------------------------------------

#[test]
fn defaulting_is_idempotent() {
    check(|_, filled| {
        prop_assert_eq!(filled.defaults(), Defaults::default());
        Ok(())
    });
}

#[test]
fn defaulting_keeps_given_values() {
    check(|scene, filled| {
        let mut given = scene.object.clone();
        // A job with a queue label is always suspended.
        if given["spec"]["suspend"] == false {
            given["spec"]["suspend"] = filled.object["spec"]["suspend"].clone();
        }
        // Koordinator treats an empty label as missing, and the weight gets the resources of max.
        if given["kind"] == "ElasticQuota" {
            for map in ["labels", "annotations"] {
                if let Some(entries) = given["metadata"][map].as_object_mut() {
                    entries.retain(|key, value| *value != "" && key != koordinator::SHARED_WEIGHT);
                }
            }
        }
        prop_assert!(is_preserved(&given, &filled.object), "{}", filled.object);
        Ok(())
    });
}

/// Whether `after` contains all values of `before`. Null counts as unset, and a list may have additional items at its
/// end.
fn is_preserved(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Null, _) => true,
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .all(|(key, value)| is_preserved(value, after.get(key).unwrap_or(&Value::Null))),
        (Value::Array(before), Value::Array(after)) => {
            let pairs = before.iter().zip(after);
            before.len() <= after.len() && pairs.into_iter().all(|(b, a)| is_preserved(b, a))
        }
        _ => before == after,
    }
}

#[test]
fn defaulting_keeps_preemption_policy_meaning() {
    check(|scene, filled| {
        if scene.object["kind"] != "ClusterQueue" {
            return Ok(());
        }
        let policies = |object: &Value| {
            let spec = ClusterQueue::deserialize(object).unwrap().spec;
            let within = spec.within_cluster_queue();
            (
                within,
                spec.reclaim_within_cohort(),
                spec.borrow_within_cohort(),
            )
        };
        prop_assert_eq!(policies(&scene.object), policies(&filled.object));
        Ok(())
    });
}

#[test]
fn defaulted_object_of_allowed_object_is_allowed() {
    check(|scene, filled| {
        let (before, after) = (scene.rejecting_rules(), filled.rejecting_rules());
        if scene.old.is_some() {
            prop_assert!(!before.is_empty() || after.is_empty(), "{:?}", after);
            return Ok(());
        }
        let is_expected = |rule: &Cow<str>| {
            before.contains(&**rule) || is_rechecked_after_defaulting(scene, filled, rule)
        };
        prop_assert!(
            after.iter().all(is_expected),
            "{:?} after {:?}",
            after,
            before
        );
        Ok(())
    });
}

/// Whether the rule compares a given preemption class with a defaulted scheduling class.
fn is_rechecked_after_defaulting(scene: &Scenario, filled: &Scenario, rule: &str) -> bool {
    let class = |scene: &Scenario, field| scene.object["spec"][field].is_string();
    ["WL001", "WL002", "WL003"].contains(&rule)
        && class(scene, "preemptionPriorityClassName")
        && !class(scene, "priorityClassName")
        && class(filled, "priorityClassName")
}

/// The only case in which a default causes a finding: the cluster's default class is higher than the preemption class.
/// Only the defaulted object is stored, so the rules check that one.
#[test]
fn defaulted_priority_class_counts_like_a_named_one() {
    let spec = json!({"podSets": [], "preemptionPriorityClassName": "low"});
    let scene = Scenario {
        config: json!({}),
        classes: vec![class("low", 10, false), class("standard", 20, true)],
        old: None,
        object: object::<Workload>(json!({"spec": spec})),
    };
    assert_eq!(scene.rejecting_rules(), BTreeSet::new());
    let filled = scene.defaulted();
    assert_eq!(filled.object["spec"]["priorityClassName"], "standard");
    assert_eq!(filled.rejecting_rules(), BTreeSet::from(["WL001".into()]));
}

// ---- Generated scenes --------------------------------------------------------------------------

fn scenario() -> impl Strategy<Value = Scenario> {
    let kind = prop_oneof![
        4 => pair(queue()), 4 => pair(workload()), 1 => pair(flavor()),
        1 => pair(job::<Job>()), 1 => pair(job::<JobSet>()),
        2 => pair(quota()),
        // These kinds have no defaults.
        1 => pair(metadata_only::<Cohort>()), 1 => pair(metadata_only::<PriorityClass>()), 1 => pair(metadata_only::<Pod>()),
    ];
    (config(), classes(), kind).prop_map(|(config, classes, (object, old))| Scenario {
        config,
        classes,
        old,
        object,
    })
}

fn pair(object: BoxedStrategy<Value>) -> BoxedStrategy<(Value, Option<Value>)> {
    (object.clone(), option::of(object)).boxed()
}

fn config() -> impl Strategy<Value = Value> {
    let above = option::of(select(vec![0, 10]));
    let allowed = option::of(vec(class_name(), 0..2));
    (above, allowed).prop_map(|(above, allowed)| {
        json!({"priority": {
            "maxPreemptionAboveScheduling": above, "separatePreemptionAllowedFor": allowed,
        }})
    })
}

fn class_name() -> impl Strategy<Value = String> {
    select(vec!["low", "standard", "high", "lost"]).prop_map(str::to_owned)
}

fn classes() -> impl Strategy<Value = Vec<Value>> {
    let default = option::of(select(vec!["low", "standard", "high"]));
    default.prop_map(|default| {
        let values = [("low", -10), ("standard", 0), ("high", 10)];
        let classes = values.map(|(name, value)| class(name, value, default == Some(name)));
        classes.to_vec()
    })
}

fn class(name: &str, value: i32, default: bool) -> Value {
    let mut class = object::<PriorityClass>(json!({"value": value, "globalDefault": default}));
    class["metadata"]["name"] = name.into();
    class
}

// ---- Generated objects -------------------------------------------------------------------------

fn object<T: ValidatedKind>(fields: Value) -> Value {
    let mut object = fields;
    object["apiVersion"] = T::api_version(&()).into();
    object["kind"] = T::kind(&()).into();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = "example".into();
    }
    object
}

/// A map in which each of these fields is absent, null or set.
fn map(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (keys, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let maybe = values.into_iter().map(|given| {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(Value::Null)),
            2 => given.prop_map(Some),
        ]
    });
    let values = maybe.collect::<Vec<_>>();
    values
        .prop_map(move |values| {
            let fields = keys.iter().zip(values);
            let present = fields.filter_map(|(key, value)| Some(((*key).to_owned(), value?)));
            present.collect::<Value>()
        })
        .boxed()
}

fn one_of<V: Into<Value>>(values: impl IntoIterator<Item = V>) -> BoxedStrategy<Value> {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    select(values).boxed()
}

fn finalizers() -> BoxedStrategy<Value> {
    let ours = labels::RESOURCE_IN_USE;
    let lists = one_of([
        json!([]),
        json!(["a/b"]),
        json!([ours]),
        json!(["a/b", ours]),
    ]);
    map(vec![("finalizers", lists)])
}

fn queue() -> BoxedStrategy<Value> {
    let searches = || one_of(["MayStopSearch", "TryNextFlavor"]);
    let borrow = map(vec![
        ("policy", one_of(["Never", "LowerPriority"])),
        ("maxPriorityThreshold", one_of([5])),
    ]);
    let spec = map(vec![
        ("queueingStrategy", one_of(["StrictFIFO", "BestEffortFIFO"])),
        ("stopPolicy", one_of(["None", "Hold"])),
        (
            "flavorFungibility",
            map(vec![
                ("whenCanBorrow", searches()),
                ("whenCanPreempt", searches()),
            ]),
        ),
        (
            "preemption",
            map(vec![
                (
                    "withinClusterQueue",
                    one_of(["Never", "LowerOrNewerEqualPriority"]),
                ),
                ("reclaimWithinCohort", one_of(["Never", "Any"])),
                ("borrowWithinCohort", borrow),
            ]),
        ),
        (
            "fairSharing",
            map(vec![("weight", one_of([json!(2), json!("500m")]))]),
        ),
        ("elastic", one_of([json!({})])),
        ("cohortName", one_of(["c"])),
    ]);
    let parts = (spec, finalizers());
    let fields = parts.prop_map(|(spec, metadata)| json!({"spec": spec, "metadata": metadata}));
    fields.prop_map(object::<ClusterQueue>).boxed()
}

fn flavor() -> BoxedStrategy<Value> {
    let fields = finalizers().prop_map(|metadata| json!({"spec": {}, "metadata": metadata}));
    fields.prop_map(object::<ResourceFlavor>).boxed()
}

fn job<T: ValidatedKind>() -> BoxedStrategy<Value> {
    let queue = |name| json!({ labels::QUEUE_NAME: name });
    let labels = one_of([json!({}), queue("q"), queue("")]);
    let spec = map(vec![("suspend", one_of([true, false]))]);
    let spec = spec.prop_map(|mut spec| {
        spec["template"] = json!({});
        spec
    });
    let owner = json!([{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "controller": true,
        "name": "set", "uid": "u",
    }]);
    let metadata = map(vec![
        ("labels", labels),
        ("ownerReferences", one_of([owner])),
    ]);
    let fields = map(vec![("spec", spec.boxed()), ("metadata", metadata)]);
    fields.prop_map(object::<T>).boxed()
}

fn workload() -> BoxedStrategy<Value> {
    let pod_set = map(vec![("name", one_of(["a"])), ("count", one_of([0, 2]))]);
    let pod_set = pod_set.prop_map(|mut pod_set| {
        pod_set["template"] = json!({});
        pod_set
    });
    let modes = one_of(["Pod", "PodGroup"]);
    let group = map(vec![("replicas", one_of([2])), ("disruptionMode", modes)]);
    let group = group.prop_map(|mut group| {
        group["name"] = "g".into();
        group
    });
    let class = || class_name().prop_map(Value::from).boxed();
    let spec = map(vec![
        ("priorityClassName", class()),
        ("preemptionPriorityClassName", class()),
        ("active", one_of([true, false])),
    ]);
    (spec, vec(pod_set, 0..3), vec(group, 0..3))
        .prop_map(|(mut spec, pod_sets, groups)| {
            spec["podSets"] = pod_sets.into();
            spec["podGroups"] = groups.into();
            object::<Workload>(json!({"spec": spec}))
        })
        .boxed()
}

fn quota() -> BoxedStrategy<Value> {
    let labels = map(vec![
        (
            koordinator::PARENT,
            one_of(["", koordinator::ROOT_QUOTA, "p", "lost"]),
        ),
        (koordinator::TREE_ID, one_of(["", "tree"])),
    ]);
    let weights = one_of(["", "{", "null", r#"{"cpu":1}"#, r#"{"cpu":"1","pods":"1"}"#]);
    let annotations = map(vec![(koordinator::SHARED_WEIGHT, weights)]);
    let max = one_of([
        json!({}),
        json!({"cpu": "1000m"}),
        json!({"cpu": 1, "memory": "1Gi"}),
    ]);
    // Labels and annotations are never null.
    let metadata = map(vec![
        ("name", one_of([koordinator::ROOT_QUOTA])),
        ("labels", given_fields(labels)),
        ("annotations", given_fields(annotations)),
    ]);
    let fields = map(vec![
        ("spec", map(vec![("max", max)])),
        ("metadata", metadata),
    ]);
    fields.prop_map(object::<ElasticQuota>).boxed()
}

fn given_fields(map: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    map.prop_map(|mut map| {
        if let Some(entries) = map.as_object_mut() {
            entries.retain(|_, value| !value.is_null());
        }
        map
    })
    .boxed()
}

fn metadata_only<T: ValidatedKind>() -> BoxedStrategy<Value> {
    Just(object::<T>(json!({"spec": {"containers": []}, "value": 0}))).boxed()
}
