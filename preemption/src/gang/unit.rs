//! Units: pods that are preempted together.

use super::importance::Importance;
use super::spec::PreemptionUnitKind;
use crate::ids::{GroupId, PodId, UnitId};
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

/// A pod, or all running pods of a group that is disrupted as one (`WorkloadPortion` of KEP-5710, Preemption
/// unit).
#[derive(Clone, Debug)]
pub struct Unit {
    pub(super) key: UnitKey,
    pub(super) kind: PreemptionUnitKind,
    pub(super) priority: i32,
    pub(super) scheduling_priority: i32,
    /// Sorted by name.
    pub(super) pods: Vec<PodId>,
    pub(super) started_at_ns: i64,
    pub(super) name: Arc<str>,
    pub(super) group: Option<GroupId>,
    /// Whether ties are broken by the order in which pods were added.
    pub(super) ties_by_pod_id: bool,
    /// How many of its pods a disruption budget protects.
    pub(super) protected_pods: usize,
}

/// The pod or group that defines a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnitKey {
    Pod(PodId),
    Group(GroupId),
}

impl Unit {
    /// The kind of the unit. A single pod of a group that is disrupted pod by pod has [`PreemptionUnitKind::PodGroup`].
    #[must_use]
    pub const fn kind(&self) -> PreemptionUnitKind {
        self.kind
    }

    /// The preemption priority. With
    /// [`SchedulerCompatibility::KubeScheduler`](super::SchedulerCompatibility::KubeScheduler) it equals the scheduling
    /// priority.
    #[must_use]
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// The priority with which the unit would be rescheduled.
    #[must_use]
    pub const fn scheduling_priority(&self) -> i32 {
        self.scheduling_priority
    }

    /// The running pods, by name; never empty.
    #[must_use]
    pub fn pods(&self) -> &[PodId] {
        &self.pods
    }

    /// The group, unless the unit is a single pod.
    #[must_use]
    pub const fn group(&self) -> Option<GroupId> {
        self.group
    }

    /// The name of the pod or the group, with its namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compares two units like their [`Importance`], without allocating.
    pub(super) fn compare(&self, id: UnitId, other: &Self, other_id: UnitId) -> Ordering {
        let by_priority = other.priority.cmp(&self.priority);
        by_priority
            .then_with(|| other.kind.cmp(&self.kind))
            .then_with(|| other.pods.len().cmp(&self.pods.len()))
            .then_with(|| self.started_at_ns.cmp(&other.started_at_ns))
            // kube-scheduler's order ends here; further ties keep the order of its input.
            .then_with(|| self.first_pod().cmp(&other.first_pod()))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| id.cmp(&other_id))
    }

    fn first_pod(&self) -> PodId {
        let first = self.pods.iter().filter(|_| self.ties_by_pod_id).min();
        first.copied().unwrap_or_default()
    }

    /// The importance of the unit.
    #[must_use]
    pub fn importance(&self, id: UnitId) -> Importance {
        Importance {
            priority: Reverse(self.priority),
            kind: Reverse(self.kind),
            pods: Reverse(self.pods.len()),
            started_at_ns: self.started_at_ns,
            first_pod: self.first_pod(),
            name: Arc::clone(&self.name),
            unit: id,
        }
    }
}

/// A name with its namespace, if it has one.
pub(super) fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        return name.to_owned();
    }
    format!("{namespace}/{name}")
}
