//! The nodes of a quota tree: ClusterQueues and Cohorts with their quota.

use super::by_flavor::ByFlavor;
use crate::preemption_loops::QueuePreemption;
use lockkeeper_api::quantity::Quantity;

/// What stands in a quota tree.
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
    /// What is its own.
    pub nominal: Quantity,
    /// The most that it borrows.
    pub borrowing: Option<Quantity>,
    /// The most that it lends.
    pub lending: Option<Quantity>,
}

/// What rules use of a ClusterQueue or a Cohort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The cohort that it is in.
    pub parent: Option<String>,
    /// Its quota.
    pub quotas: ByFlavor<Limits>,
    /// Whether admission checks may tell its flavors apart.
    pub has_checks: bool,
    /// Whether workloads in it may preempt others of the same priority.
    pub preempts_equals: bool,
    /// What its policies let workloads in it do.
    pub preemption: QueuePreemption,
}

/// What rules use of a ResourceFlavor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlavorFacts {
    /// What its nodes are known by, as text: flavors of the same text have the same nodes. `None` when it
    /// names no label, so that any node would do.
    pub nodes: Option<String>,
}
