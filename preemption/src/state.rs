//! The input of all decisions, kept up to date by events.
//!
//! An event costs the logarithm of the number of workloads, times the flavors and resources of the
//! workload and the depth of its tree. Changed queues and cohorts take effect at the next decision, at a cost
//! of the size of their trees.

mod api;
mod damping;
mod held_quota;
mod model;
mod names_view;
mod node_view;
mod nodes;
mod non_preemptible;
mod quota_level;
mod reactivation;
mod tree_view;
mod usage;
mod workload_view;
mod workloads;

pub use api::{active_class_count, has_heads};
pub use damping::DampingView;
pub(crate) use damping::victim_protection;
pub(crate) use held_quota::{apply_hold, apply_holds, reapply_hold, release_hold};
pub use model::State;
pub use names_view::NamesView;
pub use node_view::{NodeView, PendingCounts};
pub use quota_level::{QuotaLevel, quota_levels};
pub(crate) use reactivation::{apply_changes, reactivate, reactivate_where_holds_ended};
pub use tree_view::TreeView;
pub(crate) use usage::{ensure_cell, reserve_usage};
pub use workload_view::WorkloadView;
pub use workloads::{mark_preemptor, mark_stuck, set_execution_time_max, set_latest_end};
