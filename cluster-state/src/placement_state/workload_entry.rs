//! Workloads with their pods and reservations, and their groups in the core.

use super::request::WorkloadUnit;
use lockkeeper_api::workload::DisruptionMode;
use lockkeeper_preemption::gang::{
    DisruptionMode as CoreMode, GroupKey, GroupSpec, PreemptionUnitKind,
};
use lockkeeper_preemption::placement::{Labels, PodPreemption};
use lockkeeper_preemption::{GroupId, HostId, PodId, ShapeId};
use std::collections::{BTreeMap, BTreeSet};

/// The room of a pod that is not bound yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reservation {
    /// Unique among the pods and reservations of the namespace, since no name of a pod has a slash.
    pub(super) name: String,
    pub(super) host: HostId,
    pub(super) shape: ShapeId,
    /// The labels of its template.
    pub(super) labels: Labels,
}

/// A workload with its pods.
#[derive(Clone, Debug)]
pub(super) struct WorkloadEntry {
    pub(super) group: GroupId,
    pub(super) properties: Properties,
    /// The keys of its bound pods.
    pub(super) pods: BTreeSet<String>,
    pub(super) reservations: BTreeMap<Reservation, PodId>,
}

/// The owned form of a [`WorkloadUnit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Properties {
    /// Sorted.
    pub(super) owner_uids: Vec<String>,
    pub(super) priority: i32,
    preemption_priority: i32,
    never_preempts: bool,
    pub(super) is_evicted: bool,
    pub(super) is_non_preemptible: bool,
    disruption: DisruptionMode,
}

impl Properties {
    pub(super) fn from_unit(unit: &WorkloadUnit<'_>) -> Self {
        let mut owner_uids: Vec<String> =
            unit.owner_uids.iter().map(|it| (*it).to_owned()).collect();
        owner_uids.retain(|it| !it.is_empty());
        owner_uids.sort_unstable();
        owner_uids.dedup();
        Self {
            owner_uids,
            priority: unit.priority,
            // A unit with less preemption than scheduling priority could preempt its own preemptor in turn.
            preemption_priority: unit.preemption_priority.max(unit.priority),
            never_preempts: unit.never_preempts,
            is_evicted: unit.is_evicted,
            is_non_preemptible: unit.is_non_preemptible,
            disruption: unit.disruption,
        }
    }

    /// The pods of the workload as a group of the core.
    pub(super) fn group<'a>(&self, namespace: &'a str, name: &'a str) -> GroupSpec<'a> {
        GroupSpec {
            mode: match self.disruption {
                DisruptionMode::Pod => CoreMode::Pod,
                DisruptionMode::PodGroup => CoreMode::PodGroup,
            },
            priority: Some(self.priority),
            preemption_priority: Some(self.preemption_priority),
            preemption: Some(policy(self.never_preempts)),
            ..pod_group(namespace, name)
        }
    }
}

/// A group without properties.
pub(super) const fn pod_group<'a>(namespace: &'a str, name: &'a str) -> GroupSpec<'a> {
    GroupSpec {
        key: GroupKey {
            kind: PreemptionUnitKind::PodGroup,
            namespace,
            name,
        },
        parent: None,
        mode: CoreMode::Pod,
        priority: None,
        preemption_priority: None,
        preemption: None,
        count_min: None,
    }
}

/// The preemption policy of a workload.
pub(super) const fn policy(never_preempts: bool) -> PodPreemption {
    if never_preempts {
        PodPreemption::Never
    } else {
        PodPreemption::LowerPriority
    }
}

/// The key of an object: `namespace/name`.
pub(super) fn object_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The namespace and the name of a key.
pub(super) fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}
