//! What a cycle decided about a workload, until its object says so.

use super::input::Name;
use lockkeeper_api::workload::Admission;
use lockkeeper_preemption::Reason;

/// A decision.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// It is admitted.
    Admit(Box<Grant>),
    /// It has to go.
    Preempt(Box<Preemption>),
}

/// How a workload is admitted, and how that is told.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) admission: Admission,
    pub(super) why: String,
}

/// Who takes the quota of a victim, and why.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    pub(super) reason: Reason,
    pub(super) preemptor: Name,
    pub(super) preemptor_uid: String,
    pub(super) job_uid: String,
    pub(super) paths: [String; 2],
}
