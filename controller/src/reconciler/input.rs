//! What the reconciler is told.

use super::conditions::has_status;
use super::output::{WriteId, WriteResult};
use crate::job_adapters::{JobView, KINDS, strip_template};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of an object, with its namespace; that is empty if it has none. A clone shares the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// `namespace/name`, or the name alone.
    key: Arc<str>,
    /// Where the name begins.
    name_start: usize,
}

impl ObjectKey {
    /// The name of an object in a namespace.
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

    /// The name that stands in an object.
    #[must_use]
    pub fn from_metadata(metadata: &ObjectMeta) -> Self {
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        Self::new(namespace, metadata.name.as_deref().unwrap_or_default())
    }

    /// The name from how it is written.
    #[must_use]
    pub fn from_key(key: &str) -> Self {
        Self {
            key: key.into(),
            name_start: key.find('/').map_or(0, |at| at.saturating_add(1)),
        }
    }

    /// The name as it is written: `namespace/name`, or the name alone.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The namespace; empty if the object is in none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.key
            .get(..self.name_start.saturating_sub(1))
            .unwrap_or_default()
    }

    /// The name in the namespace.
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

/// The name of a job, and which of the [`kinds`](crate::jobs::KINDS) it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The position of its kind.
    pub kind: usize,
    /// Its name.
    pub name: ObjectKey,
}

/// The kinds that are watched.
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
    /// `Workload`.
    Workload,
    /// One of the kinds of jobs, by its position.
    Job(usize),
}

impl Kind {
    /// Those that are no jobs.
    pub const FIXED: [Self; 7] = [
        Self::ClusterQueue,
        Self::Cohort,
        Self::LocalQueue,
        Self::ResourceFlavor,
        Self::PriorityClass,
        Self::Namespace,
        Self::Workload,
    ];
}

/// What a watch saw of an object.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// It is there, as this.
    Applied(T),
    /// It is gone.
    Deleted(ObjectKey),
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A ClusterQueue.
    ClusterQueue(Change<Box<ClusterQueue>>),
    /// A Cohort.
    Cohort(Change<Box<Cohort>>),
    /// A LocalQueue.
    LocalQueue(Change<Box<LocalQueue>>),
    /// A `ResourceFlavor`.
    ResourceFlavor(Change<Box<ResourceFlavor>>),
    /// A PriorityClass.
    PriorityClass(Change<Box<PriorityClass>>),
    /// A namespace.
    Namespace(Change<Box<Namespace>>),
    /// A workload.
    Workload(Change<Box<Workload>>),
    /// A job with the label of a queue, of the kind at this position.
    Job(usize, Change<Box<JobView>>),
    /// An object that could not be read.
    Unreadable(Kind, ObjectKey, String),
    /// All objects of a kind that there are were seen; what was there before and was not seen is gone.
    Listed(Kind),
    /// What became of a write.
    WriteFinished(WriteId, WriteResult),
    /// The cluster has the kind of job at this position; its jobs will be listed.
    JobKindAvailable(usize),
    /// Whether this process may write from now on.
    Leadership(bool),
}

impl Input {
    /// An object was seen, as it came from the API server. Of pod templates only what decides something is
    /// kept.
    #[must_use]
    pub fn applied(kind: Kind, name: ObjectKey, object: Value) -> Self {
        let read = match kind {
            Kind::ClusterQueue => decode(object).map(|it| Self::ClusterQueue(Change::Applied(it))),
            Kind::Cohort => decode(object).map(|it| Self::Cohort(Change::Applied(it))),
            Kind::LocalQueue => decode(object).map(|it| Self::LocalQueue(Change::Applied(it))),
            Kind::ResourceFlavor => {
                decode(object).map(|it| Self::ResourceFlavor(Change::Applied(it)))
            }
            Kind::PriorityClass => {
                decode(object).map(|it| Self::PriorityClass(Change::Applied(it)))
            }
            Kind::Namespace => decode(object).map(|it| Self::Namespace(Change::Applied(it))),
            Kind::Workload => decode(object)
                .map(|it| Self::Workload(Change::Applied(Box::new(strip_workload(*it))))),
            Kind::Job(at) => parse_job(at, object).map(|it| Self::Job(at, Change::Applied(it))),
        };
        read.unwrap_or_else(|error| Self::Unreadable(kind, name, error))
    }

    /// An object is gone.
    #[must_use]
    pub fn deleted(kind: Kind, name: ObjectKey) -> Self {
        match kind {
            Kind::ClusterQueue => Self::ClusterQueue(Change::Deleted(name)),
            Kind::Cohort => Self::Cohort(Change::Deleted(name)),
            Kind::LocalQueue => Self::LocalQueue(Change::Deleted(name)),
            Kind::ResourceFlavor => Self::ResourceFlavor(Change::Deleted(name)),
            Kind::PriorityClass => Self::PriorityClass(Change::Deleted(name)),
            Kind::Namespace => Self::Namespace(Change::Deleted(name)),
            Kind::Workload => Self::Workload(Change::Deleted(name)),
            Kind::Job(at) => Self::Job(at, Change::Deleted(name)),
        }
    }
}

/// A workload without all that decides nothing here.
fn strip_workload(mut it: Workload) -> Workload {
    it.metadata.labels = None;
    it.metadata.annotations = None;
    if has_status(&it, "Finished", "True") {
        it.spec.pod_sets = Vec::new();
        if let Some(status) = &mut it.status {
            *status = WorkloadStatus {
                conditions: std::mem::take(&mut status.conditions),
                ..WorkloadStatus::default()
            };
            status.conditions.retain(|it| it.type_ == "Finished");
        }
    }
    for pod_set in &mut it.spec.pod_sets {
        let template = Arc::unwrap_or_clone(std::mem::take(&mut pod_set.template));
        pod_set.template = Arc::new(strip_template(template));
    }
    it
}

fn parse_job(at: usize, object: Value) -> Result<Box<JobView>, String> {
    let kind = KINDS.get(at).ok_or_else(String::new)?;
    let read = kind.parse(object).map(Box::new);
    read.map_err(|error| error.to_string())
}

fn decode<T: DeserializeOwned>(object: Value) -> Result<Box<T>, String> {
    let read = serde_json::from_value(object).map(Box::new);
    read.map_err(|error| error.to_string())
}
