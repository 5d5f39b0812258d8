//! Declared kinds of jobs (`JobKind`): how objects of other projects are read, suspended, started and placed.
//!
//! [`DeclaredKind::compile`] compiles a declaration. [`DeclaredKind::read`] reads a job: its state and its pods;
//! [`DeclaredKind::suspend_patch`], [`DeclaredKind::start_patch`] and [`DeclaredKind::placement_patch`] are the only
//! writes, as merge patches (RFC 7386) of `spec`. [`check_against_definition`] compares a declaration with the
//! `CustomResourceDefinition` of its kind.
//!
//! Everything here is pure: no clock, no files, no network. A read costs time linear in the size of the object, and its
//! expressions have the cost limits of rules of custom resources.
#![deny(clippy::arithmetic_side_effects)]

mod compile;
mod compile_error;
mod declared_kind;
mod definition_check;
mod expressions;
mod job_path;
mod parts;
mod patches;
mod pod_sets;
mod read;
mod read_error;
mod similar_names;
mod template_place;

pub use compile_error::{CompileError, describe_errors};
pub use declared_kind::DeclaredKind;
pub use definition_check::check_against_definition;
pub use job_path::{JobPath, JobPathError};
pub use parts::{ChildKind, PodCount, PodSetName, PodSets, PodsField};
pub use patches::{PodSetWrite, PodTemplateSource};
pub use pod_sets::DeclaredPodSet;
pub use read::{DeclaredJob, DeclaredResult};
pub use read_error::ReadError;
