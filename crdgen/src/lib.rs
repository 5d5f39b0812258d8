//! Emits what is derived from the types and the rules, so that nothing is written down twice: the
//! CRDs of lockkeeper's kinds ([`definitions()`]) and the webhook configurations that send their
//! objects to the webhook ([`webhooks`]).
//!
//! [`pages`] are the rules that users wrote, which say what else is sent.
//!
//! [`cli`] is the command line of the binary `crdgen`, and of `lockkeeper crds`.

pub mod cli;
pub mod pages;
pub mod webhooks;

mod definitions;
pub mod structural;
mod yaml;

pub use definitions::definitions;
