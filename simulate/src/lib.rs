//! What would happen: discrete events on the core.
//!
//! [`run`] leaves queues and workloads to themselves, cycle after cycle, with the very decisions that the
//! controller would make. [`circles`] searches for workloads that preempt each other without end.
//!
//! Everything here is pure. A search draws from numbers that are the same each time.
#![deny(clippy::arithmetic_side_effects)]

mod loop_report;
pub mod loop_search;
mod queue_tree;
pub mod run;

pub use queue_tree::{CohortTree, QueueProfile, SimulatedCluster, cohort_trees};
