//! The preemption policies of a ClusterQueue spec, as the facts of its node.

use crate::preemption_loops::{CrossQueueScope, QueuePreemption};
use lockkeeper_api::cluster_queue::{ClusterQueueSpec, ReclaimWithinCohort, WithinClusterQueue};
use lockkeeper_api::foreign::kueue;

/// Whether workloads of the queue may preempt others of the same priority.
pub(super) fn own_preempts_equals(spec: &ClusterQueueSpec) -> bool {
    spec.within_cluster_queue() == WithinClusterQueue::LowerOrNewerEqualPriority
        || spec.reclaim_within_cohort() == ReclaimWithinCohort::Any
}

/// The preemption policies of the queue, without its quota.
pub(super) fn own_queue_preemption(spec: &ClusterQueueSpec) -> QueuePreemption {
    QueuePreemption {
        preempts_within_queue: spec.within_cluster_queue() != WithinClusterQueue::Never,
        cross_queue_scope: match spec.reclaim_within_cohort() {
            ReclaimWithinCohort::Never => CrossQueueScope::Never,
            ReclaimWithinCohort::LowerPriority => CrossQueueScope::LowerPriority,
            ReclaimWithinCohort::Any => CrossQueueScope::Any,
        },
        may_borrow: false,
    }
}

/// The preemption policies of the queue, without its quota.
pub(super) fn kueue_queue_preemption(given: &kueue::Preemption) -> QueuePreemption {
    QueuePreemption {
        preempts_within_queue: policy(&given.within_cluster_queue).is_some(),
        cross_queue_scope: match given.reclaim_within_cohort.as_str() {
            "LowerPriority" => CrossQueueScope::LowerPriority,
            "Any" => CrossQueueScope::Any,
            _ => CrossQueueScope::Never,
        },
        may_borrow: false,
    }
}

/// `given`, unless it is empty.
pub(super) fn non_empty(given: &str) -> Option<&str> {
    Some(given).filter(|it| !it.is_empty())
}

/// A policy of Kueue, unless it is unset or `Never`.
pub(super) fn policy(given: &str) -> Option<String> {
    let given = non_empty(given).filter(|it| *it != "Never")?;
    Some(given.to_owned())
}
