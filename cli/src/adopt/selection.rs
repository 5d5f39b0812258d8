//! The selected Jobs, and their queue.

use std::collections::BTreeSet;

/// The selected Jobs, besides the label selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The LocalQueue, in the namespace of each Job.
    pub(crate) queue: String,
    /// The namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    /// The names; all if it is empty.
    pub(crate) jobs: BTreeSet<String>,
}
