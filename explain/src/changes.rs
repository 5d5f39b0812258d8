//! Searches the smallest changes, each of one kind.

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
    changes.extend(priority::change(trial));
    changes.extend(policy::changes(trial));
    changes.extend(ended_workload::change(trial));
    changes.extend(excluded_resources::change(trial));
    changes.extend(fewer_pods::changes(trial));
    changes
}
