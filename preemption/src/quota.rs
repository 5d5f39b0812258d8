//! The quota tree: ClusterQueues below cohorts below cohorts, and the usage of their quota.
//!
//! Every node has a *cell* for each flavor and resource that it or a node below it has quota of or
//! uses. The amounts of a cell:
//!
//! - **nominal quota**: the quota that is guaranteed to the node itself;
//! - **subtree**: the nominal quota of the node and the quota that its children lend to it;
//! - **local**: the part of the subtree that is not lent to the parent, because of the lending limit;
//! - **usage**: the usage below the node that does not fit into the local part of a child;
//! - **available**: the amount that the node could use in addition now;
//! - **potential**: the amount that it could use if there were no usage at all.
//!
//! Source: Kueue `pkg/cache/scheduler/resource_node.go`. A queue without quota of a flavor and resource has
//! nominal quota 0 of it. Nothing here panics: an id of no cell reads as a cell without quota.

mod overlay;
mod spec;
mod tree;

pub(crate) use overlay::{Overlay, View};
pub use spec::{FlavorQuotas, Quota, ResourceGroup};
pub(crate) use tree::{Tree, UsageStore};
