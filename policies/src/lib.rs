//! Validation rules and defaults.
//!
//! A rule is one file and one page in the folder of its kind; [`registry`] lists them all, and [`kinds`] lists
//! the kinds. The [`engine`] runs the rules of an object, drops findings that an update did not cause, and sorts
//! the rest by the administrator's action. [`defaulting`] computes default values. [`user_rules`] are rules that
//! users write, [`exceptions`] are exemptions that the administrator configures. Rules look up other objects in a
//! [`cluster_view::ClusterView`]; [`index::Index`] is one in memory.
//!
//! Everything here is pure: no clock, no randomness, no files, no network, no async.

pub mod admission_policy;
pub mod cel;
pub mod cel_defaults;
pub mod cluster_view;
pub mod cohort_trees;
pub mod declared_suspension;
pub mod decode_error;
pub mod defaulting;
pub mod engine;
pub mod exceptions;
pub mod facts;
pub mod index;
pub mod kinds;
pub mod kueue;
pub mod lossy_conversion;
pub mod metadata_cel;
pub mod preemption_loops;
pub mod reference;
pub mod registry;
pub mod rule;
pub mod rule_info;
pub mod rule_page;
pub mod scheduling;
pub mod schema;
pub mod settings;
pub mod suppression;
pub mod user_rules;
pub mod validated_kind;

mod cluster_queue;
mod cohort;
mod elastic_quota;
mod job;
mod job_kind;
mod job_set;
mod job_suspend;
mod labels;
mod local_queue;
mod metadata;
mod multimap;
mod name_validation;
mod object_kind;
mod object_ref;
mod pod;
mod pod_requests;
mod pod_sets;
mod preemptible_label;
mod priority_admission;
mod priority_class;
mod queued_job;
mod quota;
mod resource_flavor;
mod semantic_equality;
mod submission;
mod suppression_rule;
mod workload;

pub use lockkeeper_crd_schema::finding;

#[cfg(test)]
mod rule_page_tests;
