//! The examples of the rule pages.

use super::{Scenario, registry, scheduling};
use lockkeeper_api::foreign::kueue;
use lockkeeper_policies::rule_page::blocks;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Every pair of objects of every page, with every cluster state and configuration of that page. Kueue's kinds are left
/// out: Kueue's own cases test which updates it rejects. A page is for the first kind of its rule.
pub(super) fn scenarios() -> Vec<Scenario> {
    let mut seen = BTreeSet::new();
    registry::all()
        .iter()
        .filter(|rule| seen.insert(rule.id))
        .filter(|rule| rule.kind != "*" && rule.group != kueue::GROUP)
        .flat_map(|rule| scenarios_of_page(&rule.group, &rule.kind, rule.doc))
        .collect()
}

pub(super) fn scenario(config: Value, world: Vec<Value>) -> Scenario {
    Scenario {
        config,
        world,
        known: false,
        old: Value::Null,
        new: Value::Null,
        metadata: json!({"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": []}),
        order: vec![3, 2, 1, 0],
    }
}

fn scenarios_of_page(group: &str, kind: &str, page: &str) -> Vec<Scenario> {
    let (mut config, mut world) = (json!({}), Vec::new());
    let (mut around, mut objects) = (Vec::new(), Vec::new());
    let blocks = blocks(page).into_iter();
    for block in blocks.filter(|it| it.info.starts_with("yaml ")) {
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&block.text).unwrap();
        match &*block.info {
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
            // Both objects of an update have the same version.
            for new in objects
                .iter()
                .filter(|it| it["apiVersion"] == old["apiVersion"])
            {
                let mut scene = scenario(config.clone(), world.clone());
                (scene.old, scene.new) = (old.clone(), new.clone());
                scene.new["metadata"]["name"] = old["metadata"]["name"].clone();
                scenes.push(scene);
            }
        }
    }
    scenes
}

fn named(group: &str, kind: &str, mut object: Value) -> Value {
    let version = match (group, kind) {
        (scheduling::GROUP, "Workload" | "PodGroup") => {
            format!("{group}/{}", scheduling::VERSION)
        }
        (scheduling::GROUP, _) => "scheduling.k8s.io/v1".to_owned(),
        ("", _) => "v1".to_owned(),
        ("batch", _) => "batch/v1".to_owned(),
        _ => format!("{group}/{}", lockkeeper_api::VERSION),
    };
    // An example of another version sets its apiVersion.
    if object["apiVersion"].is_null() {
        object["apiVersion"] = version.into();
    }
    object["kind"] = kind.into();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = "example".into();
    }
    object
}
