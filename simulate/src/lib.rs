//! Discrete-event simulation on the core.
//!
//! [`run`] simulates queues and workloads cycle by cycle, with the same decisions as the controller. [`loop_search`]
//! searches for preemption loops: workloads that preempt each other without end. [`timeline`] simulates jobs with arrivals
//! and run times in virtual time. [`tune`] selects configurations to simulate, and the best of them.
//!
//! Everything here is pure. A search draws from a fixed sequence of pseudo-random numbers.
#![deny(clippy::arithmetic_side_effects)]

mod loop_report;
pub mod loop_search;
mod queue_tree;
mod rng;
pub mod run;
pub mod timeline;
pub mod tune;

pub use queue_tree::{CohortTree, QueueProfile, SimulatedCluster, cohort_trees};
