//! Reduces the objects of a dump to what decisions read, and replaces names.

use crate::template;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The fields of `metadata` that answers read.
const METADATA_FIELDS: [&str; 9] = [
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

/// The fields of `status` that answers read.
const STATUS_FIELDS: [&str; 7] = [
    "admission",
    "conditions",
    "nominatedPlacement",
    "preemptionPriority",
    "priority",
    "reclaimablePods",
    "requeueState",
];

/// The label of a namespace with its name, which the API server sets.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Removes all fields of an object that no answer reads: annotations, and of pod templates commands, environment and volumes.
pub fn reduce_object(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| METADATA_FIELDS.contains(&key.as_str()));
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|key, _| STATUS_FIELDS.contains(&key.as_str()));
    }
    let pod_sets = object
        .pointer_mut("/spec/podSets")
        .and_then(Value::as_array_mut);
    for pod_set in pod_sets.into_iter().flatten() {
        if let Some(template) = pod_set.get_mut("template") {
            template::reduce(template);
        }
    }
}

/// Replaces the names of objects by numbered ones, the same name always by the same, and removes messages and labels, which
/// may contain names. Namespaces keep their labels, since ClusterQueues select them.
#[derive(Debug, Default)]
pub struct NameReplacer {
    /// By kind and name.
    names: BTreeMap<(&'static str, String), String>,
    counts: BTreeMap<&'static str, u32>,
}

impl NameReplacer {
    /// Creates a replacer that has not seen a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all names in a reduced object.
    pub fn replace(&mut self, object: &mut Value) {
        let kind = object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        self.replace_metadata(object, own_prefix(&kind), kind == "Namespace");
        for (pointer, prefix) in [
            ("/spec/cohort", "cohort"),
            ("/spec/cohortName", "cohort"),
            ("/spec/parentName", "cohort"),
            ("/spec/clusterQueue", "cluster-queue"),
            ("/spec/queueName", "local-queue"),
            ("/spec/priorityClassName", "class"),
            ("/spec/preemptionPriorityClassName", "class"),
            ("/spec/priorityClassRef/name", "class"),
            ("/status/admission/clusterQueue", "cluster-queue"),
        ] {
            self.replace_at(object.pointer_mut(pointer), prefix);
        }
        for class in items(object.pointer_mut("/spec/allowedPriorityClasses")) {
            self.replace_at(Some(class), "class");
        }
        for group in items(object.pointer_mut("/spec/resourceGroups")) {
            for flavor in items(group.get_mut("flavors")) {
                self.replace_at(flavor.get_mut("name"), "flavor");
            }
        }
        for assignment in items(object.pointer_mut("/status/admission/podSetAssignments")) {
            let flavors = assignment.get_mut("flavors").and_then(Value::as_object_mut);
            for flavor in flavors.into_iter().flat_map(Map::values_mut) {
                self.replace_at(Some(flavor), "flavor");
            }
        }
        for pod_set in items(object.pointer_mut("/spec/podSets")) {
            self.replace_at(
                pod_set.pointer_mut("/template/spec/priorityClassName"),
                "class",
            );
            for containers in ["/template/spec/containers", "/template/spec/initContainers"] {
                for container in items(pod_set.pointer_mut(containers)) {
                    self.replace_at(container.get_mut("name"), "container");
                }
            }
        }
        for condition in items(object.pointer_mut("/status/conditions")) {
            if let Some(message) = condition.get_mut("message") {
                *message = json!("");
            }
        }
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("nominatedPlacement");
        }
    }

    fn replace_metadata(&mut self, object: &mut Value, prefix: &'static str, is_namespace: bool) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        self.replace_at(metadata.get_mut("name"), prefix);
        self.replace_at(metadata.get_mut("namespace"), "namespace");
        for owner in items(metadata.get_mut("ownerReferences")) {
            self.replace_at(owner.get_mut("name"), "job");
        }
        if is_namespace {
            let labels = metadata.get_mut("labels").and_then(Value::as_object_mut);
            let name = labels.and_then(|it| it.get_mut(NAMESPACE_NAME));
            self.replace_at(name, "namespace");
        } else {
            metadata.remove("labels");
        }
    }

    /// Replaces a text; an empty one, and any other value, stays.
    fn replace_at(&mut self, value: Option<&mut Value>, prefix: &'static str) {
        let Some(value) = value else {
            return;
        };
        let Some(name) = value.as_str().filter(|it| !it.is_empty()) else {
            return;
        };
        let key = (prefix, name.to_owned());
        let counts = &mut self.counts;
        let replaced = self.names.entry(key).or_insert_with(|| {
            let count = counts.entry(prefix).or_default();
            *count = count.saturating_add(1);
            format!("{prefix}-{count}")
        });
        *value = Value::from(replaced.as_str());
    }
}

/// The prefix of the new names of a kind.
fn own_prefix(kind: &str) -> &'static str {
    match kind {
        "Namespace" => "namespace",
        "ClusterQueue" => "cluster-queue",
        "Cohort" => "cohort",
        "LocalQueue" => "local-queue",
        "ResourceFlavor" => "flavor",
        "PriorityClass" | "WorkloadPriorityClass" => "class",
        "Workload" => "workload",
        _ => "object",
    }
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
