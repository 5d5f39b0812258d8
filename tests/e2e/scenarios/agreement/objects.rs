//! The objects that all sides validate.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use lockkeeper_policies::registry;
use serde_json::{Value, json};

use crate::ROOT;

/// An object and its source.
pub struct TestObject {
    /// A unique name.
    id: String,
    pub object: Value,
}

impl TestObject {
    /// The name of a file for it.
    pub fn file(&self) -> String {
        format!("{}.json", self.id)
    }
}

/// A folder of the published cases, if it exists.
pub fn folder(name: &str) -> Option<PathBuf> {
    let given = env::var_os("LOCKKEEPER_CONFORMANCE_DIR");
    let data = given.map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = Path::new(ROOT).join(data).join(name);
    folder.is_dir().then_some(folder)
}

/// The examples, those of the rule pages, and the published manifests and cases. Objects with the same name are renamed, so
/// that each object is independent.
pub fn all() -> Vec<TestObject> {
    let mut found = Vec::new();
    documents(&Path::new(ROOT).join("examples"), "example", &mut found);
    pages(&mut found);
    if let Some(folder) = folder("manifests") {
        documents(&folder, "manifest", &mut found);
    }
    if let Some(folder) = folder("webhook") {
        cases(&folder, &mut found);
    }
    let mut seen = BTreeSet::new();
    found.retain(|it| it.object["kind"].is_string() && seen.insert(it.object.to_string()));
    for object in &mut found {
        normalize(&mut object.object);
    }
    make_names_unique(&mut found);
    found
}

/// Sets the fields of an object that depend on the cluster, and the fields of pods that no rule is about.
fn normalize(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        // It is compared separately.
        fields.remove("status");
    }
    let is_namespaced = registry::known_registrations()
        .iter()
        .any(|it| object["kind"] == it.kind && it.namespaced);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for key in [
            "creationTimestamp",
            "resourceVersion",
            "uid",
            "generation",
            "managedFields",
        ] {
            metadata.remove(key);
        }
        if is_namespaced && !metadata.contains_key("namespace") {
            metadata.insert("namespace".to_owned(), "default".into());
        }
    }
    if object["kind"] == "Pod" {
        for list in ["containers", "initContainers"] {
            for container in object["spec"][list].as_array_mut().into_iter().flatten() {
                if container["image"].is_null() {
                    container["image"] = IMAGE.into();
                }
            }
        }
        if object["spec"]["containers"]
            .as_array()
            .is_none_or(Vec::is_empty)
        {
            object["spec"]["containers"] = json!([{"name": "main", "image": IMAGE}]);
        }
    }
}

const IMAGE: &str = "registry.example.com/train:1";

/// Renames objects that have the same name.
fn make_names_unique(all: &mut [TestObject]) {
    let mut seen = BTreeMap::<String, usize>::new();
    for object in all {
        let name = object.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let version = object.object["apiVersion"].as_str().unwrap_or_default();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let key = format!(
            "{group} {} {} {name}",
            object.object["kind"], object.object["metadata"]["namespace"]
        );
        let count = seen.entry(key).or_default();
        *count += 1;
        if *count > 1 && !name.is_empty() {
            object.object["metadata"]["name"] = format!("{name}-{count}").into();
        }
    }
}

/// Every object in the YAML files below a folder.
fn documents(folder: &Path, prefix: &str, out: &mut Vec<TestObject>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let prefix = format!("{prefix}-{stem}");
        if path.is_dir() {
            documents(&path, &prefix, out);
            continue;
        }
        if !path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml")
        {
            continue;
        }
        // Some of the published files are templates.
        let text = fs::read_to_string(&path).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
        collect(objects, &prefix, out);
    }
}

fn collect(objects: Vec<Value>, prefix: &str, out: &mut Vec<TestObject>) {
    for (number, mut object) in objects.into_iter().enumerate() {
        let id = format!("{prefix}-{number}");
        match object["items"].take() {
            Value::Array(items) => collect(items, &id, out),
            _ => out.push(TestObject { id, object }),
        }
    }
}

/// The good and bad examples of the rule pages, and their other objects.
fn pages(out: &mut Vec<TestObject>) {
    let mut seen = BTreeSet::new();
    let guarded = registry::known_registrations();
    for rule in registry::all() {
        let mut kinds = guarded.iter();
        let kind = kinds.find(|it| it.group == rule.group && it.kind == rule.kind);
        let Some(kind) = kind.filter(|_| seen.insert(rule.id)) else {
            continue;
        };
        let version = if kind.group.is_empty() {
            kind.version.clone()
        } else {
            format!("{}/{}", kind.group, kind.version)
        };
        let blocks = rule.doc.split("\n```");
        let blocks = blocks.filter_map(|it| it.strip_prefix("yaml ")?.split_once('\n'));
        for (number, (info, text)) in blocks.enumerate() {
            let id = format!("page-{}-{number}", rule.id);
            match info {
                "world" => collect(serde_saphyr::from_multiple(text).unwrap(), &id, out),
                "good" | "bad" => {
                    let mut object: Value = serde_saphyr::from_str(text).unwrap();
                    object["apiVersion"] = version.clone().into();
                    object["kind"] = kind.kind.clone().into();
                    if object["metadata"]["name"].is_null() {
                        object["metadata"]["name"] = rule.id.to_lowercase().into();
                    }
                    out.push(TestObject { id, object });
                }
                _ => {}
            }
        }
    }
}

/// The created objects of the published cases.
fn cases(folder: &Path, out: &mut Vec<TestObject>) {
    let mut paths: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
    {
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            if case["operation"] == "CREATE" && case["object"]["kind"].is_string() {
                let id = case["id"].as_str().unwrap().to_owned();
                out.push(TestObject {
                    id,
                    object: case["object"].clone(),
                });
            }
        }
    }
}
