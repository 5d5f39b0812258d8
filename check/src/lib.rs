//! The offline linter: checks manifests with the rules of the webhook, and fixes typos and missing defaults.
//!
//! The steps, in order: [`ParsedSource::parse`] reads a YAML or JSON text with positions, [`collect`] gathers the
//! facts about other objects that rules look up, [`Checker`] runs schemas and rules, and [`report`] renders the findings. [`Fixer`]
//! corrects a text in place. Reading files and clusters is the caller's work: this crate does no I/O.

mod admission;
mod checker;
pub mod collect;
mod conversion;
mod defined_view;
mod definitions;
mod document;
mod exception_usage;
mod fix;
mod kinds;
mod kueue_version;
mod list_target;
mod nearest;
mod old_objects;
mod preemption_loops;
pub mod report;
mod rule_selection;
mod setup_error;
mod severity;
mod source;
mod source_cache;
pub mod worker_pool;
pub mod yaml;

pub use admission::AdmissionPolicies;
pub use checker::{CheckedObject, Checker};
pub use conversion::{Converter, PriorityClassValues, YamlError, append_yaml, convert_value};
pub use definitions::{
    DefinitionSet, IncompleteDefinition, LocationError, ReadSchema, SchemaCatalog, SchemaLocation,
    is_definition,
};
pub use document::{Document, Identity, Origin};
pub use exception_usage::{ExceptionStatus, ExceptionUsage};
pub use fix::{FixedFile, Fixer};
pub use kinds::{KindRegistry, enforce_queue_rules, offline_settings};
pub use kueue_version::{KueueVersion, VersionError};
pub use list_target::ListTarget;
pub use lockkeeper_crd_schema::admission_policy::{PolicySet, Resource, UserInfo};
pub use lockkeeper_crd_schema::builtin::Release;
pub use old_objects::OldObjects;
pub use preemption_loops::{LoopFinding, LoopFindings, LoopSearchInput, ObjectPosition};
pub use rule_selection::{RuleSelection, UnknownSelector};
pub use setup_error::SetupError;
pub use severity::Severity;
pub use source::{ParsedSource, ReadError};
pub use source_cache::SourceCache;
