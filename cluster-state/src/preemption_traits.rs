//! What the labels and policies of a workload mean for preemption in its ClusterQueue.

use crate::object_store::ObjectStore;
use crate::workloads::preemption_labels;
use lockkeeper_api::Workload;
use lockkeeper_preemption::job::{Preemptibility, PreemptionLabels, VictimAction};

/// What the labels and policies of a workload mean for preemption in its ClusterQueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionTraits {
    /// Whether it may preempt: not with the policy `Never`, and in an elastic queue not if its labels forbid it.
    pub may_preempt: bool,
    /// Whether it may be a victim. Only the min of an elastic queue limits non-preemptible workloads, so in other queues
    /// all are preemptible.
    pub preemptibility: Preemptibility,
    /// How the pods of victims are evicted. In queues that are not elastic they are deleted.
    pub victim_action: VictimAction,
}

/// The traits of a workload in a ClusterQueue.
#[must_use]
pub fn preemption_traits(
    objects: &ObjectStore,
    workload: &Workload,
    cluster_queue: &str,
) -> PreemptionTraits {
    let labels = preemption_labels_with_class(objects, workload);
    match objects.elastic_defaults(cluster_queue) {
        None => PreemptionTraits {
            may_preempt: !labels.never_preempts,
            preemptibility: Preemptibility::Preemptible,
            victim_action: VictimAction::Delete,
        },
        Some(elastic) => PreemptionTraits {
            may_preempt: elastic.may_trigger_preemption(labels),
            preemptibility: elastic.preemptibility(labels),
            victim_action: elastic.victim_action(),
        },
    }
}

/// The preemption labels of a workload, with the preemption policy of its PriorityClass.
pub(crate) fn preemption_labels_with_class(
    objects: &ObjectStore,
    workload: &Workload,
) -> PreemptionLabels {
    let class = workload.spec.priority_class_name.as_deref();
    let mut labels = preemption_labels(workload);
    labels.never_preempts |= objects.class_never_preempts(class);
    labels
}
