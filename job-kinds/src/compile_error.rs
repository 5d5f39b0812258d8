//! Mistakes in declarations.

use lockkeeper_api::field_path::FieldPath;

/// The mistakes as one text.
#[must_use]
pub fn describe_errors(errors: &[CompileError]) -> String {
    let errors = errors.iter();
    let errors = errors.map(|it| format!("{}: {}", it.field, it.problem));
    errors.collect::<Vec<_>>().join("; ")
}

/// A mistake in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The field of the declaration.
    pub field: FieldPath,
    /// The problem, and how to correct it.
    pub problem: String,
}
