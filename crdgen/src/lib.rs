//! Generates files from the types and the rules, so that each fact is defined once: the CRDs of lockkeeper's
//! kinds ([`definitions()`]) with CEL rules ([`cel`]), the admission policies for the other rules
//! ([`admission_policies`]), and the webhook configurations ([`webhooks`]).
//!
//! [`json_schemas`] is for editors and tools that read no CRDs, [`chart`] for the generated parts of the Helm
//! chart.
//!
//! [`versions`] merges kinds with several versions, which lockkeeper's own kinds do not have.
//!
//! [`user_rule_dirs`] reads user rules, which name further kinds for the webhook configurations.
//!
//! [`manifests`] lists and parses manifest files, for all commands.
//!
//! [`diff`] compares two states of CRDs, and [`structural`] reports whether the API server would accept a schema.
//!
//! [`Generator`] generates the same for kinds of other projects (`docs/crdgen-library.md`).
//!
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod admission_policies;
pub mod cel;
pub mod chart;
pub mod cli;
pub mod diff;
pub mod json_schemas;
pub mod manifests;
pub mod user_rule_dirs;
pub mod versions;
pub mod webhooks;

mod definitions;
mod files;
pub mod generator;
mod release_features;
pub mod structural;
mod yaml;

pub use definitions::{definitions, definitions_for, plain_definitions};
pub use generator::{Generator, crd};
