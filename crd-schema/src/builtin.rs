//! Objects of Kubernetes' built-in kinds, decoded, defaulted and validated as the API server does.
//!
//! [`BuiltInKind::find`] finds a kind by its `apiVersion` and name. [`BuiltInKind::answer`] decodes, defaults and validates
//! the body of a request; the semantics are those of `k8s.io/kubernetes` 1.37. `validation` lists the kinds with a
//! validation; objects of other kinds are accepted if they can be decoded.
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
mod scalars;
mod strategy;
mod table;
mod validation;

pub use kind::BuiltInKind;
pub use lifecycle::Release;
pub(crate) use merge_types::{BuiltInType, Relation};
pub use problem::Problem;
