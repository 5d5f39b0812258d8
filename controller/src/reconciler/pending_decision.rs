//! Decisions about workloads that are not written yet.

use crate::key::ObjectKey;
use lockkeeper_api::workload::{Admission, NominatedPlacement};
use lockkeeper_cluster_state::PreemptionCause;

/// A decision that the object does not show yet.
#[derive(Clone, Debug)]
pub(super) enum PendingDecision {
    Admit(Box<AdmissionDecision>),
    /// The workload is a victim.
    Preempt(Box<PreemptionDecision>),
    /// The next step of a workload with nominated nodes.
    Place(PlacementStep),
}

/// The admission of a workload, and the message of its condition.
#[derive(Clone, Debug)]
pub(super) struct AdmissionDecision {
    pub(super) admission: Admission,
    pub(super) message: String,
    pub(super) nodes: AdmittedNodes,
}

/// The nodes of an admission.
#[derive(Clone, Debug)]
pub(super) enum AdmittedNodes {
    /// kube-scheduler alone selects nodes.
    None,
    /// All pods fit.
    Free(NominatedPlacement),
    /// All pods fit when victims are gone: quota is reserved, and the workload is admitted later.
    Nominated(NominatedPlacement),
}

impl AdmissionDecision {
    pub(super) const fn nodes(&self) -> Option<&NominatedPlacement> {
        match &self.nodes {
            AdmittedNodes::None => None,
            AdmittedNodes::Free(nodes) | AdmittedNodes::Nominated(nodes) => Some(nodes),
        }
    }

    /// Whether the workload waits for victims before it is admitted.
    pub(super) const fn is_nominated(&self) -> bool {
        matches!(self.nodes, AdmittedNodes::Nominated(_))
    }
}

/// The next step of a workload with nominated nodes.
#[derive(Clone, Debug)]
pub(super) enum PlacementStep {
    /// All pods fit on these nodes: it is admitted.
    Admit(NominatedPlacement),
    /// It is nominated to other nodes, with the reason.
    Nominate {
        nodes: NominatedPlacement,
        message: String,
    },
    /// It does not fit any more, with the reason: it gives up its quota.
    Withdraw(String),
}

/// The preemptor that needs the quota or the room of a victim, and the cause.
#[derive(Clone, Debug)]
pub(super) struct PreemptionDecision {
    pub(super) cause: PreemptionCause,
    pub(super) preemptor: ObjectKey,
    pub(super) preemptor_uid: String,
    pub(super) job_uid: String,
    /// Paths in the quota tree: of the preemptor's queue and of the victim's.
    pub(super) queue_paths: [String; 2],
}
