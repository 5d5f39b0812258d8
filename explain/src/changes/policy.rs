//! A preemption policy of the ClusterQueue.

use crate::change::{Change, PolicyField};
use crate::trial::{Outcome, Trial};
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohort, BorrowWithinCohortPolicy, Preemption, ReclaimWithinCohort,
    WithinClusterQueue,
};

/// A change of a policy: its fields, and the edit. Ordered from the weakest.
type Edit = (&'static [PolicyField], fn(&mut Preemption));

const WITHIN: &str = "spec.preemption.withinClusterQueue";
const RECLAIM: &str = "spec.preemption.reclaimWithinCohort";
const BORROW: &str = "spec.preemption.borrowWithinCohort.policy";

const fn field(field: &'static str, value: &'static str) -> PolicyField {
    PolicyField { field, value }
}

const WITHIN_EDITS: [Edit; 2] = [
    (&[field(WITHIN, "LowerPriority")], |it| {
        it.within_cluster_queue = Some(WithinClusterQueue::LowerPriority);
    }),
    (&[field(WITHIN, "LowerOrNewerEqualPriority")], |it| {
        it.within_cluster_queue = Some(WithinClusterQueue::LowerOrNewerEqualPriority);
    }),
];

const RECLAIM_EDITS: [Edit; 4] = [
    (&[field(RECLAIM, "LowerPriority")], |it| {
        it.reclaim_within_cohort = Some(ReclaimWithinCohort::LowerPriority);
    }),
    (&[field(RECLAIM, "Any")], |it| {
        it.reclaim_within_cohort = Some(ReclaimWithinCohort::Any);
    }),
    // borrowWithinCohort requires reclaimWithinCohort.
    (
        &[
            field(RECLAIM, "LowerPriority"),
            field(BORROW, "LowerPriority"),
        ],
        |it| {
            it.reclaim_within_cohort = Some(ReclaimWithinCohort::LowerPriority);
            it.borrow_within_cohort = Some(borrow());
        },
    ),
    (
        &[field(RECLAIM, "Any"), field(BORROW, "LowerPriority")],
        |it| {
            it.reclaim_within_cohort = Some(ReclaimWithinCohort::Any);
            it.borrow_within_cohort = Some(borrow());
        },
    ),
];

fn borrow() -> BorrowWithinCohort {
    BorrowWithinCohort {
        policy: Some(BorrowWithinCohortPolicy::LowerPriority),
        ..BorrowWithinCohort::default()
    }
}

/// The weakest policy within the ClusterQueue, and the weakest towards its cohort, that let the workload preempt what it
/// needs.
pub(super) fn changes(trial: &mut Trial) -> Vec<Change> {
    if trial.outcome() != Outcome::DoesNotFit {
        return Vec::new();
    }
    let cluster_queue = trial.queue.metadata.name.clone().unwrap_or_default();
    let mut changes = Vec::new();
    for edits in [&WITHIN_EDITS[..], &RECLAIM_EDITS[..]] {
        let found = edits.iter().find_map(|(fields, edit)| {
            let outcome = trial.with_queue(|spec| edit(spec.preemption.get_or_insert_default()));
            match outcome {
                Outcome::FitsAfterPreempting(victims) => Some((fields.to_vec(), victims)),
                _ => None,
            }
        });
        changes.extend(found.map(|(fields, victims)| Change::PreemptionPolicy {
            cluster_queue: cluster_queue.clone(),
            fields,
            victims,
        }));
    }
    changes
}
