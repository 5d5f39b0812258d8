//! Pods that are evicted for a nominated workload.

use crate::key::ObjectKey;
use crate::reconciler::write_tracker::WriteTracker;
use lockkeeper_preemption::job::VictimAction;

/// A pod to evict.
#[derive(Debug)]
pub(in crate::reconciler) struct VictimPod {
    pub(in crate::reconciler) uid: String,
    pub(in crate::reconciler) action: VictimAction,
    pub(in crate::reconciler) violates_budget: bool,
    pub(in crate::reconciler) preemptor: ObjectKey,
    pub(in crate::reconciler) preemptor_uid: String,
    /// Whether it has the condition of its disruption.
    pub(in crate::reconciler) is_marked: bool,
    /// When its eviction or deletion was accepted, in milliseconds since 1970.
    pub(in crate::reconciler) requested_at_ms: Option<i64>,
    pub(in crate::reconciler) tracker: WriteTracker,
}

impl VictimPod {
    pub(super) fn new(
        uid: &str,
        action: VictimAction,
        violates_budget: bool,
        preemptor: &ObjectKey,
        preemptor_uid: &str,
    ) -> Self {
        Self {
            uid: uid.to_owned(),
            action,
            violates_budget,
            preemptor: preemptor.clone(),
            preemptor_uid: preemptor_uid.to_owned(),
            is_marked: false,
            requested_at_ms: None,
            tracker: WriteTracker::default(),
        }
    }

    /// What to record if its eviction is accepted; `None` if one was before.
    pub(in crate::reconciler) fn preemption(&self) -> Option<PodPreemption> {
        self.requested_at_ms.is_none().then(|| PodPreemption {
            uid: self.uid.clone(),
            preemptor: self.preemptor.clone(),
            preemptor_uid: self.preemptor_uid.clone(),
        })
    }
}

/// The preemption of a pod. The watch may show that the pod is no victim any more before the result of its eviction arrives.
#[derive(Debug)]
pub(in crate::reconciler) struct PodPreemption {
    pub(in crate::reconciler) uid: String,
    pub(in crate::reconciler) preemptor: ObjectKey,
    pub(in crate::reconciler) preemptor_uid: String,
}
