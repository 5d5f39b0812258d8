//! Objects as the core's values, and decisions as objects again.
//!
//! The door of the preemption core: names become numbers, quantities amounts, policies enums, and what
//! makes no sense is refused with its place. [`objects`] reads those of a cluster and writes decisions into
//! them, [`scenario`] reads states that are written down, [`settings`] the configuration, [`story`] tells what
//! was decided and why. [`gang`] does the same for pods and gangs on nodes, [`job`] for jobs under elastic quotas.
#![deny(clippy::arithmetic_side_effects)]

pub mod explanation;
pub mod gang;
pub mod job;
mod label_selector;
pub mod objects;
mod queue_policies;
pub mod scenario;
pub mod settings;
