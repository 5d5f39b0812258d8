//! A client for single objects of the cluster, over one connection.

use std::cell::RefCell;

use serde_json::{Value, json};

use crate::client::{Client, Response};
use crate::programs::OLDER_MINOR;
use crate::wait;

/// The namespace of all created objects.
const NAMESPACE: &str = "default";

/// The path of the collection of a kind.
pub fn collection(kind: &str) -> String {
    let space = format!("namespaces/{NAMESPACE}");
    let ours = "/apis/lockkeeper.dev/v1alpha1";
    match kind {
        "Workload" => format!("{ours}/{space}/workloads"),
        "LocalQueue" => format!("{ours}/{space}/localqueues"),
        "ClusterQueue" => format!("{ours}/clusterqueues"),
        "Cohort" => format!("{ours}/cohorts"),
        "ResourceFlavor" => format!("{ours}/resourceflavors"),
        "PriorityClass" => "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
        "Job" => format!("/apis/batch/v1/{space}/jobs"),
        "JobSet" => format!("/apis/jobset.x-k8s.io/v1alpha2/{space}/jobsets"),
        "JobKind" => format!("{ours}/jobkinds"),
        "RayCluster" => format!("/apis/ray.io/v1/{space}/rayclusters"),
        "RayJob" => format!("/apis/ray.io/v1/{space}/rayjobs"),
        "MPIJob" => format!("/apis/kubeflow.org/v2beta1/{space}/mpijobs"),
        "SparkApplication" => {
            format!("/apis/sparkoperator.k8s.io/v1beta2/{space}/sparkapplications")
        }
        "TrainingRun" => format!("/apis/training.example.com/v1/{space}/trainingruns"),
        "Deployment" => format!("/apis/apps/v1/{space}/deployments"),
        "ReplicaSet" => format!("/apis/apps/v1/{space}/replicasets"),
        "StatefulSet" => format!("/apis/apps/v1/{space}/statefulsets"),
        "Pod" => format!("/api/v1/{space}/pods"),
        "LimitRange" => format!("/api/v1/{space}/limitranges"),
        "RuntimeClass" => "/apis/node.k8s.io/v1/runtimeclasses".to_owned(),
        "Node" => "/api/v1/nodes".to_owned(),
        "PodDisruptionBudget" => format!("/apis/policy/v1/{space}/poddisruptionbudgets"),
        "PodGroup" => format!("/apis/scheduling.k8s.io/v1beta1/{space}/podgroups"),
        "Event" => format!("/apis/events.k8s.io/v1/{space}/events"),
        "Lease" => "/apis/coordination.k8s.io/v1/namespaces/lockkeeper-system/leases".to_owned(),
        other => panic!("where are objects of kind {other}?"),
    }
}

/// The status code of an API server that has just started.
const TOO_MANY_REQUESTS: u16 = 429;

/// The kinds that a trial may leave objects of, owners first.
const SWEPT_KINDS: [&str; 17] = [
    "JobKind",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "Job",
    "Workload",
    "Pod",
    "PodGroup",
    "LocalQueue",
    "ClusterQueue",
    "Cohort",
    "ResourceFlavor",
    "PriorityClass",
    "LimitRange",
    "RuntimeClass",
    "PodDisruptionBudget",
    "Event",
];

/// The API server, as the administrator.
pub struct Objects {
    client: RefCell<Client>,
}

impl Objects {
    pub fn new(client: Client) -> Self {
        Self {
            client: RefCell::new(client),
        }
    }

    /// Sends a read request. It is repeated if the connection was broken or the API server is not ready.
    #[track_caller]
    fn read(&self, path: &str) -> Response {
        let mut client = self.client.borrow_mut();
        let answer = wait::until(
            || {
                let answer = client.get(path).or_else(|_| client.get(path));
                let answer = answer.map_err(|e| e.to_string())?;
                Ok((answer.status != TOO_MANY_REQUESTS).then_some(answer))
            },
            || format!("the API server is not ready for {path}"),
        );
        answer.unwrap_or_else(|e| panic!("{e}"))
    }

    /// Creates an object.
    #[track_caller]
    pub fn create(&self, object: &Value) -> Value {
        let answer = self.try_create(object);
        assert_eq!(answer.status, 201, "{object:#}: {answer:#?}");
        answer.body
    }

    /// Creates an object in a collection.
    #[track_caller]
    pub fn create_at(&self, path: &str, object: &Value) {
        let answer = self.client.borrow_mut().create(path, object).unwrap();
        assert_eq!(answer.status, 201, "{object:#}: {answer:#?}");
    }

    /// Gets an object by its path; it must exist.
    #[track_caller]
    pub fn read_at(&self, path: &str) -> Value {
        let answer = self.read(path);
        assert_eq!(answer.status, 200, "{path}: {answer:#?}");
        answer.body
    }

    /// Creates an object, and returns the response.
    #[track_caller]
    pub fn try_create(&self, object: &Value) -> Response {
        let path = collection(object["kind"].as_str().unwrap());
        self.client.borrow_mut().create(&path, object).unwrap()
    }

    /// Gets an object that must exist.
    #[track_caller]
    pub fn get(&self, kind: &str, name: &str) -> Value {
        let there = self.find(kind, name);
        there.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// Gets an object if it exists.
    #[track_caller]
    pub fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let path = format!("{}/{name}", collection(kind));
        let answer = self.read(&path);
        match answer.status {
            200 => Some(answer.body),
            404 => None,
            _ => panic!("{kind} {name}: {answer:#?}"),
        }
    }

    /// All objects of a kind.
    #[track_caller]
    pub fn list(&self, kind: &str) -> Vec<Value> {
        self.listing(kind).0
    }

    /// All objects of a kind, and the resource version of the listing.
    #[track_caller]
    pub fn listing(&self, kind: &str) -> (Vec<Value>, String) {
        let path = collection(kind);
        let mut answer = self.read(&path);
        assert_eq!(answer.status, 200, "{kind}: {answer:#?}");
        let version = answer.body["metadata"]["resourceVersion"].as_str();
        let version = version.unwrap().to_owned();
        match answer.body["items"].take() {
            Value::Array(items) => (items, version),
            other => panic!("no list: {other}"),
        }
    }

    /// Changes an object by a merge patch.
    #[track_caller]
    pub fn patch(&self, kind: &str, name: &str, change: &Value) -> Value {
        self.patch_at(&format!("{}/{name}", collection(kind)), change)
    }

    /// Changes the status of an object by a merge patch.
    #[track_caller]
    pub fn patch_status(&self, kind: &str, name: &str, change: &Value) -> Value {
        self.patch_at(&format!("{}/{name}/status", collection(kind)), change)
    }

    #[track_caller]
    fn patch_at(&self, path: &str, change: &Value) -> Value {
        let answer = self.client.borrow_mut().patch(path, change).unwrap();
        assert_eq!(answer.status, 200, "{path} {change}: {answer:#?}");
        answer.body
    }

    /// Deletes an object, and the objects that it owns.
    #[track_caller]
    pub fn delete(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}?propagationPolicy=Background", collection(kind));
        let answer = self.client.borrow_mut().delete(&path).unwrap();
        assert!(matches!(answer.status, 200 | 202), "{path}: {answer:#?}");
    }

    /// Waits until `holds` of an object, and returns the object.
    #[track_caller]
    pub fn wait_until(&self, kind: &str, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = wait::until(
            || {
                last = self.find(kind, name).unwrap_or_default();
                Ok(holds(&last).then(|| last.clone()))
            },
            || format!("{kind} {name} does not get there"),
        );
        found.unwrap_or_else(|e| panic!("{e}: {}", without_managed_fields(last)))
    }

    /// Waits until there is no such object.
    #[track_caller]
    pub fn wait_until_gone(&self, kind: &str, name: &str) {
        self.wait_until(kind, name, Value::is_null);
    }

    /// Removes the objects of earlier trials. No controller that creates objects may be running.
    #[track_caller]
    pub fn sweep(&self, has_jobset: bool) {
        let kinds = has_jobset
            .then_some("JobSet")
            .into_iter()
            .chain(SWEPT_KINDS)
            // The API server of an older Kubernetes does not serve its version.
            .filter(|kind| *kind != "PodGroup" || OLDER_MINOR.is_none());
        let kinds: Vec<&str> = kinds.collect();
        let mut left = Vec::new();
        let found = wait::until(
            || {
                left = kinds
                    .iter()
                    .flat_map(|kind| {
                        self.remaining(kind)
                            .into_iter()
                            .map(move |name| (*kind, name))
                    })
                    .collect();
                // Repeated, because an owner may have created more objects meanwhile.
                for kind in &kinds {
                    if left.iter().any(|(of, _)| of == kind) {
                        self.delete_all(kind);
                    }
                }
                for (kind, name) in &left {
                    self.remove_finalizers(kind, name);
                }
                Ok(left.is_empty().then_some(()))
            },
            || "objects of an earlier trial do not go away".to_owned(),
        );
        found.unwrap_or_else(|e| panic!("{e}: {left:?}"));
    }

    #[track_caller]
    fn delete_all(&self, kind: &str) {
        if kind == "PriorityClass" {
            // The API server creates two of them itself.
            for name in self.remaining(kind) {
                self.delete(kind, &name);
            }
            return;
        }
        let path = format!(
            "{}?propagationPolicy=Background&gracePeriodSeconds=0",
            collection(kind)
        );
        let answer = self.client.borrow_mut().delete(&path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:#?}");
    }

    /// Removes the finalizers of an object that is being deleted. The object may be gone meanwhile.
    #[track_caller]
    fn remove_finalizers(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}", collection(kind));
        let change = json!({"metadata": {"finalizers": null}});
        let answer = self.client.borrow_mut().patch(&path, &change).unwrap();
        assert!(matches!(answer.status, 200 | 404 | 409), "{answer:#?}");
    }

    fn remaining(&self, kind: &str) -> Vec<String> {
        let all = self.list(kind);
        let names = all
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap());
        let names = names.filter(|it| kind != "PriorityClass" || !it.starts_with("system-"));
        names.map(str::to_owned).collect()
    }
}

/// An object without `managedFields`, for messages.
fn without_managed_fields(mut object: Value) -> String {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    format!("{object:#}")
}

/// Merges `change` into `object` (RFC 7386).
pub fn merge(object: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        object.clone_from(change);
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in change {
        match value {
            Value::Null => drop(object.as_object_mut().and_then(|it| it.remove(key))),
            _ => merge(&mut object[key], value),
        }
    }
}
