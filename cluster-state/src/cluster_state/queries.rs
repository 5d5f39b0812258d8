//! What is asked of the objects beside decisions.

use super::ClusterState;
use crate::workloads::{lifecycle_state, stop_policy};
use lockkeeper_api::Workload;
use lockkeeper_api::local_queue::LocalQueueSpec;
use lockkeeper_api::resource_flavor::ResourceFlavorSpec;
use lockkeeper_preemption::requeue::LifecycleState;
use std::sync::Arc;

impl ClusterState {
    /// The time that was told last, in milliseconds since 1970.
    #[must_use]
    pub const fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// A `ResourceFlavor` by its name.
    #[must_use]
    pub fn flavor(&self, name: &str) -> Option<&ResourceFlavorSpec> {
        self.flavors.get(name)
    }

    /// A LocalQueue.
    #[must_use]
    pub fn local_queue(&self, namespace: &str, name: &str) -> Option<&LocalQueueSpec> {
        let key = (namespace.to_owned(), name.to_owned());
        self.local_queues.get(&key)
    }

    /// Whether there is such a ClusterQueue, and it could be read.
    #[must_use]
    pub fn has_cluster_queue(&self, name: &str) -> bool {
        self.cluster_queues.contains_key(name)
    }

    /// The flavors that a ClusterQueue names and that do not exist.
    #[must_use]
    pub fn missing_flavors(&self, queue: &str) -> Vec<&str> {
        let groups = self.cluster_queues.get(queue).into_iter();
        let groups = groups.flat_map(|it| &it.spec.resource_groups);
        let names = groups.flat_map(|it| &it.flavors).map(|it| it.name.as_str());
        let names = names.filter(|name| !self.flavors.contains_key(*name));
        names.collect()
    }

    /// The ClusterQueues that name a flavor.
    #[must_use]
    pub fn queues_using_flavor(&self, name: &str) -> Vec<&str> {
        let queues = self.cluster_queues.iter();
        let queues = queues.filter(|(_, queue)| {
            let mut flavors = queue.spec.resource_groups.iter().flat_map(|it| &it.flavors);
            flavors.any(|it| it.name == name)
        });
        queues.map(|(queue, _)| queue.as_str()).collect()
    }

    /// The workloads that name a LocalQueue.
    pub fn workloads_in_local_queue(
        &self,
        namespace: &str,
        queue: &str,
    ) -> impl Iterator<Item = &Workload> {
        let key = (namespace.to_owned(), queue.to_owned());
        let there = self
            .workloads_by_local_queue
            .get(&key)
            .into_iter()
            .flatten();
        let known = there.filter_map(|key| self.workloads.get(key));
        known.map(|it| Arc::as_ref(&it.object))
    }

    /// Whether a workload (`namespace/name`) was admitted in the state, and its object does not say so yet.
    #[must_use]
    pub fn is_assumed(&self, key: &str) -> bool {
        self.assumed.contains(key)
    }

    /// Where a workload stands in its life cycle, its queues taken into account. A ClusterQueue or a
    /// LocalQueue that is not there stops nobody who runs.
    #[must_use]
    pub fn lifecycle_state(&self, workload: &Workload) -> LifecycleState {
        let door = super::local_queue_key(workload).and_then(|home| self.local_queues.get(&home));
        let admitted = workload
            .status
            .as_ref()
            .and_then(|it| it.admission.as_ref());
        let queue = admitted.map(|it| &it.cluster_queue);
        let queue = queue.or_else(|| door.map(|it| &it.cluster_queue));
        let queue = queue.and_then(|name| self.cluster_queues.get(name));
        lifecycle_state(
            workload,
            stop_policy(queue.and_then(|it| it.spec.stop_policy)),
            stop_policy(door.and_then(|it| it.stop_policy)),
        )
    }

    /// The value of a priority class; of the default one, or 0, if none is named. `None` if there is no such
    /// class.
    #[must_use]
    pub fn priority_for_class(&self, class: Option<&str>) -> Option<i32> {
        self.priority_class_value(class)
    }
}
