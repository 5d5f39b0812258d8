//! What a cycle decided about a workload, until its object says so.

use super::input::ObjectKey;
use lockkeeper_api::workload::Admission;
use lockkeeper_preemption::PreemptionReason;

/// A decision.
#[derive(Clone, Debug)]
pub(super) enum PendingDecision {
    /// It is admitted.
    Admit(Box<AdmissionDecision>),
    /// It has to go.
    Preempt(Box<PreemptionDecision>),
}

/// How a workload is admitted, and how that is told.
#[derive(Clone, Debug)]
pub(super) struct AdmissionDecision {
    pub(super) admission: Admission,
    pub(super) message: String,
}

/// Who takes the quota of a victim, and why.
#[derive(Clone, Debug)]
pub(super) struct PreemptionDecision {
    pub(super) reason: PreemptionReason,
    pub(super) preemptor: ObjectKey,
    pub(super) preemptor_uid: String,
    pub(super) job_uid: String,
    pub(super) queue_paths: [String; 2],
}
