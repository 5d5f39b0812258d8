//! lockkeeper's kinds, its configuration, and helpers for Kubernetes objects.
//!
//! The five kinds of the group `lockkeeper.dev` ([`ClusterQueue`], [`Cohort`], [`LocalQueue`],
//! [`ResourceFlavor`], [`Workload`]), the fields of [`JobSet`] that lockkeeper reads, the [`config`]
//! of the processes, exact [`quantity::Quantity`] values, the well-known [`labels`], and [`field_path::FieldPath`] as
//! Kubernetes prints it. Types only: this crate does not access a cluster or a clock, and does not
//! validate objects.
//!
//! Doc comments on the fields become the descriptions in the CRDs, so they are written for
//! readers of `kubectl explain`.
#![deny(clippy::arithmetic_side_effects)]

pub mod allowed_priority_classes;
pub mod cluster_queue;
pub mod cohort;
pub mod config;
pub mod field_path;
pub mod foreign;
pub mod job_kind;
pub mod job_set;
pub mod labels;
pub mod local_queue;
pub mod metadata;
pub mod names;
pub mod quantity;
pub mod quota;
pub mod resource_flavor;
mod schema;
pub mod soft_eviction;
pub mod workload;

pub use cluster_queue::ClusterQueue;
pub use cohort::Cohort;
pub use job_kind::JobKind;
pub use job_set::JobSet;
pub use local_queue::LocalQueue;
pub use resource_flavor::ResourceFlavor;
pub use workload::Workload;

/// The API group of lockkeeper's own kinds.
pub const GROUP: &str = "lockkeeper.dev";

/// The API version of lockkeeper's own kinds.
pub const VERSION: &str = "v1alpha1";
