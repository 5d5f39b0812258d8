//! Emits what is derived from the types and the rules, so that nothing is written down twice: the
//! CRDs of lockkeeper's kinds ([`definitions()`]) and the webhook configurations that send their
//! objects to the webhook ([`webhooks`]).
//!
//! [`pages`] are the rules that users wrote, which say what else is sent.
//!
//! [`chart`] makes of both what is derived in the Helm chart.
//!
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod admission;
pub mod chart;
pub mod cli;
pub mod expressions;
pub mod pages;
pub mod schemas;
pub mod webhooks;

mod definitions;
mod structural;
mod yaml;

pub use definitions::{definitions, plain_definitions};
