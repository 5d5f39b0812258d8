//! What is allowed.
//!
//! A rule is one file and one page in the folder of its kind; [`registry`] lists them all. The
//! [`engine`] runs the rules of an object, drops what an update did not cause, and sorts the
//! [`finding::Finding`]s by the administrator's action. [`defaulting`] says what would be filled in.
//! Rules that need other objects ask a [`world::World`]; [`index::Index`] is one in memory.
//!
//! Everything here is pure: no clock, no randomness, no files, no network, no async.

pub mod defaulting;
pub mod engine;
pub mod facts;
pub mod finding;
pub mod guarded;
pub mod index;
pub mod registry;
pub mod rule;
pub mod settings;
pub mod world;

mod cluster_queue;
mod cohort;
mod job;
mod job_set;
mod pod;
mod preemptible;
mod priority_class;
mod quota;
mod resource_flavor;
mod suspension;
mod undecodable;
mod workload;

#[cfg(test)]
mod pages;
