//! LocalQueue, lockkeeper's and Kueue's.

mod cluster_queue_changed;
mod unknown_cluster_queue;

use crate::guarded::Guarded;
use crate::rule::Rule;
use crate::trees::Family;
use lockkeeper_api::LocalQueue;
use lockkeeper_api::foreign::kueue;

static RULES: &[Rule<LocalQueue>] = &[unknown_cluster_queue::rule(), cluster_queue_changed::RULE];

static RULES_OF_KUEUE: &[Rule<kueue::LocalQueue>] = &[unknown_cluster_queue::rule()];

impl Guarded for LocalQueue {
    const NAMESPACED: bool = true;
    const OWN: bool = true;

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}

impl Guarded for kueue::LocalQueue {
    const NAMESPACED: bool = true;
    const OWN: bool = false;

    fn rules() -> &'static [Rule<Self>] {
        RULES_OF_KUEUE
    }
}

/// The door of a namespace to a ClusterQueue.
pub(crate) trait IsLocalQueue: Guarded {
    /// Whose it is.
    const FAMILY: Family;

    /// The ClusterQueue that it leads to; empty if it leads to none.
    fn cluster_queue(&self) -> &str;
}

impl IsLocalQueue for LocalQueue {
    const FAMILY: Family = Family::Own;

    fn cluster_queue(&self) -> &str {
        &self.spec.cluster_queue
    }
}

impl IsLocalQueue for kueue::LocalQueue {
    const FAMILY: Family = Family::Kueue;

    fn cluster_queue(&self) -> &str {
        &self.spec.cluster_queue
    }
}
