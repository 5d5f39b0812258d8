//! Who is more important.

use super::spec::PreemptionUnitKind;
use crate::ids::{PodId, UnitId};
use std::cmp::Reverse;
use std::sync::Arc;

/// The place of a unit in the order of importance; the least is the most important. It is let off first.
///
/// Higher priority, then workloads before single pods, then more pods, then who started earlier (one that has not
/// started is the newest), then the name.
///
/// Source: KEP-5710, Preemption algorithm, says the first two; kube-scheduler v1.37, `MoreImportantVictim`, adds
/// the next two. It leaves the rest to the order of its input, so what follows it takes ties in the order in which pods
/// were told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Importance {
    /// The priority that it is preempted by.
    pub priority: Reverse<i32>,
    /// What it is.
    pub kind: Reverse<PreemptionUnitKind>,
    /// How many pods it has.
    pub pods: Reverse<usize>,
    /// When the first of them started, in nanoseconds since 1970.
    pub started_at_ns: i64,
    /// With [`super::Compatibility::KubeScheduler`] the number of the first of its pods that was told, else 0.
    pub first_pod: PodId,
    /// Its name, with its namespace.
    pub name: Arc<str>,
    /// The unit.
    pub unit: UnitId,
}

impl Importance {
    /// Whether this one is more important, and not by its name alone.
    #[must_use]
    pub fn is_more_important(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.priority, it.kind, it.pods, it.started_at_ns);
        key(self) < key(other)
    }
}
