//! The nodes of a quota tree: ClusterQueues and Cohorts with their quota.

use super::by_flavor::{ByFlavor, FlavorResource, HashedKey};
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// A ClusterQueue: a leaf.
    Queue,
    /// A Cohort.
    Cohort,
}

/// A node of a quota tree.
pub type Node = (NodeKind, String);

/// The quota of one resource of one flavor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The nominal quota.
    pub nominal: Quantity,
    /// The borrowing limit; `None` is no limit.
    pub borrowing: Option<Quantity>,
    /// The lending limit; `None` is no limit.
    pub lending: Option<Quantity>,
}

/// The facts of a ClusterQueue or a Cohort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The name of the parent cohort.
    pub parent: Option<String>,
    /// Its quota.
    pub quotas: ByFlavor<Limits>,
    /// Whether admission checks may select flavors.
    pub has_checks: bool,
    /// Whether its workloads may preempt others of the same priority.
    pub preempts_equals: bool,
    /// Its preemption policies.
    pub preemption: QueuePreemption,
    /// The PriorityClasses that its workloads may use; `None` if the object has no list.
    pub allowed_priority_classes: Option<Vec<String>>,
}

/// The part of [`NodeFacts`] that trees read, with names borrowed from the object under review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectFacts<'a> {
    pub(crate) parent: Option<&'a str>,
    pub(crate) quotas: ByFlavor<Limits, &'a str>,
    pub(crate) preemption: QueuePreemption,
}

/// The facts of the object under review.
#[derive(Clone, Debug)]
pub(crate) enum SubjectFacts<'a> {
    /// Those of the tree, which has the same version of the object.
    Stored(&'a NodeFacts),
    /// Those of an object that the tree lacks, or has in another version.
    Object(ObjectFacts<'a>),
}

/// The facts of a node of a tree.
#[derive(Clone, Copy)]
pub(super) enum FactsRef<'a> {
    Stored(&'a NodeFacts),
    Object(&'a ObjectFacts<'a>),
}

impl SubjectFacts<'_> {
    pub(super) fn as_ref(&self) -> FactsRef<'_> {
        match self {
            Self::Stored(facts) => FactsRef::Stored(facts),
            Self::Object(facts) => FactsRef::Object(facts),
        }
    }

    pub(crate) fn parent(&self) -> Option<&str> {
        self.as_ref().parent()
    }

    pub(crate) fn preemption(&self) -> QueuePreemption {
        self.as_ref().preemption()
    }

    pub(crate) fn quotas(&self) -> impl Iterator<Item = (FlavorResource<'_>, &Limits)> {
        self.as_ref().quotas()
    }
}

impl<'a> FactsRef<'a> {
    pub(super) fn parent(self) -> Option<&'a str> {
        match self {
            Self::Stored(facts) => facts.parent.as_deref(),
            Self::Object(facts) => facts.parent,
        }
    }

    pub(super) fn preemption(self) -> QueuePreemption {
        match self {
            Self::Stored(facts) => facts.preemption,
            Self::Object(facts) => facts.preemption,
        }
    }

    pub(super) fn quotas(self) -> impl Iterator<Item = (FlavorResource<'a>, &'a Limits)> {
        let (stored, object) = match self {
            Self::Stored(facts) => (Some(facts.quotas.iter()), None),
            Self::Object(facts) => (None, Some(facts.quotas.iter())),
        };
        let stored = stored.into_iter().flatten();
        stored.chain(object.into_iter().flatten())
    }

    pub(super) fn limits(self, key: HashedKey<'_>) -> Option<&'a Limits> {
        match self {
            Self::Stored(facts) => facts.quotas.get_hashed(key),
            Self::Object(facts) => facts.quotas.get_hashed(key),
        }
    }
}

/// The facts of a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalQueueFacts {
    /// The name of its ClusterQueue.
    pub cluster_queue: String,
    /// The PriorityClasses that its workloads may use; `None` if the object has no list.
    pub allowed_priority_classes: Option<Vec<String>>,
}

/// The facts of a ResourceFlavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlavorFacts {
    /// The node labels, taints and tolerations as text: flavors with equal text have the same nodes. `None` without
    /// labels: any node matches.
    pub nodes: Option<String>,
}
