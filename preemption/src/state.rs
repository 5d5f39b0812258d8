//! All that decisions are made from, kept up to date by events.
//!
//! An event costs a logarithm of the number of workloads, times the flavors and resources of the
//! workload and the depth of its tree. A change of queues or cohorts takes effect at the next decision
//! and costs the size of the tree then.

mod lookups;
mod stats;
mod update;

pub use stats::PendingCounts;

use crate::admitted::AdmittedLookup;
use crate::admitted::{AdmittedIndex, AdmittedWorkload};
use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::damping::{Histories, Holds};
use crate::ids::{FlavorResource, Interner, NodeId, WorkloadId};
use crate::inadmissible_index::InadmissibleIndex;
use crate::pod_set_interner::PodSetInterner;
use crate::policy::PreemptionLimits;
use crate::queue::{Queue, QueueSettings};
use crate::quota::{Overlay, Tree};
use crate::small_amounts::SmallAmounts;
use crate::spec::{CohortSpec, Options, QueueSpec, Reservation, WorkloadSpec};
use crate::workload_table::{WorkloadRow, WorkloadTable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(crate) options: Options,
    // What seldom changes is shared by copies until it does.
    flavors: Arc<Interner>,
    resources: Arc<Interner>,
    pub(crate) queue_names: Arc<BTreeMap<Arc<str>, NodeId>>,
    cohort_names: Arc<BTreeMap<Arc<str>, NodeId>>,
    pub(crate) tree: Arc<Tree>,
    /// Queues and cohorts that were declared anew since the tree was settled.
    changed: Vec<NodeId>,
    pub(crate) usage: Vec<Amount>,
    pub(crate) overlay: Overlay,
    pub(crate) overlay_now: Overlay,
    pub(crate) admitted_index: AdmittedIndex,
    pub(crate) queues: Vec<Queue>,
    pub(crate) workloads: WorkloadTable,
    by_name: BTreeMap<Arc<str>, WorkloadId>,
    pub(crate) pod_set_interner: PodSetInterner,
    inadmissible: InadmissibleIndex,
    pub(crate) cycle: u64,
    /// The time of the last cycle.
    pub(crate) now_s: i64,
    /// By how much a reservation that a cycle makes counts as newer than the cycle, in seconds.
    pub(crate) reservation_lead_s: i64,
    pub(crate) histories: Histories,
    pub(crate) holds: Holds,
    /// Whether any queue has limits.
    pub(crate) has_limits: bool,
    /// Whether any queue is elastic, or was.
    pub(crate) has_elastic: bool,
    /// When to look again at who is parked, in seconds, and below which queue.
    pub(crate) reactivation_times: BTreeSet<(i64, NodeId)>,
}

impl State {
    /// Nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut state = Self {
            options,
            ..Self::default()
        };
        // The number of `ResourceId::PODS`.
        Arc::make_mut(&mut state.resources).intern("pods");
        state
    }

    /// Tells the time, in seconds. A cycle tells it too; questions beside cycles need it for the minimum
    /// run time.
    pub fn set_now(&mut self, now_s: i64) {
        self.now_s = now_s;
    }

    /// What a cycle reserves counts as newer than all that was reserved within the same second, until it is
    /// reserved anew with its time. Among candidates the newest goes first, and who was not told of his
    /// admission yet is the cheapest victim of all. (In Kueue such a reservation has a time in nanoseconds, and
    /// that of an object whole seconds.)
    pub const fn treat_new_as_newest(&mut self) {
        self.reservation_lead_s = 1;
    }

    /// Adds a ClusterQueue or changes it. What is parked in its tree is looked at again.
    pub fn set_queue(&mut self, spec: QueueSpec<'_>) -> NodeId {
        let id = self.queue_node(spec.name);
        let parent = spec.cohort.map(|name| self.cohort_node(name));
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
        Arc::make_mut(&mut self.tree).declare(id, parent, quotas, spec.weight);
        self.has_limits |= spec.preemption.limits != PreemptionLimits::default();
        let was_elastic = self.pending_queue(id).and_then(|it| it.settings.elastic);
        let elastic = spec.elastic;
        if let Some(queue) = self.queues.get_mut(id.index()) {
            queue.settings = Arc::new(QueueSettings {
                is_declared: true,
                groups: spec.groups,
                preemption: spec.preemption,
                fungibility: spec.fungibility,
                strategy: spec.strategy,
                elastic: spec.elastic,
                is_active: spec.is_active,
            });
        }
        if was_elastic != elastic {
            self.recount_non_preemptible_usage(id, elastic);
        }
        self.changed.push(id);
        id
    }

    /// Takes a ClusterQueue away. Its workloads stay known and wait for it to come back.
    pub fn remove_queue(&mut self, name: &str) {
        if let Some(id) = self.queue(name) {
            self.changed.push(id);
            Arc::make_mut(&mut self.tree).declare(id, None, Vec::new(), 1.0);
            if let Some(queue) = self.queues.get_mut(id.index()) {
                queue.settings = Arc::default();
                queue.non_preemptible = None;
            }
        }
    }

    /// Adds a cohort or changes it. What is parked in its tree is looked at again.
    pub fn set_cohort(&mut self, spec: CohortSpec<'_>) -> NodeId {
        let id = self.cohort_node(spec.name);
        let parent = spec.parent.map(|name| self.cohort_node(name));
        Arc::make_mut(&mut self.tree).declare(id, parent, spec.quotas, spec.weight);
        self.changed.push(id);
        id
    }

    /// Takes the quota and the parent of a cohort away. It is there as long as a queue names it.
    pub fn remove_cohort(&mut self, name: &str) {
        if let Some(id) = self.cohort_names.get(name).copied() {
            self.changed.push(id);
            Arc::make_mut(&mut self.tree).declare(id, None, Vec::new(), 1.0);
        }
    }

    /// Adds a workload that waits for quota.
    pub fn add_pending(&mut self, spec: WorkloadSpec<'_>) -> WorkloadId {
        let id = self.add_workload(spec);
        self.enqueue(id);
        id
    }

    /// Adds a workload that holds quota.
    pub fn add_admitted(&mut self, spec: WorkloadSpec<'_>, held: &Reservation) -> WorkloadId {
        let id = self.add_workload(spec);
        self.reserve(id, held);
        id
    }

    /// A workload holds quota now.
    pub fn reserve(&mut self, id: WorkloadId, held: &Reservation) {
        self.reserve_usage(id, &held.usage, held.reserved_at_s, held.is_evicted);
        self.reactivate_where_holds_ended();
    }

    /// The same, without a look at who is parked.
    pub(crate) fn reserve_usage(
        &mut self,
        id: WorkloadId,
        usage: &[(FlavorResource, Amount)],
        reserved_at_s: i64,
        is_evicted: bool,
    ) {
        let is_used = |(_, amount): &(_, Amount)| *amount != Amount::ZERO;
        if usage.iter().all(is_used) && usage.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Nearly always: nothing has to be copied.
            return self.reserve_sorted(id, usage, reserved_at_s, is_evicted);
        }
        let mut usage = usage.to_vec();
        usage.retain(is_used);
        usage.sort_unstable_by_key(|(of, _)| *of);
        self.reserve_sorted(id, &usage, reserved_at_s, is_evicted);
    }

    fn reserve_sorted(
        &mut self,
        id: WorkloadId,
        usage: &[(FlavorResource, Amount)],
        reserved_at_s: i64,
        is_evicted: bool,
    ) {
        self.holds.end(id);
        self.histories.record_admission(id);
        self.release_usage(id);
        self.dequeue(id);
        let Some(queue) = self.workloads.get(id).map(|record| record.queue) else {
            return;
        };
        // What the cells were before a change of the quotas says nothing of what they will be.
        self.apply_changes();
        for (of, _) in usage {
            self.ensure_cell(queue, *of);
        }
        self.apply_changes();
        let group = self.admitted_index.group_for(&self.tree, queue, usage);
        self.remove_non_preemptible_usage(id);
        let Some(record) = self.workloads.get_mut(id) else {
            return;
        };
        let running = AdmittedWorkload {
            queue,
            usage_group: group,
            amounts: SmallAmounts::new(usage.iter().map(|(_, amount)| *amount)),
            priority: record.priority,
            order_time: record.order_time,
            reserved_at_s,
            is_evicted,
            preemption_labels: record.preemption_labels,
        };
        record.last_assignment = None;
        self.admitted_index
            .insert(&self.tree, &self.workloads, id, &running);
        for (cell, amount) in self.admitted_index.usage(&running) {
            self.tree.add_usage(&mut self.usage, cell, amount);
        }
        if let Some(record) = self.workloads.get_mut(id) {
            record.admitted = Some(running);
        }
        self.add_non_preemptible_usage(id);
        if let Some(queue) = self.queues.get_mut(queue.index()) {
            queue.clear_sticky(id);
            // The object's update after its admission.
            queue.generation = queue.generation.saturating_add(1);
        }
    }

    /// A running workload is told to go. It holds its quota until it is released.
    pub fn mark_evicted(&mut self, id: WorkloadId) {
        if let Some(running) = self.workloads.admitted(id)
            && !running.is_evicted
        {
            self.admitted_index
                .mark_evicted(&self.workloads, id, running);
            if let Some(running) = self
                .workloads
                .get_mut(id)
                .and_then(|it| it.admitted.as_mut())
            {
                running.is_evicted = true;
            }
        }
    }

    /// A running workload gave its quota back and waits again. Everybody below its root who is parked
    /// is looked at again.
    pub fn release(&mut self, id: WorkloadId) {
        let Some(queue) = self.release_usage(id) else {
            return;
        };
        self.histories.record_release(id);
        self.enqueue(id);
        self.reactivate(queue);
    }

    /// A workload is gone: finished, deleted, deactivated. What it held is free.
    pub fn remove(&mut self, id: WorkloadId) {
        let freed = self.release_usage(id);
        self.dequeue(id);
        self.holds.end(id);
        self.histories.remove_workload(id);
        let unkept = self.remove_non_preemptible_usage(id);
        if let Some(record) = self.workloads.remove(id) {
            self.by_name.remove(&record.name);
            self.pod_set_interner.release(&record.pod_sets);
            if let Some(queue) = self.queues.get_mut(record.queue.index()) {
                queue.clear_sticky(id);
            }
        }
        // What was kept for a non-preemptible workload that waited is free for others as well.
        if let Some(queue) = freed.or(unkept) {
            self.reactivate(queue);
        }
        self.reactivate_where_holds_ended();
    }

    /// A workload must not be looked at before this second. It is neither active nor parked until then;
    /// the first cycle at that second or later takes it in. One that runs is held as soon as it is
    /// released. A later call replaces the second.
    pub fn set_backoff(&mut self, id: WorkloadId, until_s: i64) {
        self.dequeue(id);
        let Some(record) = self.workloads.get_mut(id) else {
            return;
        };
        record.backoff_until_s = Some(until_s);
        if record.admitted.is_none() {
            self.enqueue(id);
        }
        self.holds.end(id);
        self.reactivate_where_holds_ended();
    }

    /// Moves back to active one workload that is parked, with those of its queue that fare alike.
    pub fn reactivate_class_of(&mut self, id: WorkloadId) {
        let Some(record) = self.workloads.get(id) else {
            return;
        };
        let (queue, place, class) = (
            record.queue,
            record.queue_key(id),
            record.equivalence_class(),
        );
        if let Some(queue) = self.pending_queue_mut(queue) {
            queue.reactivate_class_of(&place, class);
        }
    }

    /// Moves back to active what is parked in the tree of a node and in scope. Costs a step for each class
    /// of workloads that was parked since the last time.
    pub fn reactivate(&mut self, node: NodeId) {
        self.apply_changes();
        self.reactivate_below(self.tree.node(node).root);
    }

    fn reactivate_below(&mut self, root: NodeId) {
        let queues = &mut self.queues;
        self.inadmissible.drain(root, |id| {
            if let Some(queue) = queues.get_mut(id.index()) {
                queue.reactivate();
            }
        });
    }

    /// Something was parked in a queue that may be revived.
    pub(crate) fn note_inadmissible(&mut self, queue: NodeId) {
        self.inadmissible.insert(&self.tree, queue);
    }

    pub(crate) fn pending_queue(&self, queue: NodeId) -> Option<&Queue> {
        self.queues.get(queue.index())
    }

    pub(crate) fn queues_and_workloads(&mut self) -> (&mut [Queue], &mut WorkloadTable) {
        (&mut self.queues, &mut self.workloads)
    }

    pub(crate) fn pending_queue_mut(&mut self, queue: NodeId) -> Option<&mut Queue> {
        self.queues.get_mut(queue.index())
    }

    /// Takes effect of changed queues and cohorts. In their trees, as they were and as they are, what
    /// was tried is out of date, and who is parked is looked at again. Whatever asks or decides does this first; who
    /// copies a state again and again does it before. Costs the size of the trees, and nothing if nothing changed.
    pub fn apply_changes(&mut self) {
        if self.tree.is_dirty() {
            let changed = std::mem::take(&mut self.changed);
            self.reactivate_changed(&changed);
            Arc::make_mut(&mut self.tree).rebuild(&mut self.usage);
            // Copies of a settled state need not make room for themselves.
            self.overlay.resize(self.usage.len());
            self.overlay_now.resize(self.usage.len());
            self.admitted_index.rebuild(&self.tree);
            self.inadmissible.rebuild(&self.tree);
            self.reactivate_changed(&changed);
        }
    }

    fn reactivate_changed(&mut self, changed: &[NodeId]) {
        let roots = changed.iter().map(|id| self.tree.node(*id).root);
        let roots: BTreeSet<NodeId> = roots.collect();
        let mut open: Vec<NodeId> = roots.iter().copied().collect();
        while let Some(id) = open.pop() {
            open.extend(&self.tree.node(id).children);
            if let Some(queue) = self.queues.get_mut(id.index()) {
                queue.generation = queue.generation.saturating_add(1);
            }
        }
        self.forget_history_below(&roots);
        for root in roots {
            self.reactivate_below(root);
        }
    }

    /// Puts a workload that waits into its place.
    pub(crate) fn enqueue(&mut self, id: WorkloadId) {
        let Some(record) = self.workloads.get(id) else {
            return;
        };
        let place = record.queue_key(id);
        if let Some(queue) = self.queues.get_mut(record.queue.index()) {
            match record.backoff_until_s {
                Some(until_s) => queue.push_backing_off(until_s, place),
                None => queue.push(place, record.equivalence_class()),
            }
        }
    }

    fn dequeue(&mut self, id: WorkloadId) {
        let Some(record) = self.workloads.get_mut(id) else {
            return;
        };
        let held = record.backoff_until_s.take();
        let (place, class) = (record.queue_key(id), record.equivalence_class());
        if let Some(queue) = self.queues.get_mut(record.queue.index()) {
            queue.remove(&place, class, held);
        }
    }

    /// Takes a workload's usage off; says in which queue, if it had any.
    fn release_usage(&mut self, id: WorkloadId) -> Option<NodeId> {
        self.workloads.admitted(id)?;
        self.remove_non_preemptible_usage(id);
        let running = self.workloads.get_mut(id)?.admitted.take()?;
        self.add_non_preemptible_usage(id);
        for (cell, amount) in self.admitted_index.usage(&running) {
            self.tree.remove_usage(&mut self.usage, cell, amount);
        }
        self.admitted_index
            .remove(&self.tree, &self.workloads, id, &running);
        let queue = self.queues.get_mut(running.queue.index())?;
        queue.generation = queue.generation.saturating_add(1);
        Some(running.queue)
    }

    fn add_workload(&mut self, spec: WorkloadSpec<'_>) -> WorkloadId {
        if let Some(known) = self.workload(spec.name) {
            self.remove(known);
        }
        let queue = self.queue_node(spec.queue);
        let (pod_sets, shape) = self.pod_set_interner.acquire(spec.pod_sets);
        let name: Arc<str> = spec.name.into();
        let id = self.workloads.insert(WorkloadRow {
            name: Arc::clone(&name),
            uid: spec.uid.into(),
            queue,
            priority: spec.priority,
            order_time: spec.order_time,
            pod_sets,
            pod_sets_id: shape,
            is_in_scope: spec.is_in_scope,
            preemption_labels: spec.preemption_labels,
            backoff_until_s: None,
            last_assignment: None,
            admitted: None,
        });
        self.by_name.insert(name, id);
        self.add_non_preemptible_usage(id);
        id
    }

    /// Makes sure that usage of this flavor and resource can be booked on the queue.
    pub(crate) fn ensure_cell(&mut self, queue: NodeId, of: FlavorResource) {
        if self.tree.node(queue).cell(of).is_none() {
            Arc::make_mut(&mut self.tree).ensure_cell(queue, of);
        }
    }

    fn queue_node(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.queue_names.get(name) {
            return *id;
        }
        let id = Arc::make_mut(&mut self.tree).add(name, true);
        Arc::make_mut(&mut self.queue_names).insert(name.into(), id);
        self.queues
            .resize_with(id.index().saturating_add(1), Queue::default);
        id
    }

    fn cohort_node(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.cohort_names.get(name) {
            return *id;
        }
        let id = Arc::make_mut(&mut self.tree).add(name, false);
        Arc::make_mut(&mut self.cohort_names).insert(name.into(), id);
        id
    }

    /// What an assignment reserves.
    #[must_use]
    pub fn reservation_from(assignment: &Assignment, now_s: i64) -> Reservation {
        Reservation {
            usage: assignment.usage.clone(),
            reserved_at_s: now_s,
            is_evicted: false,
        }
    }
}
