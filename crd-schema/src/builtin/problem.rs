//! A problem that the decoder reports.

use super::release::Release;

/// A problem of one field of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The kind has no such field.
    Unknown {
        /// The field, such as `spec.containers[0].imagePullpolicy`.
        field: String,
        /// The most similar field that the kind has there.
        suggestion: Option<&'static str>,
        /// The supported releases after that of the kind that have the field, the oldest first.
        later: Vec<Release>,
    },
    /// The value has the wrong type.
    WrongType {
        /// The field, such as `spec.replicas`.
        field: String,
        /// The actual and the expected type.
        reason: String,
    },
}
