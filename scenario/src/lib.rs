//! Scenario files, the decisions on them, and explanations as text and JSON.
//!
//! A scenario is a cluster state in a file, for `lockkeeper explain --scenario` and the conformance data
//! (docs/scenario.md). [`Scenario`] describes queues and workloads, [`gang`] pods and pod groups on nodes,
//! and [`job`] jobs under elastic quotas. [`explanation`] prints decisions on queues and workloads.
#![deny(clippy::arithmetic_side_effects)]

mod amount_text;
mod build;
mod core_specs;
mod error;
pub mod explanation;
mod field_check;
mod field_names;
pub mod gang;
pub mod job;
mod scenario;
mod validate;

pub use amount_text::AmountText;
pub use build::{LoadedScenario, compatibility, load, quota_pairs};
pub use core_specs::{core_algorithm, core_pod_sets, declare_cohort, declare_queue};
pub use error::ScenarioError;
pub use field_check::{FieldMistake, find_mistake};
pub use scenario::{
    Algorithm, ClusterQueue, Cohort, FairSharing, FairStrategy, FixedAssignment, Flavor,
    NeededResource, PodSet, Preemption, PreemptionLimits, PreemptionPolicy, Quota, ResourceGroup,
    Scenario, UsageAmount, Workload,
};
pub use validate::{check_pod_sets, check_queues, check_resource_groups};
