//! What an update may be refused for: what it causes, and never what the stored object already had.
//!
//! Every property runs over generated objects of all kinds and over the examples of every rule's
//! page, so a new rule is held to them by its page alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Config;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota};
use lockkeeper_api::foreign::scheduling;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload, labels};
use lockkeeper_policies::engine::{FINDINGS_MAX, Subject, Verdict, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::guarded::Guarded;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Change, Context, Operation};
use lockkeeper_policies::settings::Settings;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestCaseResult, TestRunner};
use serde::Deserialize as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;

// ---- Scenes ------------------------------------------------------------------------------------

/// One object as it is stored and as it would be, in a world, under a configuration.
#[derive(Clone, Debug)]
struct Scene {
    config: Value,
    /// The other objects.
    world: Vec<Value>,
    /// Whether what is not in the world does not exist; otherwise nobody knows.
    known: bool,
    old: Value,
    new: Value,
    /// Labels, annotations and finalizers that no rule reads.
    metadata: Value,
    /// Where the items of a list go: those with the least number first.
    order: Vec<u8>,
}

impl Scene {
    fn create(&self, object: &Value) -> Verdict {
        self.judge(Operation::Create, object, object)
    }

    fn update(&self, old: &Value, new: &Value) -> Verdict {
        self.judge(Operation::Update, old, new)
    }

    fn judge(&self, operation: Operation, old: &Value, new: &Value) -> Verdict {
        let version = new["apiVersion"].as_str().unwrap_or_default();
        let kind = new["kind"].as_str().unwrap();
        let judge = match kind {
            "Workload" if version.starts_with(scheduling::GROUP) => {
                judge_typed::<scheduling::Workload>
            }
            "PodGroup" => judge_typed::<scheduling::PodGroup>,
            "ClusterQueue" => judge_typed::<ClusterQueue>,
            "Cohort" => judge_typed::<Cohort>,
            "ResourceFlavor" => judge_typed::<ResourceFlavor>,
            "LocalQueue" => judge_typed::<LocalQueue>,
            "Workload" => judge_typed::<Workload>,
            "PriorityClass" => judge_typed::<PriorityClass>,
            "Pod" => judge_typed::<Pod>,
            "ElasticQuota" => judge_typed::<ElasticQuota>,
            other => panic!("no judge for {other}"),
        };
        judge(self, operation, old, new)
    }

    /// Whether the update leaves all that rules look at, so that it is not judged.
    fn is_untouched(&self) -> bool {
        let [old, new] = [&self.old, &self.new].map(ElasticQuota::deserialize);
        self.new["kind"] == "ElasticQuota"
            && ElasticQuota::is_untouched(&old.unwrap(), &new.unwrap())
    }

    fn index(&self) -> Index {
        let mut index = Index::default();
        if self.known {
            index.declare_known(IndexedKind::PriorityClass);
            index.declare_known(IndexedKind::ElasticQuota);
        }
        for object in &self.world {
            facts::observe(&mut index, object).unwrap();
        }
        index
    }

    fn settings(&self) -> Settings {
        let config: Config = serde_json::from_value(self.config.clone()).unwrap();
        registry::settings(&config).unwrap()
    }
}

fn judge_typed<T: Guarded>(
    scene: &Scene,
    operation: Operation,
    old: &Value,
    new: &Value,
) -> Verdict {
    let [old, new]: [T; 2] = [old, new].map(|object| T::deserialize(object).unwrap());
    let (index, settings) = (scene.index(), scene.settings());
    let context = Context {
        world: &index,
        settings: &settings,
    };
    let subject = match operation {
        Operation::Create => Subject::Create(&new),
        Operation::Update => Subject::Update(Change {
            old: &old,
            new: &new,
        }),
        Operation::Delete => Subject::Delete(&new),
    };
    review(&subject, &context)
}

fn all(verdict: &Verdict) -> impl Iterator<Item = &Finding> {
    let lists = [&verdict.denials, &verdict.warnings, &verdict.audits];
    lists.into_iter().flatten()
}

/// Holds a property against every pair of examples of every page, and against generated scenes.
#[track_caller]
fn check(property: impl Fn(&Scene) -> TestCaseResult) {
    for scene in pages::scenes() {
        match property(&scene) {
            Ok(()) | Err(TestCaseError::Reject(_)) => {}
            Err(error) => panic!("{error}\n{scene:#?}"),
        }
    }
    check_generated(scene(&plain()), property);
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
fn what_does_not_change_is_never_found() {
    check(|scene| {
        let verdict = scene.update(&scene.old, &scene.old);
        prop_assert_eq!(verdict, Verdict::default());
        Ok(())
    });
}

#[test]
fn metadata_that_no_rule_reads_can_change() {
    check(|scene| {
        let new = touched(&scene.old, &scene.metadata);
        let verdict = scene.update(&scene.old, &new);
        prop_assert_eq!(verdict, Verdict::default());
        Ok(())
    });
}

/// The object with other labels, annotations and finalizers; it keeps those that rules read.
fn touched(object: &Value, metadata: &Value) -> Value {
    let mut new = object.clone();
    for (key, value) in metadata.as_object().unwrap() {
        new["metadata"][key] = value.clone();
    }
    for map in ["labels", "annotations"] {
        let entries = object["metadata"][map].as_object().into_iter().flatten();
        for (key, value) in entries {
            if key == labels::JOB || key.contains("koordinator.sh/") {
                new["metadata"][map][key] = value.clone();
            }
        }
    }
    new
}

#[test]
fn items_of_lists_can_change_places() {
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

/// The list at a JSON pointer; an empty one when there is none.
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
fn an_update_of_a_clean_object_is_judged_like_a_new_object() {
    check(|scene| {
        prop_assume!(scene.create(&scene.old) == Verdict::default());
        prop_assume!(!scene.is_untouched());
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

/// Whether the finding is of a rule that looks at the transition.
fn is_about_change(finding: &Finding) -> bool {
    let rule = registry::find(&finding.rule).unwrap();
    rule.operations == [Operation::Update]
}

/// Whether the finding is of a rule that looks at new objects only.
fn is_about_creation(finding: &Finding) -> bool {
    let rule = registry::find(&finding.rule).unwrap();
    rule.operations == [Operation::Create]
}

#[test]
fn an_update_is_judged_by_what_the_old_object_does_not_give() {
    check(|scene| {
        let before = scene.create(&scene.old);
        let after = scene.create(&scene.new);
        let verdict = scene.update(&scene.old, &scene.new);
        if scene.is_untouched() {
            prop_assert_eq!(verdict, Verdict::default());
            return Ok(());
        }
        // Each finding of the old object excuses one.
        let mut said: Vec<&Finding> = all(&before).collect();
        let mut excused = |found: &Finding| {
            let place = said.iter().position(|old| identity(old) == identity(found));
            place.map(|place| said.remove(place)).is_some()
        };
        for (seen, alone) in [
            (&verdict.denials, &after.denials),
            (&verdict.warnings, &after.warnings),
            (&verdict.audits, &after.audits),
        ] {
            let seen: Vec<&Finding> = seen.iter().filter(|f| !is_about_change(f)).collect();
            let alone = alone.iter().filter(|f| !is_about_creation(f));
            let caused: Vec<&Finding> = alone.filter(|f| !excused(f)).collect();
            prop_assert_eq!(seen, caused);
        }
        Ok(())
    });
}

/// What makes two findings the same: all but the positions of list items that have a name.
fn identity(finding: &Finding) -> (&str, String, &Option<String>, &str) {
    let place = finding.field.identity();
    (&*finding.rule, place, &finding.value, &finding.detail)
}

#[test]
fn no_object_makes_a_review_panic_or_waver() {
    let property = |scene: &Scene| {
        let mut reversed = scene.clone();
        reversed.world.reverse();
        for operation in [Operation::Create, Operation::Update, Operation::Delete] {
            let verdict = scene.judge(operation, &scene.old, &scene.new);
            // The order in which the world was learned does not matter.
            let again = reversed.judge(operation, &scene.old, &scene.new);
            prop_assert_eq!(&verdict, &again);
            for finding in all(&verdict) {
                prop_assert!(finding.to_string().ends_with(&finding.message()));
            }
        }
        Ok(())
    };
    check(property);
    check_generated(scene(&wild()), property);
}

/// A queue each of whose `count` flavors breaks these rules once.
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
    let mut scene = pages::scene(json!({"rules": {"actions": actions}}), Vec::new());
    scene.new = object::<ClusterQueue>("q", json!({"spec": {"resourceGroups": groups}}));
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
    // The one denial that gives the reason for the refusal goes past the bound.
    check_counts(max, ["warn", "off", "off", "enforce"], [1, max, 0, max - 1]);
    check_counts(60, ["warn", "audit", "enforce", "off"], [1, 60, 40, 79]);
}

#[test]
fn a_denial_is_never_lost() {
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

// ---- Generated scenes --------------------------------------------------------------------------

/// What the objects of a scene are made of.
struct Leaves {
    names: BoxedStrategy<String>,
    amounts: BoxedStrategy<Value>,
}

/// Few names and amounts, so that duplicates happen and limits are met exactly.
fn plain() -> Leaves {
    let names = select(vec!["a", "b", "c"]);
    let amounts = select(vec!["0", "1", "2", "2000m", "-1"]);
    Leaves {
        names: names.prop_map(str::to_owned).boxed(),
        amounts: amounts.prop_map(Value::from).boxed(),
    }
}

/// Anything that decodes.
fn wild() -> Leaves {
    // Three bytes each, so that a cut at a power of two of bytes falls within one.
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
    Leaves {
        names: prop_oneof![plain().names, select(odd), any::<String>()].boxed(),
        amounts: prop_oneof![plain().amounts, select(amounts)].boxed(),
    }
}

fn scene(leaves: &Leaves) -> impl Strategy<Value = Scene> + use<> {
    let kinds = [queue, cohort, flavor, workload, class, pod, quota];
    let pairs = kinds.map(|kind| (kind(leaves), kind(leaves)).boxed());
    // The more a kind has rules, the more often it comes.
    let pair = select(vec![0_usize, 0, 0, 1, 2, 3, 3, 3, 4, 5, 5, 6, 6, 6])
        .prop_flat_map(move |kind| pairs[kind].clone());
    let picks = vec(any::<bool>(), 16);
    let order = vec(any::<u8>(), 8);
    let known = any::<bool>();
    let around = (config(), world(leaves), known, metadata());
    (pair, picks, order, around).prop_map(
        |((old, other), picks, order, (config, world, known, metadata))| Scene {
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

/// The old object with some of its parts taken from another one.
fn update(old: &Value, other: &Value, picks: &[bool]) -> Value {
    let mut new = mixed(old, other, &mut picks.iter().copied().cycle());
    for key in ["name", "namespace"] {
        new["metadata"][key] = old["metadata"][key].clone();
    }
    new
}

fn mixed(old: &Value, other: &Value, picks: &mut dyn Iterator<Item = bool>) -> Value {
    match (old, other) {
        (Value::Object(old), Value::Object(other)) => {
            let mut new = old.clone();
            for (key, value) in other {
                if let Some(before) = new.get_mut(key) {
                    *before = mixed(before, value, picks);
                } else if picks.next().unwrap() {
                    new.insert(key.clone(), value.clone());
                }
            }
            Value::Object(new)
        }
        (Value::Array(old), Value::Array(other)) if old.len() == other.len() => {
            let items = old.iter().zip(other);
            items.map(|(old, other)| mixed(old, other, picks)).collect()
        }
        _ if picks.next().unwrap() => other.clone(),
        _ => old.clone(),
    }
}

fn config() -> impl Strategy<Value = Value> {
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

fn classes() -> impl Strategy<Value = String> {
    select(vec!["low", "high", "lost", "system-node-critical"]).prop_map(str::to_owned)
}

/// Classes, users of them, and pods of jobs, each under a name of its own.
fn world(leaves: &Leaves) -> impl Strategy<Value = Vec<Value>> + use<> {
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

fn metadata() -> impl Strategy<Value = Value> {
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

// ---- Generated objects -------------------------------------------------------------------------

/// An object of kind `T`, with these fields and this name.
fn object<T: Guarded>(name: &str, fields: Value) -> Value {
    let mut object = fields;
    object["apiVersion"] = T::api_version(&()).into();
    object["kind"] = T::kind(&()).into();
    object["metadata"]["name"] = name.into();
    if T::NAMESPACED {
        object["metadata"]["namespace"] = "team".into();
    }
    object
}

fn queue(leaves: &Leaves) -> BoxedStrategy<Value> {
    let reclaim = option::of(select(vec!["Never", "LowerPriority", "Any"]));
    let borrow = option::of(select(vec!["Never", "LowerPriority"]));
    let preemption = (reclaim, borrow).prop_map(|(reclaim, borrow)| {
        json!({"reclaimWithinCohort": reclaim, "borrowWithinCohort": {"policy": borrow}})
    });
    let elastic = option::weighted(0.3, Just(json!({})));
    let cohort = option::of(leaves.names.clone());
    let parts = (cohort, groups(leaves), option::of(preemption), elastic);
    parts
        .prop_map(|(cohort, groups, preemption, elastic)| {
            let spec = json!({
                "cohortName": cohort, "resourceGroups": groups, "preemption": preemption,
                "elastic": elastic,
            });
            object::<ClusterQueue>("q", json!({"spec": spec}))
        })
        .boxed()
}

fn cohort(leaves: &Leaves) -> BoxedStrategy<Value> {
    let parent = option::of(leaves.names.clone());
    (parent, groups(leaves))
        .prop_map(|(parent, groups)| {
            let spec = json!({"parentName": parent, "resourceGroups": groups});
            object::<Cohort>("c", json!({"spec": spec}))
        })
        .boxed()
}

fn groups(leaves: &Leaves) -> impl Strategy<Value = Vec<Value>> + use<> {
    let amount = || leaves.amounts.clone();
    let amounts = (amount(), option::of(amount()), option::of(amount()));
    let resources = vec(leaves.names.clone(), 1..3);
    let others = option::weighted(0.2, resources.clone());
    let flavor = (leaves.names.clone(), others, vec(amounts, 2));
    let group = (resources, vec(flavor, 0..4)).prop_map(|(covered, flavors)| {
        let flavors: Vec<Value> = flavors
            .into_iter()
            .map(|(name, others, amounts)| {
                let listed = others.as_ref().unwrap_or(&covered);
                let quotas = listed.iter().zip(amounts).map(|(name, amounts)| {
                    let (nominal, borrowing, lending) = amounts;
                    json!({
                        "name": name, "nominalQuota": nominal, "borrowingLimit": borrowing,
                        "lendingLimit": lending,
                    })
                });
                json!({"name": name, "resources": quotas.collect::<Vec<Value>>()})
            })
            .collect();
        json!({"coveredResources": covered, "flavors": flavors})
    });
    vec(group, 0..3)
}

fn flavor(leaves: &Leaves) -> BoxedStrategy<Value> {
    let labels = btree_map(leaves.names.clone(), leaves.names.clone(), 0..2);
    let spec = labels.prop_map(|labels| json!({"spec": {"nodeLabels": labels}}));
    spec.prop_map(|spec| object::<ResourceFlavor>("f", spec))
        .boxed()
}

fn workload(leaves: &Leaves) -> BoxedStrategy<Value> {
    let template = prop_oneof![
        Just(json!({})),
        pod_labels(leaves).prop_map(|labels| json!({"metadata": {"labels": labels}})),
    ];
    let pod_set = (option::of(leaves.names.clone()), template)
        .prop_map(|(name, template)| json!({"name": name, "template": template}));
    let class =
        || prop_oneof![4 => option::of(classes()), 1 => leaves.names.clone().prop_map(Some)];
    let parts = (leaves.names.clone(), class(), class(), vec(pod_set, 0..4));
    parts
        .prop_map(|(name, scheduling, preemption, pod_sets)| {
            let spec = json!({
                "priorityClassName": scheduling, "preemptionPriorityClassName": preemption,
                "podSets": pod_sets,
            });
            object::<Workload>(&name, json!({"spec": spec}))
        })
        .boxed()
}

fn pod_labels(leaves: &Leaves) -> impl Strategy<Value = Value> + use<> {
    let preemptible = option::of(select(vec!["true", "false", "yes"]));
    let job = option::weighted(0.8, leaves.names.clone());
    (job, preemptible).prop_map(|(job, preemptible)| {
        let pairs = [
            (labels::JOB, job),
            (labels::PREEMPTIBLE, preemptible.map(str::to_owned)),
        ];
        let given = pairs
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        json!(given.collect::<BTreeMap<_, _>>())
    })
}

fn class(leaves: &Leaves) -> BoxedStrategy<Value> {
    let name = prop_oneof![
        select(vec!["low", "high"]).prop_map(str::to_owned),
        leaves.names.clone()
    ];
    let value = select(vec![0, 10, i32::MIN, i32::MAX]);
    (name, value, option::of(any::<bool>()))
        .prop_map(|(name, value, default)| {
            object::<PriorityClass>(&name, json!({"value": value, "globalDefault": default}))
        })
        .boxed()
}

fn pod(leaves: &Leaves) -> BoxedStrategy<Value> {
    (leaves.names.clone(), pod_labels(leaves))
        .prop_map(|(name, labels)| object::<Pod>(&name, json!({"metadata": {"labels": labels}})))
        .boxed()
}

fn quota(leaves: &Leaves) -> BoxedStrategy<Value> {
    let name = || leaves.names.clone();
    let flag = || option::of(select(vec!["true", "false"]).prop_map(str::to_owned));
    let labels = (
        option::of(name()),
        flag(),
        flag(),
        option::weighted(0.2, name()),
    );
    let amounts = || btree_map(select(vec!["cpu", "memory"]), leaves.amounts.clone(), 0..3);
    let texts = select(vec![
        "",
        "{",
        r#"{"cpu":"-1"}"#,
        r#"["cpu"]"#,
        r#"["a","b"]"#,
    ]);
    let annotations = vec(texts, 4);
    let parts = (name(), labels, amounts(), amounts(), amounts(), annotations);
    parts
        .prop_map(
            |(name, (parent, is_parent, forced, tree), min, max, used, texts)| {
                let labels = [
                    (koordinator::PARENT, parent),
                    (koordinator::IS_PARENT, is_parent),
                    (koordinator::ALLOW_FORCE_UPDATE, forced),
                    (koordinator::TREE_ID, tree),
                ];
                let labels = labels
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, value?)));
                let annotations = [
                    koordinator::SHARED_WEIGHT,
                    koordinator::NAMESPACES,
                    koordinator::GUARANTEED,
                    koordinator::STRICT_RESOURCES,
                ];
                let annotations = annotations.into_iter().zip(texts);
                let metadata = json!({
                    "labels": labels.collect::<BTreeMap<_, _>>(),
                    "annotations": annotations.collect::<BTreeMap<_, _>>(),
                });
                let spec = json!({"min": min, "max": max});
                let status = json!({"used": used});
                object::<ElasticQuota>(
                    &name,
                    json!({"metadata": metadata, "spec": spec, "status": status}),
                )
            },
        )
        .boxed()
}

/// The examples of the rules' pages.
mod pages {
    use super::{Scene, registry, scheduling};
    use lockkeeper_api::foreign::kueue;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Every pair of objects of every page, in every world and configuration of that page. Kueue's kinds
    /// are judged by Kueue's lights: what it refuses of an update is proved by its own cases. A page is about
    /// the first kind that its rule holds for.
    pub(super) fn scenes() -> Vec<Scene> {
        let mut seen = BTreeSet::new();
        registry::all()
            .iter()
            .filter(|rule| seen.insert(rule.id))
            .filter(|rule| rule.kind != "*" && rule.group != kueue::GROUP)
            .flat_map(|rule| of_page(&rule.group, &rule.kind, rule.doc))
            .collect()
    }

    pub(super) fn scene(config: Value, world: Vec<Value>) -> Scene {
        Scene {
            config,
            world,
            known: false,
            old: Value::Null,
            new: Value::Null,
            metadata: json!({"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": []}),
            order: vec![3, 2, 1, 0],
        }
    }

    fn of_page(group: &str, kind: &str, page: &str) -> Vec<Scene> {
        let (mut config, mut world) = (json!({}), Vec::new());
        let (mut around, mut objects) = (Vec::new(), Vec::new());
        for (info, mut documents) in blocks(page) {
            match info {
                "yaml world" => world = documents,
                "yaml config" => config = documents.remove(0),
                _ => objects.push(named(group, kind, documents.remove(0))),
            }
            if !around.contains(&(config.clone(), world.clone())) {
                around.push((config.clone(), world.clone()));
            }
        }
        let mut scenes = Vec::new();
        for (config, world) in around {
            for old in &objects {
                for new in &objects {
                    let mut scene = scene(config.clone(), world.clone());
                    (scene.old, scene.new) = (old.clone(), new.clone());
                    scene.new["metadata"]["name"] = old["metadata"]["name"].clone();
                    scenes.push(scene);
                }
            }
        }
        scenes
    }

    fn named(group: &str, kind: &str, mut object: Value) -> Value {
        object["apiVersion"] = match (group, kind) {
            (scheduling::GROUP, "Workload" | "PodGroup") => {
                format!("{group}/{}", scheduling::VERSION)
            }
            (scheduling::GROUP, _) => "scheduling.k8s.io/v1".to_owned(),
            ("", _) => "v1".to_owned(),
            _ => format!("{group}/{}", lockkeeper_api::VERSION),
        }
        .into();
        object["kind"] = kind.into();
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = "example".into();
        }
        object
    }

    /// The YAML blocks of a page: the words behind the fence, and the documents.
    fn blocks(page: &str) -> Vec<(&str, Vec<Value>)> {
        let fenced = page
            .split("\n```")
            .filter(|block| block.starts_with("yaml "));
        let parted = fenced.map(|block| block.split_once('\n').unwrap());
        parted
            .map(|(info, text)| (info, serde_saphyr::from_multiple(text).unwrap()))
            .collect()
    }
}
