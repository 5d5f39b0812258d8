//! A preemption policy of the ClusterQueue, alone or together with a higher priority.

use super::priority::{self, PriorityChange};
use crate::change::{Change, PolicyField};
use crate::trial::{Outcome, Trial};
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohort, BorrowWithinCohortPolicy, ClusterQueueSpec, Preemption,
    ReclaimWithinCohort, WithinClusterQueue,
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
/// needs. If a policy alone never does, it is the weakest that does together with a higher priority.
///
/// `is_priority_sufficient`: a higher priority alone is sufficient, and then no policy is listed with one.
pub(super) fn changes(trial: &mut Trial, is_priority_sufficient: bool) -> Vec<Change> {
    if trial.outcome() != Outcome::DoesNotFit {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for edits in [&WITHIN_EDITS[..], &RECLAIM_EDITS[..]] {
        let mut change = edits.iter().find_map(|edit| alone(trial, edit));
        if change.is_none() && !is_priority_sufficient {
            change = edits.iter().find_map(|edit| with_priority(trial, edit));
        }
        changes.extend(change);
    }
    changes
}

fn alone(trial: &mut Trial, (fields, edit): &Edit) -> Option<Change> {
    let outcome = trial.with_queue(|spec| edit(spec.preemption.get_or_insert_default()));
    let Outcome::FitsAfterPreempting(victims) = outcome else {
        return None;
    };
    Some(Change::PreemptionPolicy {
        cluster_queue: trial.queue_name(),
        fields: fields.to_vec(),
        victims,
    })
}

fn with_priority(trial: &mut Trial, (fields, edit): &Edit) -> Option<Change> {
    let edit = |spec: &mut ClusterQueueSpec| edit(spec.preemption.get_or_insert_default());
    let PriorityChange {
        priority_min,
        class,
        victims,
    } = trial.in_queue(edit, priority::smallest)??;
    Some(Change::PolicyAndPriority {
        cluster_queue: trial.queue_name(),
        fields: fields.to_vec(),
        priority_min,
        class,
        victims,
    })
}
