//! The quota tree: ClusterQueues below cohorts below cohorts, and what of their quota is used.
//!
//! Every node has a *cell* for each flavor and resource that it or a node below it has quota of or
//! uses. The amounts of a cell, in the words of the code and of the field:
//!
//! - **nominal quota**: what the node itself is guaranteed;
//! - **subtree**: nominal quota of the node and all that its children lend to it;
//! - **local**: the part of the subtree that the parent never sees, because of the lending limit;
//! - **usage**: what runs below the node and does not fit into a child's local part;
//! - **available**: what the node could use more, now;
//! - **potential**: what it could use if nothing ran.
//!
//! Source: Kueue `pkg/cache/scheduler/resource_node.go`. A queue that names no quota of a flavor and
//! resource has nominal quota 0 of it. Nothing here ends in a panic: a number that names no cell
//! stands for one without quota.

mod overlay;
mod tree;

pub(crate) use overlay::{Overlay, View};
pub(crate) use tree::{Tree, UsageStore};

use crate::amount::Amount;
use crate::ids::{FlavorId, ResourceId};

/// Quota of one flavor and resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The nominal quota.
    pub nominal: Amount,
    /// The most that may be used above the nominal quota; `None` is no limit, zero is nothing.
    pub borrowing_limit: Option<Amount>,
    /// The most that others may use of it; `None` is no limit, zero is nothing.
    pub lending_limit: Option<Amount>,
}

/// The quotas of one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorQuotas {
    /// The flavor.
    pub flavor: FlavorId,
    /// A quota for each resource of the group.
    pub quotas: Vec<(ResourceId, Quota)>,
}

/// Resources that are taken from one flavor together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<ResourceId>,
    /// The flavors, in the order in which they are tried.
    pub flavors: Vec<FlavorQuotas>,
}
