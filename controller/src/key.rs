//! Keys of objects (namespace and name), and the kinds that the controller watches.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// `namespace/name`, or the name alone.
    key: Arc<str>,
    /// Byte offset of the name in `key`.
    name_start: usize,
}

impl ObjectKey {
    /// The key of an object in a namespace; an empty namespace means cluster-scoped.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self {
                key: name.into(),
                name_start: 0,
            };
        }
        Self {
            key: [namespace, "/", name].concat().into(),
            name_start: namespace.len().saturating_add(1),
        }
    }

    /// The key from an object's metadata; missing fields count as empty.
    #[must_use]
    pub fn from_metadata(metadata: &ObjectMeta) -> Self {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Self::new(namespace, metadata.name.as_deref().unwrap_or_default())
    }

    /// Parses `namespace/name` or `name`.
    #[must_use]
    pub fn from_key(key: &str) -> Self {
        Self {
            key: key.into(),
            name_start: key.find('/').map_or(0, |at| at.saturating_add(1)),
        }
    }

    /// The text form: `namespace/name`, or the name alone.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The namespace; empty for cluster-scoped kinds.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.key
            .get(..self.name_start.saturating_sub(1))
            .unwrap_or_default()
    }

    /// The name without the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.get(self.name_start..).unwrap_or_default()
    }
}

impl Default for ObjectKey {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most comparisons are between clones of one key, which share the text.
        if Arc::ptr_eq(&self.key, &other.key) {
            return Ordering::Equal;
        }
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

/// The key of a job: its kind, as an index into [`JobKinds`](crate::job_adapters::JobKinds), and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Index of the kind.
    pub kind: usize,
    /// Namespace and name.
    pub name: ObjectKey,
}

/// The kinds that the controller watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `ClusterQueue`.
    ClusterQueue,
    /// `Cohort`.
    Cohort,
    /// `LocalQueue`.
    LocalQueue,
    /// `ResourceFlavor`.
    ResourceFlavor,
    /// `PriorityClass`.
    PriorityClass,
    /// `Namespace`.
    Namespace,
    /// `LimitRange`.
    LimitRange,
    /// `RuntimeClass`.
    RuntimeClass,
    /// `Workload`.
    Workload,
    /// `PodGroup` of Kubernetes; watched only if the cluster has it.
    PodGroup,
    /// `JobKind`; watched only if the cluster has it.
    JobKind,
    /// A kind of job, by its index in [`JobKinds`](crate::job_adapters::JobKinds).
    Job(usize),
    /// `Node`.
    Node,
    /// A pod that is bound to a node and has not ended.
    BoundPod,
    /// `PodDisruptionBudget`.
    DisruptionBudget,
}

impl Kind {
    /// The kinds that are always watched; jobs are watched only if the cluster has their kind.
    pub const FIXED: [Self; 9] = [
        Self::ClusterQueue,
        Self::Cohort,
        Self::LocalQueue,
        Self::ResourceFlavor,
        Self::PriorityClass,
        Self::Namespace,
        Self::LimitRange,
        Self::RuntimeClass,
        Self::Workload,
    ];

    /// The kinds that are watched when a ClusterQueue places workloads on nodes.
    pub const NODES: [Self; 3] = [Self::Node, Self::BoundPod, Self::DisruptionBudget];
}
