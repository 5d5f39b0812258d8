//! Nominations of an earlier cycle that are still valid.
//!
//! A nomination depends on the workload, its queue, the flavors tried so far, and the quotas and admitted workloads of its
//! tree. In the classical algorithm it depends only on the flavors that the workload may use: a candidate uses one of
//! them, and the request and all limits are compared by flavor and resource. Shares of fair sharing depend on all flavors.
//! With preemption limits, elastic queues or damping, a nomination also depends on the time, on earlier preemptions or on
//! pending workloads; then none is reused.

use super::nominate::{NominatedEntry, NominationContext};
use crate::damping::Damping;
use crate::policy::Algorithm;
use crate::state::State;
use crate::trace::Trace;
use std::sync::Arc;

/// Returns whether nominations depend only on the tree and the workload.
fn are_reusable(state: &State) -> bool {
    let is_damped = state.options.damping == Damping::On;
    !(is_damped || state.has_limits || state.has_elastic) && state.holds.is_empty()
}

/// Returns the version that a nomination has if a later cycle may reuse it.
pub(super) fn reusable_version(context: &NominationContext<'_>) -> Option<u64> {
    let state = context.state();
    let is_from_first = context.last_tried_flavors().is_empty();
    let version = state.admitted_index.versions().current();
    (is_from_first && are_reusable(state)).then_some(version)
}

/// Returns the nomination of an earlier cycle if it is still valid. Costs the number of flavors of the queue.
pub(super) fn known_nomination(
    context: &NominationContext<'_>,
    current_version: u64,
) -> Option<NominatedEntry> {
    let known = context.known_nomination()?;
    let state = context.state();
    let versions = state.admitted_index.versions();
    let root = state.tree.node(context.queue()).root;
    let is_fair = matches!(state.options.algorithm, Algorithm::FairSharing(_));
    // After a change of the queue, it may have no flavor that the workload may use.
    if versions.has_changed(root, known.version)
        && (is_fair
            || versions.has_rebuilt(known.version)
            || context
                .usable_flavors()
                .any(|flavor| versions.has_flavor_changed(root, flavor, known.version)))
    {
        return None;
    }
    Some(NominatedEntry {
        workload: context.id(),
        queue: context.queue(),
        assignment: Arc::clone(&known.assignment),
        victims: known.victims.clone(),
        tried_flavors: known.tried_flavors.clone(),
        displaced: Vec::new(),
        next_candidate_at_s: None,
        reusable_version: Some(current_version),
        trace: Trace::off(),
    })
}
