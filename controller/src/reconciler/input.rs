//! What the reconciler is told.

use super::output::{Outcome, Ticket};
use crate::jobs::Seen;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use std::fmt;

/// The name of an object, with its namespace; that is empty if it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The namespace.
    pub namespace: String,
    /// The name in it.
    pub name: String,
}

impl Name {
    /// The name of an object in a namespace.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The name that stands in an object.
    #[must_use]
    pub fn of(metadata: &ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// The name of a job, and which of the [`kinds`](crate::jobs::KINDS) it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName {
    /// The position of its kind.
    pub kind: usize,
    /// Its name.
    pub name: Name,
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
    Seen(T),
    /// It is gone.
    Gone(Name),
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
    Job(usize, Change<Box<Seen>>),
    /// An object that could not be read.
    Unreadable(Kind, Name, String),
    /// All objects of a kind that there are were seen; what was there before and was not seen is gone.
    Listed(Kind),
    /// What became of a write.
    Answer(Ticket, Outcome),
    /// Whether this process may write from now on.
    Lead(bool),
}
