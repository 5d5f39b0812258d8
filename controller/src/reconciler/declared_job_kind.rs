//! The kinds of jobs that `JobKind` objects declare.

use lockkeeper_api::job_kind::JobKindSpec;

/// A declared kind of jobs that is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredJobKind {
    /// The index of the kind.
    pub kind: usize,
    /// A number that changes with the declaration: all jobs of the kind have to be listed again.
    pub revision: u64,
}

/// A declaration in effect.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) kind: DeclaredJobKind,
    pub(super) spec: JobKindSpec,
}
