//! CEL expressions over the values of a custom resource, with the semantics of cel-go and the environment of
//! Kubernetes 1.37.
//!
//! The parser is that of the crate `cel`; the evaluation is our own, because it reads objects by their schemas (times,
//! durations, lists that are sets or maps) without copying them.

mod amounts;
mod constants;
mod conversions;
#[cfg(test)]
mod cost_tests;
mod costs;
mod equality;
mod evaluate;
mod format;
mod format_text;
mod functions;
mod json;
mod library;
mod lists;
mod literals;
mod maps;
mod named_formats;
mod operators;
mod quantities;
mod scope;
mod strings;
mod times;
mod urls;
mod value;
mod version;
mod versions;

pub(super) use constants::constant_error;
pub(super) use evaluate::{evaluate, is_object_type, qualified_name};
pub(super) use format::{Clause as FormatClause, Piece as FormatPiece, parse as parse_format};
pub(super) use json::unescaped;
pub(super) use literals::TYPES;
pub(super) use named_formats::is_named_format;
pub(super) use scope::{Budget, Scope};
pub(super) use value::{Failure, Value};
