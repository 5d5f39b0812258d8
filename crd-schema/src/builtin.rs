//! Kubernetes' own kinds, decoded and completed as an API server does.
//!
//! [`BuiltInKind::find`] finds a kind of Kubernetes 1.37 by its API version, and [`BuiltInKind::answer`] answers a
//! request for an object of it: what cannot be decoded, unknown and duplicate fields, and the object with its
//! defaults. The validation of values that an API server has in Go is not complete: an accepted object may still be
//! rejected by an API server.
//!
//! ```
//! use lockkeeper_crd_schema::builtin::BuiltInKind;
//! use lockkeeper_crd_schema::crd::{Body, FieldValidation, Request, StrictProblem, Verdict};
//! use serde_json::json;
//!
//! let kind = BuiltInKind::find("v1", "ConfigMap").unwrap();
//! let object = json!({"metadata": {"name": "a"}, "dats": {"key": "value"}});
//! let answer = kind.answer(&Request {
//!     body: Body::Object(&object),
//!     old: None,
//!     is_status: false,
//!     field_validation: FieldValidation::Strict,
//!     namespace: "default",
//! });
//! let Verdict::Undecodable { strict, .. } = answer.verdict else { panic!() };
//! assert_eq!(strict, [StrictProblem::Unknown("dats".to_owned())]);
//! ```

mod answer;
mod decode;
mod defaults;
mod json;
mod registry;
mod scalars;
mod table;

pub use answer::BuiltInKind;
