//! Custom resources of any definition, validated as the API server validates them.
//!
//! [`Schema::from_crd`] compiles one version of a `CustomResourceDefinition`. [`Schema::answer`] decodes, prunes,
//! defaults and validates the body of a request; the semantics are those of `k8s.io/apiextensions-apiserver` 1.37.

mod admission;
mod base64;
mod cel_program;
mod cel_rule;
mod cel_rules;
mod cel_signs;
mod correlation;
mod decode;
mod defaulting;
mod definition;
mod definition_checks;
mod embedded;
mod expression;
mod formats;
mod go_regex;
mod list_types;
mod meta_validation;
mod names;
mod node;
mod numbers;
mod object_meta;
mod pruning;
mod request;
mod scale;
mod storage;
mod system_fields;
mod value_validation;
mod values;

pub use decode::ContentType;
pub use definition::{DefinitionError, Schema};
pub use definition_checks::answer_definition;
pub use formats::is_known as is_string_format;
pub use request::{Answer, Body, FieldValidation, Request, StrictProblem, Verdict};
