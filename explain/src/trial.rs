//! Decides on a workload as if it were the only pending one, after a change that is undone again.

use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::{ClusterQueue, Workload};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{Mode, Trace, WhatIf, WorkloadId};
use std::sync::Arc;

/// The result of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It fits on free quota.
    Fits,
    /// It fits after as many preemptions.
    FitsAfterPreempting(usize),
    /// It does not fit.
    DoesNotFit,
}

/// A copy of the cluster state for trials with one workload.
pub(crate) struct Trial {
    pub(crate) cluster: ClusterState,
    pub(crate) workload: Arc<Workload>,
    pub(crate) queue: Arc<ClusterQueue>,
    /// The key of the workload.
    pub(crate) key: String,
    /// The other workloads with quota in its tree of cohorts.
    pub(crate) others: Vec<WorkloadId>,
}

impl Trial {
    /// The id of the workload in the core's state.
    pub(crate) fn id(&self) -> Option<WorkloadId> {
        self.cluster.state().workload(&self.key)
    }

    /// Decides with the current state.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let Some(id) = self.id() else {
            return Outcome::DoesNotFit;
        };
        let nomination = WhatIf::new(self.cluster.state_mut()).nominate(id, Trace::off());
        let Some(nomination) = nomination else {
            return Outcome::DoesNotFit;
        };
        // An admission of fewer pods (`minCount`) counts too: the workload starts.
        match (nomination.assignment.mode, nomination.victims.len()) {
            (Mode::Fit, _) => Outcome::Fits,
            (Mode::Preempt, victims) if victims > 0 => Outcome::FitsAfterPreempting(victims),
            _ => Outcome::DoesNotFit,
        }
    }

    /// Decides with another spec of the ClusterQueue.
    pub(crate) fn with_queue(&mut self, edit: impl FnOnce(&mut ClusterQueueSpec)) -> Outcome {
        let mut changed = ClusterQueue::clone(&self.queue);
        edit(&mut changed.spec);
        if self.cluster.set_cluster_queue(Arc::new(changed)).is_err() {
            return Outcome::DoesNotFit;
        }
        let outcome = self.outcome();
        // The original was accepted before, so it is accepted again.
        let restored = self.cluster.set_cluster_queue(Arc::clone(&self.queue));
        debug_assert!(restored.is_ok(), "the spec of the input is valid");
        outcome
    }

    /// Decides with another form of the workload.
    pub(crate) fn with_workload(&mut self, edit: impl FnOnce(&mut Workload)) -> Outcome {
        let mut changed = Workload::clone(&self.workload);
        edit(&mut changed);
        if self.cluster.set_workload(Arc::new(changed)).is_err() {
            return Outcome::DoesNotFit;
        }
        let outcome = self.outcome();
        let restored = self.cluster.set_workload(Arc::clone(&self.workload));
        debug_assert!(restored.is_ok(), "the workload of the input is valid");
        outcome
    }

    /// Decides as if an admitted workload had ended.
    pub(crate) fn without(&mut self, other: WorkloadId) -> Outcome {
        let state = self.cluster.state_mut();
        let Some(reservation) = state.workload_view(other).reservation() else {
            return Outcome::DoesNotFit;
        };
        state.release(other);
        let outcome = self.outcome();
        self.cluster.state_mut().reserve(other, &reservation);
        outcome
    }
}
