//! Searches the smallest changes, each of one kind, and a policy together with a priority if neither is sufficient alone.

mod borrowing_limit;
mod ended_workload;
mod excluded_resources;
mod fewer_pods;
mod nominal_quota;
mod policy;
mod priority;
mod quota_search;

use crate::change::Change;
use crate::trial::{Outcome, Trial};

/// The smallest changes of each kind that let the workload start; none if it fits now.
pub(crate) fn smallest_changes(trial: &mut Trial) -> Vec<Change> {
    if trial.outcome() == Outcome::Fits {
        return Vec::new();
    }
    let mut changes = nominal_quota::changes(trial);
    changes.extend(borrowing_limit::changes(trial));
    let priority = priority::smallest(trial);
    let is_priority_sufficient = priority.is_some();
    changes.extend(priority.map(|it| Change::Priority {
        priority_min: it.priority_min,
        class: it.class,
        victims: it.victims,
    }));
    changes.extend(policy::changes(trial, is_priority_sufficient));
    changes.extend(ended_workload::change(trial));
    changes.extend(excluded_resources::change(trial));
    changes.extend(fewer_pods::changes(trial));
    changes
}
