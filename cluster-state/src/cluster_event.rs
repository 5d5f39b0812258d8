//! The changes and cycles of a cluster state, as values.

use crate::cycle_record::CycleRecord;
use crate::object_store::Labels;
use crate::workload_store::WorkloadStore;
use k8s_openapi::api::core::v1::LimitRange;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An object other than a Workload was added, changed or removed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ObjectChange {
    /// `ClusterState::set_cluster_queue`.
    ClusterQueue(Arc<ClusterQueue>),
    /// `ClusterState::remove_cluster_queue`.
    ClusterQueueRemoved(String),
    /// `ClusterState::set_cohort`.
    Cohort(Box<Cohort>),
    /// `ClusterState::remove_cohort`.
    CohortRemoved(String),
    /// `ClusterState::set_resource_flavor`.
    ResourceFlavor(Box<ResourceFlavor>),
    /// `ClusterState::remove_resource_flavor`.
    ResourceFlavorRemoved(String),
    /// `ClusterState::set_local_queue`.
    LocalQueue(Box<LocalQueue>),
    /// `ClusterState::remove_local_queue`.
    LocalQueueRemoved {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// `ClusterState::set_namespace`.
    Namespace {
        /// Its name.
        name: String,
        /// Its labels.
        labels: Labels,
    },
    /// `ClusterState::remove_namespace`.
    NamespaceRemoved(String),
    /// `ClusterState::set_priority_class`.
    PriorityClass(Box<PriorityClass>),
    /// `ClusterState::remove_priority_class`.
    PriorityClassRemoved(String),
    /// `ClusterState::set_limit_range`.
    LimitRange(Box<LimitRange>),
    /// `ClusterState::remove_limit_range`.
    LimitRangeRemoved {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// `ClusterState::set_runtime_class`.
    RuntimeClass(Box<RuntimeClass>),
    /// `ClusterState::remove_runtime_class`.
    RuntimeClassRemoved(String),
}

/// A change of a `ClusterState`, or one of its cycles. Workloads are named `namespace/name`. As JSON it has no Workloads, whose pod
/// templates are large: a log has a form of its own for them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    tag = "event",
    content = "data",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ClusterEvent {
    /// The time of the following events, in milliseconds since 1970.
    Time(i64),
    /// Another object than a Workload.
    Object(ObjectChange),
    /// `ClusterState::set_workload`.
    #[serde(skip)]
    Workload(Arc<Workload>),
    /// `ClusterState::set_workload` with the stored object: other objects, or the time, may have changed.
    WorkloadSynced(String),
    /// `ClusterState::remove_workload`.
    WorkloadRemoved(String),
    /// `ClusterState::revert_admission`.
    AdmissionReverted(String),
    /// `ClusterState::hold_until`.
    Held {
        /// The workload.
        workload: String,
        /// Until when, in seconds since 1970.
        until_s: i64,
    },
    /// `end_hold`.
    HoldEnded(String),
    /// `set_stuck`.
    Stuck {
        /// The workload.
        workload: String,
        /// Whether it does not release its quota.
        is_stuck: bool,
    },
    /// `mark_evicted`.
    Evicted(String),
    /// `search_again`.
    SearchedAgain(String),
    /// `ClusterState::next_cycle`.
    Cycle(CycleRecord),
}

impl ClusterEvent {
    /// The event of `ClusterState::set_workload`.
    pub(crate) fn workload(stored: &WorkloadStore, key: &str, workload: &Arc<Workload>) -> Self {
        let before = stored.entries.get(key);
        if before.is_some_and(|it| Arc::ptr_eq(&it.object, workload)) {
            Self::WorkloadSynced(key.to_owned())
        } else {
            Self::Workload(Arc::clone(workload))
        }
    }
}

/// Takes down the events of a cluster state, if it has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    has_begun: bool,
    events: Vec<ClusterEvent>,
    /// The time of the next event.
    pub(crate) now_ms: i64,
    /// The time of the last event.
    at_ms: Option<i64>,
}

impl Journal {
    /// A journal that takes events down.
    pub(crate) fn begin() -> Self {
        Self {
            has_begun: true,
            ..Self::default()
        }
    }

    /// The events since the last call.
    pub(crate) fn take(&mut self) -> Vec<ClusterEvent> {
        std::mem::take(&mut self.events)
    }

    pub(crate) fn event(&mut self, event: impl FnOnce() -> ClusterEvent) {
        if !self.has_begun {
            return;
        }
        if self.at_ms.replace(self.now_ms) != Some(self.now_ms) {
            self.events.push(ClusterEvent::Time(self.now_ms));
        }
        self.events.push(event());
    }

    pub(crate) fn object(&mut self, change: impl FnOnce() -> ObjectChange) {
        self.event(|| ClusterEvent::Object(change()));
    }
}
