//! Objects of Kubernetes' built-in kinds, decoded, defaulted and validated as the API server does.
//!
//! [`BuiltInKind::find`] finds a kind of the newest release by its `apiVersion` and name, [`BuiltInKind::find_in`] one of
//! any release of [`Release::SUPPORTED`]. [`BuiltInKind::answer`] decodes, defaults and validates the body of a request.
//! Versions, fields and types are those of the release; defaults and validation are those of `k8s.io/kubernetes` 1.37, of
//! which none sets or requires a field that an older release does not have. `validation` lists the kinds with a validation;
//! objects of other kinds are accepted if they can be decoded.
//!
//! ```
//! use lockkeeper_crd_schema::builtin::BuiltInKind;
//! use serde_json::json;
//!
//! let kind = BuiltInKind::find("v1", "ConfigMap").unwrap();
//! let problems = kind.problems(&json!({"metadata": {"name": 1}, "dota": {}}));
//! assert_eq!(problems.len(), 2);
//! ```

mod answer;
mod decode;
mod defaults;
mod encode;
mod envelope;
mod fields;
mod kind;
mod lifecycle;
mod merge_types;
mod prepare;
mod problem;
#[cfg(test)]
mod recorded_cases;
mod release;
mod scalars;
mod strategy;
mod table;
#[cfg(test)]
mod tests;
mod validation;

pub use kind::BuiltInKind;
pub(crate) use merge_types::{BuiltInType, Relation};
pub use problem::Problem;
pub use release::{Release, ReleaseError};
