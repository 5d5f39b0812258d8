//! The nodes of a quota tree: ClusterQueues and Cohorts with their quota.

use super::by_flavor::ByFlavor;
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
