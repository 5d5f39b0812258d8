//! Reduces the objects of a dump to what decisions read, and replaces names.

use crate::template;
use lockkeeper_api::labels;
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

/// The fields of `status` that answers read: of a Workload, and of kinds that placement on nodes reads.
const STATUS_FIELDS: [&str; 12] = [
    "admission",
    "allocatable",
    "conditions",
    "disruptedPods",
    "disruptionsAllowed",
    "nominatedPlacement",
    "phase",
    "preemptionPriority",
    "priority",
    "reclaimablePods",
    "requeueState",
    "startTime",
];

/// The fields of the spec of a bound pod that answers read, beside those of a template.
const POD_FIELDS: [&str; 3] = ["nodeName", "priority", "schedulingGroup"];

/// The fields of the spec of a node that answers read.
const NODE_FIELDS: [&str; 2] = ["taints", "unschedulable"];

/// The annotation of pods that mirror a static pod.
const MIRROR_POD: &str = "kubernetes.io/config.mirror";

/// The annotations that placement on nodes reads: of pods that mirror a static pod and are never victims, and of groups of pods.
pub const POD_ANNOTATIONS: [&str; 4] = [
    MIRROR_POD,
    labels::GANG_NAME,
    labels::GANG_MIN_AVAILABLE,
    labels::LEADER_WORKER_SIZE,
];

/// The label of a node with its host name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The label of the pods of a JobSet with its uid, which tells the workload of a pod.
const JOBSET_UID: &str = "jobset.sigs.k8s.io/jobset-uid";

/// The label of a namespace with its name, which the API server sets.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Removes all fields of an object that no answer reads: annotations, and of pod templates commands, environment and volumes.
pub fn reduce_object(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let kind = fields.get("kind").and_then(Value::as_str);
    let (is_pod, is_node) = (kind == Some("Pod"), kind == Some("Node"));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, value| {
            if let Some(annotations) = value.as_object_mut().filter(|_| key == "annotations") {
                annotations.retain(|key, _| POD_ANNOTATIONS.contains(&key.as_str()));
                return !annotations.is_empty();
            }
            METADATA_FIELDS.contains(&key.as_str())
        });
    }
    if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
        if is_pod {
            template::reduce_pod_spec(spec, &POD_FIELDS);
        } else if is_node {
            spec.retain(|key, _| NODE_FIELDS.contains(&key.as_str()));
        }
    }
    if let Some(status) = fields.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|key, _| {
            let is_read = STATUS_FIELDS.contains(&key.as_str());
            // The conditions of nodes and pods decide nothing, and have names in their messages.
            is_read && !((is_pod || is_node) && key == "conditions")
        });
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

/// Removes what selects pods by their labels, which may be names, and which are removed as well.
fn remove_pod_selectors(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("topologySpreadConstraints");
    }
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.retain(|key, _| key == "nodeAffinity");
    }
}

/// Replaces the names of objects by numbered ones, the same name always by the same, and removes messages and labels, which
/// may contain names. Namespaces and nodes keep their labels, which ClusterQueues and pods select.
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
        self.replace_metadata(object, &kind);
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
            ("/spec/nodeName", "node"),
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
            self.replace_at(
                pod_set.pointer_mut("/template/spec/runtimeClassName"),
                "runtime-class",
            );
            if let Some(spec) = pod_set.pointer_mut("/template/spec") {
                remove_pod_selectors(spec);
            }
            for containers in ["/template/spec/containers", "/template/spec/initContainers"] {
                for container in items(pod_set.pointer_mut(containers)) {
                    self.replace_at(container.get_mut("name"), "container");
                }
            }
        }
        if kind == "Pod" {
            self.replace_pod_spec(object);
        }
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("disruptedPods");
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

    fn replace_pod_spec(&mut self, object: &mut Value) {
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            // It has the name of a group.
            spec.remove("schedulingGroup");
        }
        if let Some(spec) = object.get_mut("spec") {
            remove_pod_selectors(spec);
        }
        for containers in ["/spec/containers", "/spec/initContainers"] {
            for container in items(object.pointer_mut(containers)) {
                self.replace_at(container.get_mut("name"), "container");
            }
        }
    }

    fn replace_metadata(&mut self, object: &mut Value, kind: &str) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        // The name of a JobKind is that of the kind that it declares.
        if kind != "JobKind" {
            self.replace_at(metadata.get_mut("name"), own_prefix(kind));
        }
        self.replace_at(metadata.get_mut("namespace"), "namespace");
        for owner in items(metadata.get_mut("ownerReferences")) {
            self.replace_at(owner.get_mut("name"), "job");
        }
        let labels = metadata.get_mut("labels").and_then(Value::as_object_mut);
        match (kind, labels) {
            ("Namespace", Some(labels)) => {
                self.replace_at(labels.get_mut(NAMESPACE_NAME), "namespace");
            }
            ("Node", Some(labels)) => self.replace_at(labels.get_mut(HOSTNAME), "node"),
            ("Pod" | "Workload", Some(all)) => {
                all.retain(|key, _| key == JOBSET_UID || key == labels::POD_GROUP_NAME);
                self.replace_at(all.get_mut(labels::POD_GROUP_NAME), "pod-group");
                let annotations = metadata.get_mut("annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    // Those of groups have names.
                    annotations.retain(|key, _| key == MIRROR_POD);
                }
            }
            _ => {
                metadata.remove("labels");
            }
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
        "Node" => "node",
        "Pod" => "pod",
        "LimitRange" => "limit-range",
        "RuntimeClass" => "runtime-class",
        _ => "object",
    }
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
