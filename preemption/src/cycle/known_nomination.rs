//! Nominations of an earlier cycle that are still valid, so that a head that stays at the front is not nominated again.
//!
//! A nomination depends on the workload, its queue, the flavors tried so far, and the admitted workloads and quotas of its
//! tree. It also depends on the time, on preemptions of other trees or on pending workloads if there are preemption
//! limits, elastic queues or damping; then none is reused.

use super::nominate::{NominatedEntry, NominationContext};
use crate::assignment::Assignment;
use crate::damping::Damping;
use crate::ids::{NodeId, ResourceId, WorkloadId};
use crate::state::State;
use crate::trace::Trace;
use crate::victim::Victim;
use std::sync::Arc;

/// The nomination of a workload that started at the first flavor.
#[derive(Clone, Debug)]
pub(crate) struct KnownNomination {
    /// The version of the tree.
    version: u64,
    assignment: Arc<Assignment>,
    victims: Arc<[Victim]>,
    tried_flavors: Vec<(usize, ResourceId, usize)>,
}

/// Returns whether nominations depend only on the tree and the workload.
pub(super) fn are_reusable(state: &State) -> bool {
    let is_damped = state.options.damping == Damping::On;
    !(is_damped || state.has_limits || state.has_elastic) && state.holds.is_empty()
}

/// Returns the version of the tree if the nomination of a workload may be reused as long as the version stays.
pub(super) fn reusable_version(context: &NominationContext<'_>) -> Option<u64> {
    let state = context.state();
    let is_from_first = context.last_tried_flavors().is_empty();
    let version = || state.admitted_index.version(&state.tree, context.queue());
    (is_from_first && are_reusable(state)).then(version)
}

impl KnownNomination {
    /// Creates the nomination of a workload at a version of its tree.
    pub(super) fn new(version: u64, assignment: &Arc<Assignment>, victims: &[Victim]) -> Self {
        Self {
            version,
            assignment: Arc::clone(assignment),
            victims: victims.into(),
            tried_flavors: assignment.last_tried_flavors(),
        }
    }

    /// Returns whether the tree still has the version of the nomination.
    pub(super) fn is_valid(&self, version: u64) -> bool {
        self.version == version
    }

    /// Returns the entry of the workload if the version of its tree is still the same.
    pub(super) fn entry(
        &self,
        version: u64,
        workload: WorkloadId,
        queue: NodeId,
    ) -> Option<NominatedEntry> {
        self.is_valid(version).then(|| NominatedEntry {
            workload,
            queue,
            assignment: Arc::clone(&self.assignment),
            victims: self.victims.to_vec(),
            tried_flavors: self.tried_flavors.clone(),
            displaced: Vec::new(),
            next_candidate_at_s: None,
            reusable_version: Some(version),
            trace: Trace::off(),
        })
    }
}
