//! A higher priority.

use crate::trial::{Outcome, Trial};
use lockkeeper_api::foreign::scheduling::USER_PRIORITY_MAX;
use std::collections::BTreeSet;

/// The smallest higher priority with which the workload starts.
pub(super) struct PriorityChange {
    pub(super) priority_min: i32,
    /// The lowest sufficient PriorityClass with its value, if there is one.
    pub(super) class: Option<String>,
    /// The number of workloads that it would preempt.
    pub(super) victims: usize,
}

/// The smallest higher priority with which the workload may preempt what it needs.
///
/// Policies compare priorities, so the decision changes only at the preemption priority of an admitted workload, and just
/// above it.
pub(super) fn smallest(trial: &mut Trial) -> Option<PriorityChange> {
    let state = trial.cluster.state();
    let own = state.workload_view(trial.id()?).priority();
    let others = trial.others.iter();
    let priorities: BTreeSet<i32> = others
        .map(|id| state.workload_view(*id).preemption_priority())
        .flat_map(|it| [it, it.saturating_add(1)])
        .filter(|it| *it > own && *it <= USER_PRIORITY_MAX)
        .collect();
    for priority_min in priorities {
        let outcome = trial.with_workload(|it| {
            let status = it.status.get_or_insert_default();
            status.priority = Some(priority_min);
            // The API server rejects a preemption priority below the priority.
            status.preemption_priority = status.preemption_priority.map(|it| it.max(priority_min));
        });
        let victims = match outcome {
            Outcome::Fits => 0,
            Outcome::FitsAfterPreempting(victims) => victims,
            Outcome::DoesNotFit => continue,
        };
        let classes = trial.cluster.objects().priority_classes();
        let classes = classes.filter(|(_, value)| *value >= priority_min);
        let class = classes.min_by_key(|(name, value)| (*value, *name));
        return Some(PriorityChange {
            priority_min,
            class: class.map(|(name, value)| format!("{name} ({value})")),
            victims,
        });
    }
    None
}
