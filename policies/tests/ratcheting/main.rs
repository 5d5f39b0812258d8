//! An update is rejected only for findings that it causes, never for pre-existing ones.
//!
//! Every property runs over generated objects of all kinds and over the examples of every rule page, so the page of a
//! new rule is sufficient to test it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod objects;
mod rule_pages;
mod scenarios;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Config;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::scheduling::{self, v1beta1};
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload, labels};
use lockkeeper_policies::engine::{FINDINGS_MAX, ReviewSubject, Verdict, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use objects::object;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestCaseResult, TestRunner};
use scenarios::{malformed, scenario, well_formed};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The later version of Kubernetes' kinds.
const V1BETA1: &str = "scheduling.k8s.io/v1beta1";

// ---- Scenes ------------------------------------------------------------------------------------

/// An update: the stored and the new object, the other objects and the configuration.
#[derive(Clone, Debug)]
struct Scenario {
    config: Value,
    /// The other objects.
    world: Vec<Value>,
    /// Whether objects that are not listed do not exist; otherwise they are unknown.
    known: bool,
    old: Value,
    new: Value,
    /// Labels, annotations and finalizers that no rule reads.
    metadata: Value,
    /// The sort keys of list items; the smallest is first.
    order: Vec<u8>,
}

impl Scenario {
    fn create(&self, object: &Value) -> Verdict {
        self.review(Operation::Create, object, object)
    }

    fn update(&self, old: &Value, new: &Value) -> Verdict {
        self.review(Operation::Update, old, new)
    }

    fn review(&self, operation: Operation, old: &Value, new: &Value) -> Verdict {
        let version = new["apiVersion"].as_str().unwrap_or_default();
        let kind = new["kind"].as_str().unwrap();
        let judge = match kind {
            "Workload" if version == V1BETA1 => review_typed::<v1beta1::Workload>,
            "PodGroup" if version == V1BETA1 => review_typed::<v1beta1::PodGroup>,
            "Workload" if version.starts_with(scheduling::GROUP) => {
                review_typed::<scheduling::Workload>
            }
            "PodGroup" => review_typed::<scheduling::PodGroup>,
            "ClusterQueue" => review_typed::<ClusterQueue>,
            "Cohort" => review_typed::<Cohort>,
            "JobKind" => review_typed::<JobKind>,
            "ResourceFlavor" => review_typed::<ResourceFlavor>,
            "LocalQueue" => review_typed::<LocalQueue>,
            "Workload" => review_typed::<Workload>,
            "PriorityClass" => review_typed::<PriorityClass>,
            "Job" => review_typed::<Job>,
            "Pod" => review_typed::<Pod>,
            "ElasticQuota" => review_typed::<ElasticQuota>,
            other => panic!("no judge for {other}"),
        };
        judge(self, operation, old, new)
    }

    /// Whether the update changes no field that rules read, so that it is not reviewed.
    fn is_unchanged(&self) -> bool {
        let [old, new] = [&self.old, &self.new].map(ElasticQuota::deserialize);
        self.new["kind"] == "ElasticQuota"
            && ElasticQuota::is_unchanged(&old.unwrap(), &new.unwrap())
    }

    fn index(&self) -> Index {
        let mut index = Index::default();
        if self.known {
            index.mark_complete(IndexedKind::PriorityClass);
            index.mark_complete(IndexedKind::ElasticQuota);
        }
        for object in &self.world {
            facts::ingest(&mut index, object).unwrap();
        }
        index
    }

    fn settings(&self) -> Settings {
        let config: Config = serde_json::from_value(self.config.clone()).unwrap();
        registry::settings(&config).unwrap()
    }
}

fn review_typed<T: ValidatedKind>(
    scene: &Scenario,
    operation: Operation,
    old: &Value,
    new: &Value,
) -> Verdict {
    let [old, new]: [T; 2] = [old, new].map(|object| T::deserialize(object).unwrap());
    let (index, settings) = (scene.index(), scene.settings());
    let context = Context {
        cluster: &index,
        settings: &settings,
    };
    let subject = match operation {
        Operation::Create => ReviewSubject::Create(&new),
        Operation::Update => ReviewSubject::Update(Change {
            old: &old,
            new: &new,
        }),
        Operation::Delete => ReviewSubject::Delete(&new),
    };
    review(&subject, &context)
}

fn all(verdict: &Verdict) -> impl Iterator<Item = &Finding> {
    let lists = [&verdict.denials, &verdict.warnings, &verdict.audits];
    lists.into_iter().flatten()
}

/// Checks a property with every pair of examples of every page, and with generated scenes.
#[track_caller]
fn check(property: impl Fn(&Scenario) -> TestCaseResult) {
    for scene in rule_pages::scenarios() {
        match property(&scene) {
            Ok(()) | Err(TestCaseError::Reject(_)) => {}
            Err(error) => panic!("{error}\n{scene:#?}"),
        }
    }
    check_generated(scenario(&well_formed()), property);
}

#[track_caller]
fn check_generated<S: Strategy>(strategy: S, property: impl Fn(&S::Value) -> TestCaseResult) {
    let config = ProptestConfig {
        cases: 256,
        max_global_rejects: 4096,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |value| property(&value));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

// ---- Properties --------------------------------------------------------------------------------

#[test]
fn unchanged_object_has_no_findings() {
    check(|scene| {
        let verdict = scene.update(&scene.old, &scene.old);
        prop_assert_eq!(verdict, Verdict::default());
        Ok(())
    });
}

#[test]
fn unrelated_metadata_change_has_no_findings() {
    check(|scene| {
        let new = with_metadata(&scene.old, &scene.metadata);
        let verdict = scene.update(&scene.old, &new);
        prop_assert_eq!(verdict, Verdict::default());
        Ok(())
    });
}

/// The object with other labels, annotations and finalizers; it keeps those that rules read.
fn with_metadata(object: &Value, metadata: &Value) -> Value {
    let mut new = object.clone();
    for (key, value) in metadata.as_object().unwrap() {
        new["metadata"][key] = value.clone();
    }
    for map in ["labels", "annotations"] {
        let entries = object["metadata"][map].as_object().into_iter().flatten();
        for (key, value) in entries {
            if key == labels::JOB
                || key.contains("koordinator.sh/")
                || key.starts_with("lockkeeper.dev/")
            {
                new["metadata"][map][key] = value.clone();
            }
        }
    }
    new
}

#[test]
fn list_reordering_has_no_findings() {
    check(|scene| {
        let new = permuted(&scene.old, &scene.order);
        let verdict = scene.update(&scene.old, &new);
        prop_assert_eq!(verdict, Verdict::default());
        Ok(())
    });
}

/// Permutes the lists that are keyed by name. The resources of a flavor stay: they follow
/// coveredResources.
fn permuted(object: &Value, order: &[u8]) -> Value {
    let mut new = object.clone();
    for group in list(&mut new, "/spec/resourceGroups") {
        permute(list(group, "/flavors"), order);
    }
    permute(list(&mut new, "/spec/podSets"), order);
    new
}

/// The list at a JSON pointer; empty if it is missing.
fn list<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    let found = object.pointer_mut(pointer).and_then(Value::as_array_mut);
    found.map(Vec::as_mut_slice).unwrap_or_default()
}

fn permute(items: &mut [Value], order: &[u8]) {
    let numbered = order.iter().cycle().zip(items.iter());
    let mut numbered: Vec<(u8, Value)> = numbered.map(|(n, item)| (*n, item.clone())).collect();
    numbered.sort_by_key(|(n, _)| *n);
    for (place, (_, item)) in items.iter_mut().zip(numbered) {
        *place = item;
    }
}

#[test]
fn update_of_valid_object_is_reviewed_like_create() {
    check(|scene| {
        prop_assume!(scene.create(&scene.old) == Verdict::default());
        prop_assume!(!scene.is_unchanged());
        let mut verdict = scene.update(&scene.old, &scene.new);
        let lists = [
            &mut verdict.denials,
            &mut verdict.warnings,
            &mut verdict.audits,
        ];
        for list in lists {
            list.retain(|finding| !is_about_change(finding));
        }
        let mut alone = scene.create(&scene.new);
        for list in [&mut alone.denials, &mut alone.warnings, &mut alone.audits] {
            list.retain(|finding| !is_about_creation(finding));
        }
        prop_assert_eq!(verdict, alone);
        Ok(())
    });
}

/// Whether the rule of a finding is a transition rule.
fn is_about_change(finding: &Finding) -> bool {
    let rule = registry::find(&finding.rule).unwrap();
    rule.operations == [Operation::Update]
}

/// Whether the rule of a finding checks new objects only.
fn is_about_creation(finding: &Finding) -> bool {
    let rule = registry::find(&finding.rule).unwrap();
    rule.operations == [Operation::Create]
}

#[test]
fn update_reports_only_new_findings() {
    check(|scene| {
        let before = scene.create(&scene.old);
        let after = scene.create(&scene.new);
        let verdict = scene.update(&scene.old, &scene.new);
        if scene.is_unchanged() {
            prop_assert_eq!(verdict, Verdict::default());
            return Ok(());
        }
        // Each finding of the old object cancels one.
        let mut unmatched: Vec<&Finding> = all(&before).collect();
        let mut is_preexisting = |found: &Finding| {
            let place = unmatched
                .iter()
                .position(|old| identity(old) == identity(found));
            place.map(|place| unmatched.remove(place)).is_some()
        };
        for (seen, alone) in [
            (&verdict.denials, &after.denials),
            (&verdict.warnings, &after.warnings),
            (&verdict.audits, &after.audits),
        ] {
            let seen: Vec<&Finding> = seen.iter().filter(|f| !is_about_change(f)).collect();
            let alone = alone.iter().filter(|f| !is_about_creation(f));
            let caused: Vec<&Finding> = alone.filter(|f| !is_preexisting(f)).collect();
            prop_assert_eq!(seen, caused);
        }
        Ok(())
    });
}

/// The identity of a finding: all parts except the positions of named list items.
fn identity(finding: &Finding) -> (&str, String, &Option<String>, &str) {
    let place = finding.field.identity();
    (&*finding.rule, place, &finding.value, &finding.detail)
}

#[test]
fn review_never_panics_and_is_deterministic() {
    let property = |scene: &Scenario| {
        let mut reversed = scene.clone();
        reversed.world.reverse();
        for operation in [Operation::Create, Operation::Update, Operation::Delete] {
            let verdict = scene.review(operation, &scene.old, &scene.new);
            // The order in which objects were added does not matter.
            let again = reversed.review(operation, &scene.old, &scene.new);
            prop_assert_eq!(&verdict, &again);
            for finding in all(&verdict) {
                prop_assert!(finding.to_string().ends_with(&finding.message()));
            }
        }
        Ok(())
    };
    check(property);
    check_generated(scenario(&malformed()), property);
}

/// A queue with `count` flavors, each of which violates these rules once.
const BROKEN: [&str; 4] = ["CQ002", "CQ003", "CQ007", "CQ008"];

fn broken(count: usize, actions: [&str; 4]) -> Verdict {
    let flavors: Vec<Value> = (0..count)
        .map(|number| {
            let quota = json!({"name": "cpu", "nominalQuota": "-1", "borrowingLimit": "1", "lendingLimit": "1"});
            json!({"name": format!("f{number}"), "resources": [quota]})
        })
        .collect();
    let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
    let actions: BTreeMap<&str, &str> = BROKEN.into_iter().zip(actions).collect();
    let mut scene = rule_pages::scenario(json!({"rules": {"actions": actions}}), Vec::new());
    scene.new = object::<ClusterQueue>(
        "q",
        json!({"spec": {"namespaceSelector": {}, "resourceGroups": groups}}),
    );
    scene.create(&scene.new)
}

#[track_caller]
fn check_counts(count: usize, actions: [&str; 4], expected: [usize; 4]) {
    let verdict = broken(count, actions);
    let [denials, warnings, audits] =
        [&verdict.denials, &verdict.warnings, &verdict.audits].map(Vec::len);
    assert_eq!([denials, warnings, audits, verdict.omitted], expected);
}

#[test]
fn findings_past_the_bound_are_counted() {
    let max = FINDINGS_MAX;
    check_counts(max, ["off", "off", "off", "enforce"], [max, 0, 0, 0]);
    check_counts(max + 1, ["off", "off", "off", "enforce"], [max, 0, 0, 1]);
    check_counts(max + 1, ["off", "warn", "off", "off"], [0, max, 0, 1]);
    // The one denial that is the reason of the rejection may exceed the limit.
    check_counts(max, ["warn", "off", "off", "enforce"], [1, max, 0, max - 1]);
    check_counts(60, ["warn", "audit", "enforce", "off"], [1, 60, 40, 79]);
}

#[test]
fn review_over_finding_limit_keeps_a_denial() {
    let action = || select(vec!["enforce", "warn", "audit", "off"]);
    let actions = [action(), action(), action(), action()];
    check_generated((0..=60_usize, actions), |(count, actions)| {
        let verdict = broken(*count, *actions);
        let shown = all(&verdict).count();
        let found = actions.iter().filter(|action| **action != "off").count() * count;
        prop_assert_eq!(shown + verdict.omitted, found);
        prop_assert!(shown >= found.min(FINDINGS_MAX) && shown <= FINDINGS_MAX + 1);
        let enforced = actions.contains(&"enforce") && *count > 0;
        prop_assert_eq!(verdict.allowed(), !enforced);
        Ok(())
    });
}
