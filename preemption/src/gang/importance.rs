//! The order of units by importance.

use super::spec::PreemptionUnitKind;
use crate::ids::{PodId, UnitId};
use std::cmp::Reverse;
use std::sync::Arc;

/// The importance of a unit; the least value is the most important. More important units are reprieved first.
///
/// Compared are the priority (higher first), workloads before single pods, the number of pods (more first), the start
/// (earlier first; a pod that has not started is the newest), and the name.
///
/// Source: KEP-5710, Preemption algorithm, for the first two; kube-scheduler v1.37, `MoreImportantVictim`, for the next
/// two. kube-scheduler leaves further ties to the order of its input; with its algorithm, ties are broken by the order
/// in which pods were added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Importance {
    /// The preemption priority.
    pub priority: Reverse<i32>,
    /// The kind of the unit.
    pub kind: Reverse<PreemptionUnitKind>,
    /// The number of pods.
    pub pods: Reverse<usize>,
    /// When the first pod started, in nanoseconds since 1970.
    pub started_at_ns: i64,
    /// With [`SchedulerCompatibility::KubeScheduler`](super::SchedulerCompatibility::KubeScheduler) the lowest id of
    /// its pods, else 0.
    pub first_pod: PodId,
    /// The name of the unit, with its namespace.
    pub name: Arc<str>,
    /// The id of the unit.
    pub unit: UnitId,
}

impl Importance {
    /// Whether this unit is more important by more than a tie-break.
    #[must_use]
    pub fn is_more_important(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.priority, it.kind, it.pods, it.started_at_ns);
        key(self) < key(other)
    }
}
