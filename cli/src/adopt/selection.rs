//! The selected Jobs, and their queue.

use std::collections::BTreeSet;

/// The selected Jobs, besides the label selector.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// The LocalQueue, in the namespace of each Job.
    pub(super) queue: String,
    /// The namespace; `None` for all.
    pub(super) namespace: Option<String>,
    /// The names; all if it is empty.
    pub(super) jobs: BTreeSet<String>,
}
