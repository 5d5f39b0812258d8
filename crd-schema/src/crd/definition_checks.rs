//! Validates `CustomResourceDefinition`s as objects, as `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`.

mod answer;
mod cel;
mod cel_check;
mod cel_format;
mod cel_functions;
mod cel_operators;
mod cel_overloads;
mod cel_types;
mod collector;
mod conversion;
mod cost;
mod defaults;
mod encoding;
mod field_types;
mod fields;
mod metadata;
mod names;
mod policy_types;
#[cfg(test)]
mod recorded_tests;
mod schemas;
mod spec;
mod structural;
mod sum_types;
mod versions;
mod warnings;

pub use answer::answer_definition;
pub(crate) use cel::compile_condition;
pub use field_types::{DefinedField, DefinedFields, FieldKind, ResultType, result_type};
pub(crate) use policy_types::PolicyTypes;
pub(super) use sum_types::record_sum_types;
