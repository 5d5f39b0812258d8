//! Mistakes in declarations.

use lockkeeper_api::field_path::FieldPath;

/// A mistake in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The field of the declaration.
    pub field: FieldPath,
    /// The problem, and how to correct it.
    pub problem: String,
}
