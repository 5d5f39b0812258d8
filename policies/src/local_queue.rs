//! Rules of LocalQueues, lockkeeper's and Kueue's.

mod cluster_queue_changed;
mod unknown_cluster_queue;

use crate::cohort_trees::Project;
use crate::rule::Rule;
use crate::validated_kind::{ValidatedKind, WebhookScope, implement_type_mismatch};
use lockkeeper_api::LocalQueue;
use lockkeeper_api::config::ForeignKinds;
use lockkeeper_api::foreign::kueue;

static RULES: &[Rule<LocalQueue>] = &[unknown_cluster_queue::rule(), cluster_queue_changed::RULE];

static KUEUE_RULES: &[Rule<kueue::LocalQueue>] = &[unknown_cluster_queue::rule()];

impl ValidatedKind for LocalQueue {
    const NAMESPACED: bool = true;
    const OWN: bool = true;

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }
}

impl ValidatedKind for kueue::LocalQueue {
    const NAMESPACED: bool = true;
    const OWN: bool = false;
    const WEBHOOK: WebhookScope = WebhookScope::Foreign(ForeignKinds::Kueue);

    implement_type_mismatch!();

    fn rules() -> &'static [Rule<Self>] {
        KUEUE_RULES
    }
}

/// The fields of a LocalQueue that rules read.
pub(crate) trait LocalQueueFields: ValidatedKind {
    /// The project that defines the kind.
    const PROJECT: Project;

    /// The name of its ClusterQueue; empty if unset.
    fn cluster_queue(&self) -> &str;
}

impl LocalQueueFields for LocalQueue {
    const PROJECT: Project = Project::Lockkeeper;

    fn cluster_queue(&self) -> &str {
        &self.spec.cluster_queue
    }
}

impl LocalQueueFields for kueue::LocalQueue {
    const PROJECT: Project = Project::Kueue;

    fn cluster_queue(&self) -> &str {
        &self.spec.cluster_queue
    }
}
