//! The error for a schema that cannot be compiled.

use std::fmt;

/// A schema that the API server would reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The path of the faulty field in the schema.
    pub place: String,
    /// The reason, lower-case.
    pub problem: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for SchemaError {}
