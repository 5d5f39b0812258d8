//! The error of a job that does not fit its declaration.

/// A job that does not fit its declaration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the JobKind does not fit the object: {field}: {problem}")]
pub struct ReadError {
    /// The field of the declaration.
    pub field: String,
    /// The problem.
    pub problem: String,
}
