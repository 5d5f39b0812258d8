//! The end of one other workload.

use crate::change::Change;
use crate::quota::needed;
use crate::trial::{Outcome, Trial};

/// The most workloads in an answer.
const SHOWN_MAX: usize = 5;

/// The most workloads that are tried.
const TRIED_MAX: usize = 2000;

/// The workloads of which one would have to end, those with the lowest preemption priority first.
pub(super) fn change(trial: &mut Trial) -> Option<Change> {
    let needed = needed(trial);
    let mut others = trial.others.clone();
    others.retain(|id| {
        let reservation = trial.cluster.state().workload_view(*id).reservation();
        reservation.is_some_and(|it| it.usage.iter().any(|(of, _)| needed.contains(of)))
    });
    let state = trial.cluster.state();
    others.sort_by_key(|id| {
        (
            state.workload_view(*id).preemption_priority(),
            state.workload_name(*id).to_owned(),
        )
    });
    others.truncate(TRIED_MAX);
    others.retain(|id| trial.without(*id) == Outcome::Fits);
    if others.is_empty() {
        return None;
    }
    let state = trial.cluster.state();
    let names = others.iter().map(|id| state.workload_name(*id).to_owned());
    Some(Change::WorkloadEnds {
        workloads: names.take(SHOWN_MAX).collect(),
        total: others.len(),
    })
}
