//! The entries of a cycle and their decisions.

use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::backfill::StartBound;
use crate::ids::{FlavorResource, NodeId, WorkloadId};
use crate::trace::Trace;
use crate::victim::Victim;
use std::sync::Arc;

/// The decision on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Admitted with its assignment.
    Admit,
    /// These victims are preempted; the workload is requeued until they have released their quota.
    Preempt(Vec<Victim>),
    /// Lost to earlier entries of the cycle.
    Skip(SkipReason),
    /// Fits once the victims of other entries have released their quota.
    DeferredFit,
    /// Needs preemption, and there are no candidates.
    NoCandidates,
    /// Does not fit, with or without preemption.
    NoFit,
}

impl Decision {
    /// The names of all decisions, as [`Self::as_str`] returns them.
    pub const NAMES: [&'static str; 6] = [
        "Admit",
        "Preempt",
        "Skip",
        "DeferredFit",
        "NoCandidates",
        "NoFit",
    ];

    /// Returns the name without its data.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Admit => "Admit",
            Self::Preempt(_) => "Preempt",
            Self::Skip(_) => "Skip",
            Self::DeferredFit => "DeferredFit",
            Self::NoCandidates => "NoCandidates",
            Self::NoFit => "NoFit",
        }
    }
}

/// The reason for skipping an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Lost the quota to entries ahead of it in this cycle.
    NoLongerFits,
    /// Entries ahead of it preempt the same victims.
    OverlappingVictims,
    /// Borrowing in its cohort is closed for the rest of the cycle ([`BorrowingGate`](crate::BorrowingGate)).
    BorrowingGate,
    /// The limit on preemptions per cycle is reached.
    VictimLimit,
}

/// The reason for requeueing a head, in Kueue's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueReason {
    /// Nominated, then skipped.
    FailedAfterNomination,
    /// Waits until its victims have released their quota.
    PendingPreemption,
    /// Needs preemption, and there are no candidates.
    PreemptionNoCandidates,
    /// Does not fit.
    NoFit,
    /// The namespace selector of the queue does not match.
    NamespaceMismatch,
}

/// The part of the queue that a requeued head goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueDestination {
    /// Considered again in the next cycle.
    Active,
    /// Considered again after a change that may help it.
    Inadmissible,
}

/// One head and its decision.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The workload.
    pub workload: WorkloadId,
    /// Its queue.
    pub queue: NodeId,
    /// The flavors it was nominated for.
    pub nominated: Arc<Assignment>,
    /// The victims it was nominated with.
    pub nominated_victims: Vec<Victim>,
    /// The assignment that replaces `nominated`, if earlier entries preempt its victims.
    pub recomputed: Option<Arc<Assignment>>,
    /// The decision.
    pub decision: Decision,
    /// The quota that it reserved for the rest of the cycle.
    pub reserved: Vec<(FlavorResource, Amount)>,
    /// Preemptors whose held quota it was nominated for.
    pub displaced: Vec<WorkloadId>,
    /// Why and where it was requeued; `None` if it was admitted.
    pub requeued: Option<(RequeueReason, RequeueDestination)>,
    /// The trace of the decision.
    pub trace: Trace,
}

impl Entry {
    /// Returns the assignment in force: `recomputed`, else `nominated`.
    #[must_use]
    pub fn assignment(&self) -> &Assignment {
        self.shared_assignment()
    }

    pub(super) fn shared_assignment(&self) -> &Arc<Assignment> {
        self.recomputed.as_ref().unwrap_or(&self.nominated)
    }
}

/// The head of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The workload.
    pub workload: WorkloadId,
    /// Its queue.
    pub queue: NodeId,
    /// Whether it is the sticky preemptor of its queue: its victims are being evicted.
    pub is_sticky: bool,
}

/// The decisions of a cycle.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The heads, by queue.
    pub heads: Vec<Head>,
    /// The entries, in the order in which they were decided. Those of workloads that are no heads were admitted by backfill.
    pub entries: Vec<Entry>,
    /// The planned starts of heads that wait in queues with backfill.
    pub start_bounds: Vec<StartBound>,
    /// Heads that their queue's namespace selector does not match; not nominated.
    pub out_of_scope: Vec<WorkloadId>,
    /// Whether holds ended in this cycle, so that inadmissible workloads are active again: the next cycle may
    /// admit more.
    pub has_reactivated: bool,
}

#[cfg(test)]
mod tests {
    use super::{Decision, SkipReason};

    #[test]
    fn decision_names_match_as_str() {
        let all = [
            Decision::Admit,
            Decision::Preempt(Vec::new()),
            Decision::Skip(SkipReason::VictimLimit),
            Decision::DeferredFit,
            Decision::NoCandidates,
            Decision::NoFit,
        ];
        assert_eq!(all.each_ref().map(Decision::as_str), Decision::NAMES);
    }
}
