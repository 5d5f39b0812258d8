//! The good examples are accepted, and each bad one is rejected only by the rule
//! in its name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::config::Action;
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_policies::engine::{ReviewSubject, review};
use lockkeeper_policies::facts;
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Context, Layer, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rules that find nothing until the administrator sets a cap.
const NEED_SETTINGS: &[&str] = &["WL002", "WL003"];

/// The rule that compares with a definition of another project: the examples install none. A trial on the API server does.
const NEEDS_DEFINITION: &str = "JK002";

/// Examples of what the types reject, besides the one that is named after the rule.
const UNDECODABLE: &[&str] = &["misspelt-enum-value", "quantity-out-of-range"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(name)
}

/// The names of the files in a folder, without their extension, and their text.
fn files(name: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (stem, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The objects of a file. One without a namespace gets the one that kubectl would give it.
fn objects(text: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    for object in &mut objects {
        if matches!(kind(object), "LocalQueue" | "Workload" | "Pod") {
            object["metadata"]["namespace"] = "default".into();
        }
    }
    objects
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap()
}

/// A cluster with these objects and no others.
fn cluster_index(objects: &[Value]) -> Index {
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    for object in objects {
        facts::ingest(&mut index, object).unwrap();
    }
    index
}

/// The rules that reject the creation of an object.
fn rejecting_rules(object: &Value, world: &Index) -> Vec<Cow<'static, str>> {
    match kind(object) {
        "ClusterQueue" => denying_rules::<ClusterQueue>(object, world),
        "Cohort" => denying_rules::<Cohort>(object, world),
        "JobKind" => denying_rules::<JobKind>(object, world),
        "ResourceFlavor" => denying_rules::<ResourceFlavor>(object, world),
        "Workload" => denying_rules::<Workload>(object, world),
        "PriorityClass" => denying_rules::<PriorityClass>(object, world),
        "Job" => denying_rules::<Job>(object, world),
        "Pod" => denying_rules::<Pod>(object, world),
        "LocalQueue" => denying_rules::<LocalQueue>(object, world),
        other => panic!("no example has an object of kind {other}"),
    }
}

fn denying_rules<T: ValidatedKind>(object: &Value, world: &Index) -> Vec<Cow<'static, str>> {
    let Ok(object) = serde_json::from_value::<T>(object.clone()) else {
        return vec!["SC001".into()];
    };
    let settings = Settings::default();
    let context = Context {
        cluster: world,
        settings: &settings,
    };
    let verdict = review(&ReviewSubject::Create(&object), &context);
    let rules = verdict.denials.into_iter();
    rules.map(|finding| finding.rule).collect()
}

/// The id and the name of the rule that a bad example is named after.
fn rule(stem: &str) -> (String, &str) {
    match stem.split_once('-') {
        _ if UNDECODABLE.contains(&stem) => ("SC001".to_owned(), "undecodable-value"),
        Some((id, name)) => (id.to_uppercase(), name),
        None => panic!("{stem} is not named <id>-<rule>"),
    }
}

#[test]
fn good_examples_are_accepted() {
    let files = files("good");
    let all: Vec<Value> = files.values().flat_map(|text| objects(text)).collect();
    let world = cluster_index(&all);
    for object in &all {
        assert_eq!(rejecting_rules(object, &world), [""; 0], "{object:#}");
    }
    let kinds: BTreeSet<&str> = all.iter().map(kind).collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        [
            "ClusterQueue",
            "Cohort",
            "JobKind",
            "LocalQueue",
            "PriorityClass",
            "ResourceFlavor",
            "Workload"
        ]
    );
}

#[test]
fn bad_examples_are_rejected_by_one_rule() {
    for (stem, text) in files("bad") {
        let (id, name) = rule(&stem);
        assert_eq!(registry::find(&id).unwrap().name, name, "{stem}");
        let objects = objects(&text);
        let (last, before) = objects.split_last().unwrap();
        let index = cluster_index(before);
        assert_eq!(rejecting_rules(last, &index), [id.as_str()], "{stem}");
        for object in before {
            assert_eq!(rejecting_rules(object, &index), [""; 0], "{stem}");
        }
    }
}

#[test]
fn create_rules_have_bad_examples() {
    let shown: BTreeSet<String> = files("bad").keys().map(|stem| rule(stem).0).collect();
    let expected: BTreeSet<String> = registry::all()
        .into_iter()
        .filter(|rule| {
            rule.action == Action::Enforce
                && rule.layers.iter().any(|it| matches!(it, Layer::Webhook))
        })
        .filter(|rule| rule.operations.contains(&Operation::Create))
        .map(|rule| rule.id.to_owned())
        .filter(|id| !NEED_SETTINGS.contains(&id.as_str()) && id != NEEDS_DEFINITION)
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn example_manifests_start_with_comment() {
    for name in ["good", "bad", "world"] {
        for (stem, text) in files(name) {
            assert!(
                text.starts_with("# ") && text.ends_with('\n'),
                "{name}/{stem}"
            );
        }
    }
}

/// Both may be applied to one cluster.
#[test]
fn world_and_good_examples_do_not_conflict() {
    let read = |name| -> Vec<Value> {
        files(name)
            .values()
            .flat_map(|text| objects(text))
            .collect()
    };
    let identity = |object: &Value| {
        (
            kind(object).to_owned(),
            object["metadata"]["name"].to_string(),
        )
    };
    let good: BTreeMap<_, Value> = read("good")
        .into_iter()
        .map(|o| (identity(&o), o))
        .collect();
    let world = read("world");
    assert!(!world.is_empty());
    for object in world {
        if let Some(same) = good.get(&identity(&object)) {
            assert_eq!(*same, object);
        }
    }
}

/// The request in a review, and the world that is there as files.
fn request(stem: &str) -> (Value, Index) {
    let review: Value = serde_json::from_str(&files("reviews")[stem]).unwrap();
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["kind"], "AdmissionReview");
    let objects: Vec<Value> = files("world")
        .values()
        .flat_map(|text| objects(text))
        .collect();
    (review["request"].clone(), cluster_index(&objects))
}

#[test]
fn example_reviews_match_their_names() {
    let (queue, world) = request("clusterqueue-rejected");
    assert_eq!(
        rejecting_rules(&queue["object"], &world),
        ["CQ001", "CQ007"]
    );
    let (workload, world) = request("workload-rejected");
    assert_eq!(rejecting_rules(&workload["object"], &world), ["WL001"]);

    let (request, world) = request("workload-defaulted");
    let settings = Settings::default();
    let context = Context {
        cluster: &world,
        settings: &settings,
    };
    let workload: Workload = serde_json::from_value(request["object"].clone()).unwrap();
    let defaults = Workload::defaults(&workload, None, &context);
    let filled: Vec<_> = defaults
        .items()
        .iter()
        .map(|d| (d.pointer.as_str(), d.value.as_str()))
        .collect();
    assert_eq!(
        filled,
        [
            ("/spec/priorityClassName", Some("standard")),
            ("/spec/preemptionPriorityClassName", Some("standard")),
        ]
    );
}
