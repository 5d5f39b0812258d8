//! The project of queues and workloads.

use lockkeeper_api::GROUP;
use lockkeeper_api::foreign::kueue;

/// The project that the queues and workloads belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Project {
    /// `lockkeeper.dev`.
    Lockkeeper,
    /// `kueue.x-k8s.io`.
    Kueue,
}

impl Project {
    /// The API group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Lockkeeper => GROUP,
            Self::Kueue => kueue::GROUP,
        }
    }
}
