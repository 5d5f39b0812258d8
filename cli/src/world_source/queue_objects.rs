//! The manifests of queues, cohorts, flavors and classes, which rules check before and after a change.

use lockkeeper_api::GROUP;
use lockkeeper_api::foreign::kueue;
use lockkeeper_check::Identity;
use serde_json::Value;
use std::collections::BTreeMap;

/// API group, kind, namespace and name. Versions of a kind have the same objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectKey {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// The objects, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueObjects {
    objects: BTreeMap<ObjectKey, Value>,
}

impl QueueObjects {
    /// Adds an object in place of one with the same name. Objects of other kinds are ignored.
    pub(crate) fn put(&mut self, object: &Value) {
        if let Some(key) = queue_object_key(object) {
            self.objects.insert(key, object.clone());
        }
    }

    /// Adds the objects of another collection in place of those with the same names.
    pub(crate) fn merge(&mut self, other: Self) {
        self.objects.extend(other.objects);
    }

    /// Removes the object with the kind and name of another one.
    pub(crate) fn remove(&mut self, object: &Value) {
        if let Some(key) = queue_object_key(object) {
            self.objects.remove(&key);
        }
    }

    /// The objects, sorted by group, kind and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }
}

/// The key of a queue, cohort, flavor or class; `None` for objects of other kinds.
fn queue_object_key(object: &Value) -> Option<ObjectKey> {
    // Most objects of a cluster are workloads: their names are not copied.
    if object.get("kind").and_then(Value::as_str) == Some("Workload") {
        return None;
    }
    let identity = Identity::from_object(object);
    let (group, _) = identity.api_version.split_once('/')?;
    let is_considered = match group {
        GROUP | kueue::GROUP => matches!(
            identity.kind.as_str(),
            "ClusterQueue" | "Cohort" | "LocalQueue" | "ResourceFlavor" | "WorkloadPriorityClass"
        ),
        "scheduling.k8s.io" => identity.kind == "PriorityClass",
        _ => false,
    };
    is_considered.then(|| ObjectKey {
        group: group.to_owned(),
        kind: identity.kind,
        namespace: identity.namespace,
        name: identity.name,
    })
}

#[cfg(test)]
mod tests {
    use super::QueueObjects;
    use serde_json::{Value, json};

    fn object(version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn objects_of_the_same_name_replace_each_other() {
        let mut objects = QueueObjects::default();
        for (version, kind) in [
            ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta2", "Workload"),
            ("lockkeeper.dev/v1alpha1", "ClusterQueue"),
            ("v1", "Namespace"),
            ("scheduling.k8s.io/v1", "PriorityClass"),
        ] {
            objects.put(&object(version, kind, "a"));
        }
        let versions = |objects: &QueueObjects| -> Vec<String> {
            let versions = objects.iter().map(|it| it["apiVersion"].as_str().unwrap());
            versions.map(str::to_owned).collect()
        };
        let all = [
            "kueue.x-k8s.io/v1beta2",
            "lockkeeper.dev/v1alpha1",
            "scheduling.k8s.io/v1",
        ];
        assert_eq!(versions(&objects), all);
        objects.remove(&object("kueue.x-k8s.io/v1beta1", "ClusterQueue", "a"));
        objects.remove(&object("lockkeeper.dev/v1alpha1", "ClusterQueue", "b"));
        assert_eq!(versions(&objects), all[1..]);
    }
}
