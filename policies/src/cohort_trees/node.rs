//! The nodes of a quota tree: ClusterQueues and Cohorts with their quota.

use super::by_flavor::{ByFlavor, FlavorResource};
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::quota::{ResourceGroup, ResourceQuota};

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
    /// Whether its workloads also wait for room on nodes. Then it needs no quota.
    pub places_on_nodes: bool,
    /// Its preemption policies.
    pub preemption: QueuePreemption,
    /// The PriorityClasses that its workloads may use; `None` if the object has no list.
    pub allowed_priority_classes: Option<Vec<String>>,
}

/// The part of [`NodeFacts`] that trees read, borrowed from the object under review.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectFacts<'a> {
    pub(crate) parent: Option<&'a str>,
    pub(crate) preemption: QueuePreemption,
    pub(crate) groups: &'a [ResourceGroup],
}

/// The quotas by flavor and resource, in the order of the object.
pub(crate) fn quotas(
    groups: &[ResourceGroup],
) -> impl Iterator<Item = (FlavorResource<'_>, Limits)> {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let all = flavors.flat_map(|flavor| flavor.resources.iter().map(move |it| (flavor, it)));
    all.map(|(flavor, quota)| {
        let of = (flavor.name.as_str(), quota.name.as_str());
        (of, Limits::from(quota))
    })
}

impl From<&ResourceQuota> for Limits {
    fn from(quota: &ResourceQuota) -> Self {
        Self {
            nominal: quota.nominal_quota,
            borrowing: quota.borrowing_limit,
            lending: quota.lending_limit,
        }
    }
}

/// The facts of the object under review.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubjectFacts<'a> {
    /// Those of the tree, which has the same version of the object.
    Stored(&'a NodeFacts),
    /// Those of an object that the tree lacks, or has in another version.
    Object(ObjectFacts<'a>),
}

impl<'a> SubjectFacts<'a> {
    pub(crate) fn parent(self) -> Option<&'a str> {
        match self {
            Self::Stored(facts) => facts.parent.as_deref(),
            Self::Object(facts) => facts.parent,
        }
    }

    pub(crate) fn preemption(self) -> QueuePreemption {
        match self {
            Self::Stored(facts) => facts.preemption,
            Self::Object(facts) => facts.preemption,
        }
    }

    /// The quotas in no particular order. An object that lists a quota twice has it twice.
    pub(crate) fn quotas(self) -> impl Iterator<Item = (FlavorResource<'a>, Limits)> {
        let (stored, object) = match self {
            Self::Stored(facts) => (Some(facts.quotas.iter()), None),
            Self::Object(facts) => (None, Some(quotas(facts.groups))),
        };
        let stored = stored.into_iter().flatten();
        let stored = stored.map(|(of, limits)| (of, *limits));
        stored.chain(object.into_iter().flatten())
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
