//! What is allowed.
//!
//! A rule is one file and one page in the folder of its kind; [`registry`] lists them all. The
//! [`engine`] runs the rules of an object, drops what an update did not cause, and sorts the
//! [`finding::Finding`]s by the administrator's action. [`defaulting`] says what would be filled in.
//! [`user`] has the rules that users write, [`exceptions`] what the administrator lets pass.
//! Rules that need other objects ask a [`world::World`]; [`index::Index`] is one in memory.
//!
//! Everything here is pure: no clock, no randomness, no files, no network, no async.

pub mod conversion;
pub mod defaulting;
pub mod endless;
pub mod engine;
pub mod exceptions;
pub mod expression;
pub mod facts;
pub mod filling;
pub mod finding;
pub mod guarded;
pub mod index;
pub mod kueue;
pub mod page;
pub mod reference;
pub mod registry;
pub mod rule;
pub mod scheduling;
pub mod settings;
pub mod structure;
pub mod suppression;
pub mod trees;
pub mod undecodable;
pub mod user;
pub mod world;

mod cluster_queue;
mod cohort;
mod elastic_quota;
mod job;
mod job_set;
mod labels;
mod local_queue;
mod metadata;
mod names;
mod pod;
mod pod_sets;
mod preemptible;
mod priority;
mod priority_class;
mod quota;
mod resource_flavor;
mod same;
mod suspension;
mod workload;

#[cfg(test)]
mod pages;
