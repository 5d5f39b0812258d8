//! The operations of the state: events that change it, and lookups by name and id.

use super::model::State;
use super::node_view::NodeView;
use super::nodes::{cohort_node, queue_node};
use super::non_preemptible::recount_non_preemptible_usage;
use super::reactivation::{self, reactivate_where_holds_ended};
use super::usage::{dequeue, enqueue, release_usage, reserve_usage};
use super::workload_view::WorkloadView;
use super::workloads;
use crate::admitted::AdmittedLookup;
use crate::ids::{FlavorId, FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::policy::{PreemptionLimits, QueueingStrategy};
use crate::queue::{Queue, QueueSettings};
use crate::spec::{CohortSpec, Options, QueueSpec, Reservation, WorkloadSpec};
use std::sync::Arc;

impl State {
    /// Creates an empty state.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut state = Self {
            options,
            ..Self::default()
        };
        // The first name gets the id `ResourceId::PODS`.
        Arc::make_mut(&mut state.resources).intern("pods");
        state
    }

    /// Makes reservations of a cycle count as newer than all others of the same second, until they are
    /// reserved again with their recorded time. The newest candidate is preempted first, so a workload
    /// whose admission was not written yet is the cheapest victim. (Kueue gets the same order because its
    /// in-memory reservations have nanoseconds and the objects only seconds.)
    pub const fn treat_new_as_newest(&mut self) {
        self.reservation_lead_s = 1;
    }

    /// Sets the time, in seconds. A cycle sets it as well; queries outside cycles need it for the minimum
    /// run time.
    pub fn set_now(&mut self, now_s: i64) {
        self.now_s = now_s;
    }

    /// Adds or replaces a ClusterQueue. The inadmissible workloads of its tree become active.
    pub fn set_queue(&mut self, mut spec: QueueSpec<'_>) -> NodeId {
        let limits = spec.preemption.limits;
        spec.preemption.limits = limits.or(self.options.preemption_limits);
        let id = queue_node(self, spec.name);
        let parent = spec.cohort.map(|name| cohort_node(self, name));
        let mut quotas = Vec::new();
        for flavor in spec.groups.iter().flat_map(|group| &group.flavors) {
            for (resource, quota) in &flavor.quotas {
                let of = FlavorResource {
                    flavor: flavor.flavor,
                    resource: *resource,
                };
                quotas.push((of, *quota));
            }
        }
        let tree = Arc::make_mut(&mut self.tree);
        tree.set_inactive(id, !spec.is_active);
        tree.declare(id, parent, quotas, spec.weight);
        let is_strict = spec.strategy == QueueingStrategy::StrictFifo;
        let backfill = spec
            .backfill
            .filter(|_| is_strict && spec.elastic.is_none());
        self.has_backfill |= backfill.is_some();
        self.has_limits |= spec.preemption.limits != PreemptionLimits::default();
        let was_elastic = self
            .queues
            .get(id.index())
            .and_then(|it| it.settings.elastic);
        let elastic = spec.elastic;
        if let Some(queue) = self.queues.get_mut(id.index()) {
            queue.settings = Arc::new(QueueSettings {
                is_declared: true,
                groups: spec.groups,
                preemption: spec.preemption,
                fungibility: spec.fungibility,
                strategy: spec.strategy,
                backfill,
                elastic: spec.elastic,
                is_active: spec.is_active,
            });
        }
        if was_elastic != elastic {
            recount_non_preemptible_usage(self, id, elastic);
        }
        self.changed.push(id);
        id
    }

    /// Removes a ClusterQueue. Its workloads stay and wait for a queue of that name.
    pub fn remove_queue(&mut self, name: &str) {
        if let Some(id) = self.queue(name) {
            self.changed.push(id);
            let tree = Arc::make_mut(&mut self.tree);
            tree.set_inactive(id, true);
            tree.declare(id, None, Vec::new(), 1.0);
            if let Some(queue) = self.queues.get_mut(id.index()) {
                queue.settings = Arc::default();
                queue.non_preemptible = None;
            }
        }
    }

    /// Adds or replaces a cohort. The inadmissible workloads of its tree become active.
    pub fn set_cohort(&mut self, spec: CohortSpec<'_>) -> NodeId {
        let id = cohort_node(self, spec.name);
        let parent = spec.parent.map(|name| cohort_node(self, name));
        Arc::make_mut(&mut self.tree).declare(id, parent, spec.quotas, spec.weight);
        self.changed.push(id);
        id
    }

    /// Removes the quota and the parent of a cohort. Its node stays as long as a queue refers to it.
    pub fn remove_cohort(&mut self, name: &str) {
        if let Some(id) = self.cohort_names.get(name).copied() {
            self.changed.push(id);
            Arc::make_mut(&mut self.tree).declare(id, None, Vec::new(), 1.0);
        }
    }

    /// Adds a pending workload.
    pub fn add_pending(&mut self, spec: WorkloadSpec<'_>) -> WorkloadId {
        let id = workloads::add_workload(self, spec);
        enqueue(self, id);
        id
    }

    /// Adds a workload with reserved quota.
    pub fn add_admitted(
        &mut self,
        spec: WorkloadSpec<'_>,
        reservation: &Reservation,
    ) -> WorkloadId {
        let id = workloads::add_workload(self, spec);
        self.reserve(id, reservation);
        id
    }

    /// Reserves quota for a workload.
    pub fn reserve(&mut self, id: WorkloadId, reservation: &Reservation) {
        reserve_usage(
            self,
            id,
            &reservation.usage,
            reservation.reserved_at_s,
            reservation.is_evicted,
        );
        reactivate_where_holds_ended(self);
    }

    /// Marks an admitted workload as evicted. It keeps its quota until [`Self::release`].
    pub fn mark_evicted(&mut self, id: WorkloadId) {
        if let Some(admitted) = self.workloads.admitted(id)
            && !admitted.is_evicted
        {
            if let Some(queue) = self.queues.get_mut(admitted.queue.index()) {
                // As in Kueue, where the update of the object after its eviction counts as a change.
                queue.generation = queue.generation.saturating_add(1);
            }
            self.admitted_index
                .mark_evicted(&self.tree, &self.workloads, id, admitted);
            if let Some(admitted) = self
                .workloads
                .get_mut(id)
                .and_then(|row| row.admitted.as_mut())
            {
                admitted.is_evicted = true;
            }
        }
    }

    /// Releases the quota of an admitted workload, which becomes pending. The inadmissible workloads of its
    /// tree become active.
    pub fn release(&mut self, id: WorkloadId) {
        let Some(queue) = release_usage(self, id) else {
            return;
        };
        self.histories.record_release(id);
        enqueue(self, id);
        self.reactivate(queue);
    }

    /// Removes a workload that was finished, deleted or deactivated, and frees its quota.
    pub fn remove(&mut self, id: WorkloadId) {
        workloads::remove(self, id);
    }

    /// Puts a workload into backoff until this second: it is neither active nor inadmissible, and the first
    /// cycle at that second or later requeues it. The backoff of an admitted workload starts when it is
    /// released. A later call replaces the second.
    pub fn set_backoff(&mut self, id: WorkloadId, until_s: i64) {
        dequeue(self, id);
        let Some(row) = self.workloads.get_mut(id) else {
            return;
        };
        row.backoff_until_s = Some(until_s);
        if row.admitted.is_none() {
            enqueue(self, id);
        }
        // A workload in backoff cannot use held quota.
        self.holds.end(id);
        reactivate_where_holds_ended(self);
    }

    /// Reactivates an inadmissible workload and its equivalence class.
    pub fn reactivate_class_of(&mut self, id: WorkloadId) {
        let Some(row) = self.workloads.get(id) else {
            return;
        };
        let (queue, key, class) = (row.queue, row.queue_key(id), row.equivalence_class());
        if let Some(queue) = self.queues.get_mut(queue.index()) {
            queue.reactivate_class_of(&key, class);
        }
    }

    /// Returns the inadmissible workloads in the tree of a node to the active queue; those out of scope stay.
    /// Costs one step per class of workloads that became inadmissible since the last call.
    pub fn reactivate(&mut self, node: NodeId) {
        reactivation::reactivate(self, node);
    }

    /// Rebuilds the quota tree if queues or cohorts have changed, and reactivates the workloads of the old
    /// and new trees. Every query and decision that needs the tree calls it; call it yourself before
    /// copying a state repeatedly. Costs the size of the trees, and nothing without changes.
    pub fn apply_changes(&mut self) {
        reactivation::apply_changes(self);
    }

    /// Replaces the spec of a workload; its name stays. It keeps its id, quota, backoff and damping history.
    /// It keeps the flavors tried so far and stays inadmissible only if the spec is unchanged.
    pub fn update_workload(&mut self, id: WorkloadId, spec: WorkloadSpec<'_>) {
        workloads::update_workload(self, id, spec);
    }

    /// Returns the id of a flavor; an unknown name gets a new one.
    pub fn flavor(&mut self, name: &str) -> FlavorId {
        FlavorId(Arc::make_mut(&mut self.flavors).intern(name))
    }

    /// Returns the id of a resource; an unknown name gets a new one.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        ResourceId(Arc::make_mut(&mut self.resources).intern(name))
    }

    /// Returns the name of a flavor.
    #[must_use]
    pub fn flavor_name(&self, id: FlavorId) -> &str {
        self.flavors.name(id.0)
    }

    /// Returns the name of a resource.
    #[must_use]
    pub fn resource_name(&self, id: ResourceId) -> &str {
        self.resources.name(id.0)
    }

    /// Returns a read-only view of a ClusterQueue or cohort.
    #[must_use]
    pub const fn node_view(&self, id: NodeId) -> NodeView<'_> {
        NodeView::new(self, id)
    }

    /// Returns a read-only view of a workload.
    #[must_use]
    pub const fn workload_view(&self, id: WorkloadId) -> WorkloadView<'_> {
        WorkloadView::new(self, id)
    }

    /// Returns the name of a workload; empty if it was removed.
    #[must_use]
    pub fn workload_name(&self, id: WorkloadId) -> &str {
        self.workloads.get(id).map_or("", |row| &row.name)
    }

    /// Looks up a workload by name.
    #[must_use]
    pub fn workload(&self, name: &str) -> Option<WorkloadId> {
        self.by_name.get(name).copied()
    }

    /// Looks up a ClusterQueue by name.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<NodeId> {
        self.queue_names.get(name).copied()
    }

    /// Looks up a cohort by name.
    #[must_use]
    pub fn cohort(&self, name: &str) -> Option<NodeId> {
        self.cohort_names.get(name).copied()
    }

    /// Returns the declared ClusterQueues in the order of their names.
    pub fn queues(&self) -> impl Iterator<Item = (&str, NodeId)> {
        let named = self.queue_names.iter().map(|(name, id)| (&**name, *id));
        named.filter(|(_, id)| {
            self.queues
                .get(id.index())
                .is_some_and(|it| it.settings.is_declared)
        })
    }
}

/// Returns whether the next cycle has a head: an active workload in a queue that admits workloads. Costs a step per
/// queue.
#[must_use]
pub fn has_heads(state: &State) -> bool {
    let mut queues = state.queues.iter().enumerate();
    queues.any(|(index, queue)| {
        let is_misconfigured = || state.tree.node(NodeId::of(index)).is_misconfigured;
        queue.settings.is_active && queue.active_class_count() > 0 && !is_misconfigured()
    })
}

/// Returns the number of classes of equal workloads that are active, of all queues: it rises when a change reactivates workloads.
/// Costs a step per queue.
#[must_use]
pub fn active_class_count(state: &State) -> usize {
    state.queues.iter().map(Queue::active_class_count).sum()
}
