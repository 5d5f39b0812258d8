//! Structural schemas of custom resources, and CEL with a cost limit.
//!
//! [`StructuralSchema`] applies the schema of a CRD to an object like the API server: it prunes unknown fields, sets
//! defaults, and validates types, bounds and CEL rules, on create and on update. [`cel`] evaluates
//! single CEL expressions of other origin and limits their cost. Both report [`finding::Finding`]s with the paths,
//! kinds of errors and order of the API server.
//!
//! Everything here is pure: no clock, no randomness, no files, no network, no async.

pub mod admission_policy;
pub mod builtin;
pub mod cel;
pub mod crd;
pub mod decode_error;
pub mod finding;
pub mod rule_ids;

mod structural;

pub use structural::{Correction, MisspeltPart, SchemaError, StructuralSchema, display_value};
