//! Emits what is derived from the types and the rules, so that nothing is written down twice: the
//! CRDs of lockkeeper's kinds ([`definitions()`]) and the webhook configurations that send their
//! objects to the webhook ([`webhooks`]).
//!
//! [`pages`] are the rules that users wrote, which say what else is sent.
//!
//! [`diff`] says what changes between two states of CRDs, and [`structural`] whether the API server would take a schema.
//!
//! [`Generator`] does the same for the kinds of others: `docs/crdgen-library.md` says how.
//!
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod cli;
pub mod diff;
pub mod pages;
pub mod webhooks;

mod definitions;
pub mod generator;
pub mod structural;
mod yaml;

pub use definitions::definitions;
pub use generator::{Generator, crd};
