//! Custom resources of any definition, validated as the API server validates them.
//!
//! [`Schema::from_crd`] compiles one version of a `CustomResourceDefinition`. [`Schema::answer`] decodes, prunes,
//! defaults and validates the body of a request; the semantics are those of `k8s.io/apiextensions-apiserver` 1.37.
//!
//! ```
//! use lockkeeper_crd_schema::crd::Schema;
//! use serde_json::json;
//!
//! let definition = json!({"spec": {
//!     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget"},
//!     "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
//!         "type": "object",
//!         "properties": {"size": {"type": "integer", "default": 1}},
//!         "x-kubernetes-validations": [{"rule": "self.size < 9", "message": "too large"}],
//!     }}}],
//! }});
//! let schema = Schema::from_crd(&definition, "v1").unwrap();
//! let mut widget = json!({
//!     "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "colour": "red",
//! });
//! assert_eq!(schema.prune(&mut widget), ["colour"]);
//! schema.default(&mut widget);
//! assert!(schema.validate(&widget).is_empty());
//! widget["size"] = 9.into();
//! assert_eq!(schema.validate(&widget)[0].detail, "too large");
//! ```

mod admission;
pub(crate) mod base64;
mod cel_literals;
mod cel_macros;
mod cel_program;
mod cel_rule;
mod cel_rules;
mod cel_signs;
mod cel_sums;
mod cel_tree;
mod certificates;
mod correlation;
pub(crate) mod decode;
mod defaulting;
mod definition;
mod definition_checks;
mod embedded;
mod expression;
pub(crate) mod formats;
mod go_regex;
mod list_types;
pub(crate) mod meta_validation;
pub(crate) mod names;
mod node;
mod numbers;
mod object_expression;
pub(crate) mod object_meta;
mod policy_expression;
pub(crate) mod pruning;
mod request;
mod scale;
mod storage;
pub(crate) mod system_fields;
pub(crate) mod unicode;
mod value_validation;
pub(crate) mod values;
pub(crate) mod webhook_clients;

pub use decode::ContentType;
pub use definition::{DefinitionError, Schema};
pub use definition_checks::{
    DefinedField, DefinedFields, FieldKind, ResultType, answer_definition, result_type,
};
pub(crate) use definition_checks::{PolicyTypes, compile_condition};
pub use formats::is_known as is_string_format;
pub use object_expression::{ExpressionFailure, ObjectExpression, ObjectScope};
pub(crate) use policy_expression::{PolicyExpression, PolicyFailure, PolicyScope, ResultKind};
pub use request::{Answer, Body, FieldValidation, Request, StrictProblem, Verdict};
