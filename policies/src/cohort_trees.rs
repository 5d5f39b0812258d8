//! Quota trees: ClusterQueues below Cohorts, the flavors they have quota for, and the LocalQueues that
//! point to them. lockkeeper's trees and Kueue's are separate.

mod by_flavor;
pub(crate) mod hypothetical_tree;
mod lending;
mod node;
pub(crate) mod queue_summary;
mod summary;
mod tree;

pub use crate::object_kind::Project;
pub use by_flavor::{ByFlavor, FlavorResource};
pub use node::{FlavorFacts, Limits, LocalQueueFacts, Node, NodeFacts, NodeKind};
pub(crate) use node::{ObjectFacts, SubjectFacts, quotas};
pub(crate) use tree::EMPTY;
pub use tree::Tree;
