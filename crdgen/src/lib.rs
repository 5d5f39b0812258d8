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
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod admission;
pub mod chart;
pub mod cli;
pub mod expressions;
pub mod pages;
pub mod schemas;
pub mod versions;
pub mod webhooks;

mod definitions;
mod structural;
mod yaml;

pub use definitions::{definitions, plain_definitions};
