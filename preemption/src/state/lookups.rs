//! What the state knows, by names and by numbers.

use super::State;
use crate::amount::Amount;
use crate::assignment::PodSet;
use crate::ids::{FlavorId, FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::queue::Queue;
use crate::quota::UsageStore;
use std::sync::Arc;

impl State {
    /// The number of a flavor.
    pub fn flavor(&mut self, name: &str) -> FlavorId {
        FlavorId(Arc::make_mut(&mut self.flavors).intern(name))
    }

    /// The number of a resource.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        ResourceId(Arc::make_mut(&mut self.resources).intern(name))
    }

    /// The name of a flavor.
    #[must_use]
    pub fn flavor_name(&self, id: FlavorId) -> &str {
        self.flavors.name(id.0)
    }

    /// The name of a resource.
    #[must_use]
    pub fn resource_name(&self, id: ResourceId) -> &str {
        self.resources.name(id.0)
    }

    /// The name of a ClusterQueue or a cohort.
    #[must_use]
    pub fn node_name(&self, id: NodeId) -> &str {
        self.tree.node(id).name()
    }

    /// The name of a workload; empty if it is gone.
    #[must_use]
    pub fn workload_name(&self, id: WorkloadId) -> &str {
        self.workloads.get(id).map_or("", |record| &record.name)
    }

    /// The queue of a workload.
    #[must_use]
    pub fn queue_of(&self, id: WorkloadId) -> Option<NodeId> {
        self.workloads.get(id).map(|record| record.queue)
    }

    /// The priority of a workload.
    #[must_use]
    pub fn priority(&self, id: WorkloadId) -> i32 {
        self.workloads.get(id).map_or(0, |record| record.priority)
    }

    /// The pod sets of a workload.
    #[must_use]
    pub fn pod_sets(&self, id: WorkloadId) -> &[PodSet] {
        self.workloads.get(id).map_or(&[], |it| &*it.pod_sets)
    }

    /// Whether the search for flavors of a workload that waits has stopped before the last one: the next cycle
    /// goes on there.
    #[must_use]
    pub fn has_untried_flavors(&self, id: WorkloadId) -> bool {
        let record = self.workloads.get(id);
        record.is_some_and(|it| it.last_assignment.is_some() && it.admitted.is_none())
    }

    /// A workload by its name.
    #[must_use]
    pub fn workload(&self, name: &str) -> Option<WorkloadId> {
        self.by_name.get(name).copied()
    }

    /// A ClusterQueue by its name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<NodeId> {
        self.queue_names.get(name).copied()
    }

    /// All ClusterQueues, by name.
    pub fn queues(&self) -> impl Iterator<Item = (&str, NodeId)> {
        let named = self.queue_names.iter().map(|(name, id)| (&**name, *id));
        named.filter(|(_, id)| {
            self.pending_queue(*id)
                .is_some_and(|it| it.settings.is_declared)
        })
    }

    /// The active workloads of a queue in queue order.
    #[must_use]
    pub fn active(&self, queue: NodeId) -> Vec<WorkloadId> {
        self.pending_queue(queue)
            .map(Queue::active)
            .unwrap_or_default()
    }

    /// Whether a workload waits and is not parked.
    #[must_use]
    pub fn is_active(&self, id: WorkloadId) -> bool {
        let record = self.workloads.get(id);
        let queue = record.and_then(|it| Some((it, self.pending_queue(it.queue)?)));
        queue.is_some_and(|(it, queue)| queue.is_active(&it.queue_key(id), it.equivalence_class()))
    }

    /// The parked workloads of a queue in queue order.
    #[must_use]
    pub fn inadmissible(&self, queue: NodeId) -> Vec<WorkloadId> {
        self.pending_queue(queue)
            .map(Queue::inadmissible)
            .unwrap_or_default()
    }

    /// The held workloads of a queue, those first that are held the shortest. Kueue counts them among the
    /// inadmissible ones.
    #[must_use]
    pub fn backing_off(&self, queue: NodeId) -> Vec<WorkloadId> {
        self.pending_queue(queue)
            .map(Queue::backing_off)
            .unwrap_or_default()
    }

    /// The usage of a ClusterQueue or a cohort. Sorted by flavor and resource.
    #[must_use]
    pub fn usage(&self, node: NodeId) -> Vec<(FlavorResource, Amount)> {
        let cells = self.tree.node(node).cells.iter();
        cells
            .map(|(of, cell)| (*of, self.usage.usage(*cell)))
            .collect()
    }
}
