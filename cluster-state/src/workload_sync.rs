//! Brings the core's state up to date with one workload.

use crate::error::{ObjectError, ObjectProblem, Subject};
use crate::object_store::ObjectStore;
use crate::overflow_guard::{OverflowGuard, object_totals};
use crate::preemption_traits::preemption_labels_with_class;
use crate::workload_phase::{NotQueuedReason, WorkloadPhase};
use crate::workload_store::{WorkloadKey, WorkloadStore, local_queue_key};
use crate::workloads::{
    latest_end_s, lifecycle_state, pod_sets, recorded_admission, reservation, stop_policy,
};
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue::{ClusterQueueSpec, StopPolicy};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_preemption::requeue::{LifecycleState, RequeueSettings};
use lockkeeper_preemption::{
    Reservation, State, WorkloadId, WorkloadSpec, mark_stuck, set_execution_time_max,
    set_latest_end,
};
use std::sync::Arc;

/// The properties of a workload that depend on other objects.
struct Destination {
    cluster_queue: String,
    priority: i32,
    preemption_priority: Option<i32>,
    is_in_scope: bool,
}

/// The parts of the cluster state that a change of a workload concerns.
pub(crate) struct WorkloadSync<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) settings: &'a RequeueSettings,
    pub(crate) now_ms: i64,
    pub(crate) objects: &'a ObjectStore,
    pub(crate) workloads: &'a mut WorkloadStore,
    pub(crate) reserved_totals: &'a mut OverflowGuard,
}

impl WorkloadSync<'_> {
    /// Brings the state up to date with each of these workloads.
    pub(crate) fn sync_all(&mut self, keys: &[WorkloadKey]) {
        for key in keys {
            self.sync(key);
        }
    }

    /// Brings the state up to date with a workload, and records its phase.
    pub(crate) fn sync(&mut self, key: &str) {
        let Some(entry) = self.workloads.entries.get(key) else {
            return;
        };
        let object = Arc::clone(&entry.object);
        let phase = self.sync_state(key, &object).map_err(Box::new);
        if self.workloads.stuck.contains(key) {
            self.mark_stuck(key);
        }
        if let Some(entry) = self.workloads.entries.get_mut(key) {
            entry.phase = phase;
        }
    }

    /// Takes an admitted workload out of the candidates.
    pub(crate) fn mark_stuck(&mut self, key: &str) {
        if let Some(id) = self.state.workload(key)
            && self.state.workload_view(id).reservation().is_some()
        {
            mark_stuck(self.state, id);
        }
    }

    /// Removes a workload from the state.
    pub(crate) fn remove(&mut self, key: &str) {
        self.reserved_totals.remove(key);
        if let Some(id) = self.state.workload(key) {
            self.state.remove(id);
        }
    }

    fn sync_state(&mut self, key: &str, workload: &Workload) -> Result<WorkloadPhase, ObjectError> {
        let mut reserved = reservation(workload, self.state)?;
        if reserved.is_some() {
            // The watch has delivered the admission.
            self.workloads.assumed.remove(key);
        }
        let destination = match self.destination(key, workload, reserved.is_some()) {
            Ok(destination) => destination,
            Err(reason) => {
                self.remove(key);
                self.workloads.assumed.remove(key);
                return Ok(WorkloadPhase::NotQueued(reason));
            }
        };
        let queue = self.objects.cluster_queues.get(&destination.cluster_queue);
        let groups = queue.map(|it| it.spec.resource_groups.as_slice());
        let groups = groups.unwrap_or_default();
        let is_unlimited = queue.is_some_and(|it| has_no_quota(&it.spec));
        // The empty prefix excludes every resource.
        let all = [String::new()];
        let rules = self.objects.request_rules(is_unlimited.then_some(&all));
        let flavors = &self.objects.flavors;
        let pod_sets = pod_sets(workload, self.state, groups, flavors, rules)?;
        let cluster_queue_stop = stop_policy(queue.and_then(|it| it.spec.stop_policy));
        let lifecycle = lifecycle_state(workload, cluster_queue_stop, stop_policy(None));
        // The last check before the state changes: a rejected workload stays as it was.
        self.set_reserved_total(key, workload, reserved.as_ref())?;
        let spec = WorkloadSpec {
            name: key,
            uid: workload.metadata.uid.as_deref().unwrap_or_default(),
            queue: &destination.cluster_queue,
            priority: destination.priority,
            preemption_priority: destination.preemption_priority,
            order_time: lifecycle.order_time_ms(self.settings),
            waiting_since_s: waiting_since_s(&lifecycle),
            pod_sets,
            is_in_scope: destination.is_in_scope,
            preemption_labels: preemption_labels_with_class(self.objects, workload),
        };
        let id = match self.state.workload(key) {
            Some(id) => {
                self.state.update_workload(id, spec);
                id
            }
            None => match &reserved {
                Some(reserved) => self.state.add_admitted(spec, reserved),
                None => self.state.add_pending(spec),
            },
        };
        let max_s = workload.spec.maximum_execution_time_seconds;
        set_execution_time_max(self.state, id, max_s.map(i64::from));
        let is_assumed = self.workloads.assumed.contains(key);
        if is_assumed {
            // The object has no admission yet: the reservation of the cycle applies.
            reserved = self.state.workload_view(id).reservation();
        }
        if let Some(reserved) = reserved {
            self.sync_reservation(id, &reserved);
            // The limit of an assumed workload begins with the cycle.
            if !is_assumed {
                set_latest_end(self.state, id, latest_end_s(workload));
            }
            return Ok(WorkloadPhase::Admitted);
        }
        if self.state.workload_view(id).reservation().is_some() {
            // The object shows that its quota was released.
            self.state.release(id);
        }
        let held_until_s = self.workloads.held_until.get(key).copied();
        let now_s = self.now_ms.div_euclid(1000);
        let held_until_s = held_until_s.filter(|until_s| *until_s > now_s);
        Ok(self.sync_pending(id, lifecycle.hold_until_s(self.now_ms).max(held_until_s)))
    }

    /// Adds the reserved quota of a workload to the totals. Errors if a total is too large.
    fn set_reserved_total(
        &mut self,
        key: &str,
        workload: &Workload,
        reserved: Option<&Reservation>,
    ) -> Result<(), ObjectError> {
        let amounts = reserved.into_iter().flat_map(|it| &it.usage);
        let amounts = object_totals(amounts.map(|(of, amount)| (of.resource, *amount)));
        if self.reserved_totals.set(key, amounts) {
            return Ok(());
        }
        let field = FieldPath::new("status.admission.podSetAssignments");
        let subject = Subject::new("Workload", &workload.metadata);
        Err(subject.error(&field, ObjectProblem::TooLarge))
    }

    /// Records the quota of an admitted workload.
    fn sync_reservation(&mut self, id: WorkloadId, reserved: &Reservation) {
        let Some(before) = self.state.workload_view(id).reservation() else {
            self.state.reserve(id, reserved);
            return;
        };
        if before == *reserved {
            return;
        }
        let is_same_quota =
            before.usage == reserved.usage && before.reserved_at_s == reserved.reserved_at_s;
        // Only the eviction is new: the usage of the queue does not change.
        if is_same_quota && reserved.is_evicted {
            self.state.mark_evicted(id);
        } else {
            self.state.reserve(id, reserved);
        }
        // Pods that have succeeded may have released quota that others wait for.
        if before.usage != reserved.usage
            && let Some(queue) = self.state.workload_view(id).queue()
        {
            self.state.reactivate(queue);
        }
    }

    fn sync_pending(&mut self, id: WorkloadId, until_s: Option<i64>) -> WorkloadPhase {
        match (self.state.workload_view(id).backoff_until_s(), until_s) {
            (before, Some(until_s)) => {
                if before != Some(until_s) {
                    self.state.set_backoff(id, until_s);
                }
                WorkloadPhase::OnHold(until_s)
            }
            (Some(_), None) => {
                // Ends the backoff now: the next cycle puts the workload into its queue.
                self.state.set_backoff(id, self.now_ms.div_euclid(1000));
                WorkloadPhase::Pending
            }
            (None, None) => WorkloadPhase::Pending,
        }
    }

    fn destination(
        &self,
        key: &str,
        workload: &Workload,
        has_reservation: bool,
    ) -> Result<Destination, NotQueuedReason> {
        let conditions = workload.status.iter().flat_map(|it| &it.conditions);
        let mut finished = conditions.filter(|it| it.type_ == "Finished" && it.status == "True");
        if finished.next().is_some() {
            return Err(NotQueuedReason::Finished);
        }
        let is_admitted = has_reservation || self.workloads.assumed.contains(key);
        // A deactivated workload keeps its quota until it is evicted.
        if workload.spec.active == Some(false) && !is_admitted {
            return Err(NotQueuedReason::Inactive);
        }
        let cluster_queue = match (recorded_admission(workload), self.state.workload(key)) {
            (Some(admission), _) => admission.cluster_queue.clone(),
            // An assumed workload has its quota in the ClusterQueue of the cycle, even if its LocalQueue now
            // points to another.
            (None, Some(id)) if is_admitted => {
                let queue = self.state.workload_view(id).queue();
                let queue = queue.ok_or(NotQueuedReason::NoLocalQueue)?;
                self.state.node_view(queue).name().to_owned()
            }
            (None, _) => self.cluster_queue_for(workload)?,
        };
        if !is_admitted && self.objects.disallowed_priority_class(workload).is_some() {
            return Err(NotQueuedReason::PriorityClassNotAllowed);
        }
        let priority = match self.workload_priority(workload) {
            Some(priority) => priority,
            // The quota of an admitted workload counts, with or without a priority.
            None if is_admitted => 0,
            None => return Err(NotQueuedReason::NoPriorityClass),
        };
        let preemption_priority = match self.preemption_priority(workload) {
            Some(priority) => Some(priority),
            None if is_admitted || workload.spec.preemption_priority_class_name.is_none() => None,
            None => return Err(NotQueuedReason::NoPriorityClass),
        };
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        Ok(Destination {
            is_in_scope: self.objects.accepts_namespace(&cluster_queue, namespace),
            cluster_queue,
            priority,
            preemption_priority,
        })
    }

    fn cluster_queue_for(&self, workload: &Workload) -> Result<String, NotQueuedReason> {
        let key = local_queue_key(workload).ok_or(NotQueuedReason::NoLocalQueue)?;
        let local_queue = self.objects.local_queues.get(&key);
        let local_queue = local_queue.ok_or(NotQueuedReason::NoLocalQueue)?;
        // Only for workloads without quota: HoldAndDrain evicts admitted ones by their lifecycle.
        if local_queue.stop_policy.unwrap_or_default() != StopPolicy::None {
            return Err(NotQueuedReason::LocalQueueStopped);
        }
        // Not in the core's state: a tenant chooses the names of ClusterQueues in LocalQueues, and a node of the quota
        // tree stays.
        if !self.objects.has_cluster_queue(&local_queue.cluster_queue) {
            return Err(NotQueuedReason::NoClusterQueue);
        }
        Ok(local_queue.cluster_queue.clone())
    }

    /// The priority in the status; before it is set, the value of the PriorityClass.
    fn workload_priority(&self, workload: &Workload) -> Option<i32> {
        let status = workload.status.as_ref();
        let class = workload.spec.priority_class_name.as_deref();
        let priority = status.and_then(|it| it.priority);
        priority.or_else(|| self.objects.priority_for_class(class))
    }

    /// The preemption priority in the status; before it is set, the value of its PriorityClass. `None` without a class
    /// of its own, and if the class does not exist.
    fn preemption_priority(&self, workload: &Workload) -> Option<i32> {
        let status = workload.status.as_ref();
        let class = workload.spec.preemption_priority_class_name.as_deref();
        let priority = status.and_then(|it| it.preemption_priority);
        priority.or_else(|| self.objects.priority_for_class(Some(class?)))
    }
}

/// Whether only the room on nodes limits the workloads of a queue.
pub(crate) fn has_no_quota(spec: &ClusterQueueSpec) -> bool {
    spec.resource_groups.is_empty() && spec.places_on_nodes()
}

/// Since when a workload waits for quota: its creation, or its last eviction.
fn waiting_since_s(lifecycle: &LifecycleState) -> i64 {
    let evicted_at_s = lifecycle.evicted.as_ref().map(|it| it.at_s);
    evicted_at_s.map_or(lifecycle.created_at_s, |it| it.max(lifecycle.created_at_s))
}
