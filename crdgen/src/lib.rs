//! Emits what is derived from the types and the rules, so that nothing is written down twice: the
//! CRDs of lockkeeper's kinds ([`definitions()`]), with what rules say in Kubernetes' CEL
//! ([`expressions`]), the admission policies that hold to the rest ([`admission`]), and the webhook
//! configurations that send their objects to the webhook ([`webhooks`]).
//!
//! [`schemas`] are for editors and tools that read no CRDs, [`chart`] is what is derived in the Helm chart.
//!
//! [`versions`] is for kinds with several versions, which lockkeeper's own do not have.
//!
//! [`pages`] are the rules that users wrote, which say what else is sent.
//!
//! [`diff`] says what changes between two states of CRDs, and [`structural`] whether the API server would take a schema.
//!
//! [`Generator`] does the same for the kinds of others: `docs/crdgen-library.md` says how.
//!
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod admission_policies;
pub mod cel;
pub mod chart;
pub mod cli;
pub mod diff;
pub mod json_schemas;
pub mod user_rule_dirs;
pub mod versions;
pub mod webhooks;

mod definitions;
mod files;
pub mod generator;
pub mod structural;
mod yaml;

pub use definitions::{definitions, plain_definitions};
pub use generator::{Generator, crd};
