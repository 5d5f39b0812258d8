//! Where a workload belongs, and how it gets there.

use super::{ClusterState, Completeness};
use crate::error::{ObjectError, ObjectProblem, Subject};
use crate::label_selector::matches;
use crate::overflow_guard::object_totals;
use crate::workloads::{
    lifecycle_state, pod_sets, preemption_labels, recorded_admission, reservation, stop_policy,
};
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue::StopPolicy;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_preemption::{Reservation, WorkloadId, WorkloadSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Where a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadPhase {
    /// It waits in its queue.
    Pending,
    /// It must not be looked at before this second.
    OnHold(i64),
    /// It holds quota.
    Admitted,
    /// It is not in the state.
    NotQueued(NotQueuedReason),
}

/// Why a workload is not in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotQueuedReason {
    /// It has finished.
    Finished,
    /// It is not active.
    Inactive,
    /// It names no LocalQueue, or one that there is not.
    NoLocalQueue,
    /// Its LocalQueue admits nothing.
    LocalQueueStopped,
    /// It names a PriorityClass that there is not.
    NoPriorityClass,
}

/// What else the state must know of a workload.
struct Destination {
    queue: String,
    priority: i32,
    is_in_scope: bool,
}

impl ClusterState {
    /// Brings the state up to date with a workload.
    pub(super) fn sync_workload(&mut self, key: &str) {
        let Some(known) = self.workloads.get(key) else {
            return;
        };
        let object = Arc::clone(&known.object);
        let place = self.sync_state(key, &object).map_err(Box::new);
        if let Some(known) = self.workloads.get_mut(key) {
            known.phase = place;
        }
    }

    /// Takes a workload out of the state.
    pub(super) fn remove_from_state(&mut self, key: &str) {
        self.reserved_totals.remove(key);
        if let Some(id) = self.state.workload(key) {
            self.state.remove(id);
        }
    }

    fn sync_state(&mut self, key: &str, workload: &Workload) -> Result<WorkloadPhase, ObjectError> {
        let mut held = reservation(workload, &mut self.state)?;
        if held.is_some() {
            self.assumed.remove(key);
        }
        let target = match self.destination(key, workload, held.is_some()) {
            Ok(target) => target,
            Err(outside) => {
                self.remove_from_state(key);
                self.assumed.remove(key);
                return Ok(WorkloadPhase::NotQueued(outside));
            }
        };
        let queue = self.cluster_queues.get(&target.queue);
        let groups = queue.map(|it| it.spec.resource_groups.as_slice());
        let groups = groups.unwrap_or_default();
        let pod_sets = pod_sets(workload, &mut self.state, groups, &self.flavors)?;
        let policy = stop_policy(queue.and_then(|it| it.spec.stop_policy));
        let standing = lifecycle_state(workload, policy, stop_policy(None));
        let amounts = held.iter().flat_map(|it| &it.usage);
        let amounts = object_totals(amounts.map(|(of, amount)| (of.resource, *amount)));
        if !self.reserved_totals.set(key, amounts) {
            let field = FieldPath::new("status.admission.podSetAssignments");
            let subject = Subject::new("Workload", &workload.metadata);
            return Err(subject.error(&field, ObjectProblem::TooLarge));
        }
        let spec = WorkloadSpec {
            name: key,
            uid: workload.metadata.uid.as_deref().unwrap_or_default(),
            queue: &target.queue,
            priority: target.priority,
            order_time: standing.order_time_ms(&self.settings),
            pod_sets,
            is_in_scope: target.is_in_scope,
            preemption_labels: preemption_labels(workload),
        };
        let id = match self.state.workload(key) {
            Some(id) => {
                self.state.update_workload(id, spec);
                id
            }
            None => match &held {
                Some(held) => self.state.add_admitted(spec, held),
                None => self.state.add_pending(spec),
            },
        };
        if self.assumed.contains(key) {
            held = self.state.workload_view(id).reservation();
        }
        if let Some(held) = held {
            self.sync_reservation(id, &held);
            return Ok(WorkloadPhase::Admitted);
        }
        if self.state.workload_view(id).reservation().is_some() {
            self.state.release(id);
        }
        let put_off = self.held_until.get(key).copied();
        let put_off = put_off.filter(|until_s| *until_s > self.now_ms.div_euclid(1000));
        Ok(self.sync_pending(id, standing.hold_until_s(self.now_ms).max(put_off)))
    }

    /// It holds this quota. What the state knows already it is not told again.
    fn sync_reservation(&mut self, id: WorkloadId, held: &Reservation) {
        let Some(before) = self.state.workload_view(id).reservation() else {
            self.state.reserve(id, held);
            return;
        };
        if before == *held {
            return;
        }
        if before.usage == held.usage
            && before.reserved_at_s == held.reserved_at_s
            && held.is_evicted
        {
            self.state.mark_evicted(id);
        } else {
            self.state.reserve(id, held);
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
                // The next cycle takes it in.
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
        runs: bool,
    ) -> Result<Destination, NotQueuedReason> {
        let finished = workload.status.iter().flat_map(|it| &it.conditions);
        let mut finished = finished.filter(|it| it.type_ == "Finished" && it.status == "True");
        if finished.next().is_some() {
            return Err(NotQueuedReason::Finished);
        }
        let runs = runs || self.assumed.contains(key);
        if workload.spec.active == Some(false) && !runs {
            return Err(NotQueuedReason::Inactive);
        }
        let queue = match (recorded_admission(workload), self.state.workload(key)) {
            (Some(admission), _) => admission.cluster_queue.clone(),
            // It holds quota where the cycle found it some, wherever its LocalQueue leads now.
            (None, Some(id)) if runs => {
                let queue = self
                    .state
                    .workload_view(id)
                    .queue()
                    .ok_or(NotQueuedReason::NoLocalQueue)?;
                self.state.node_view(queue).name().to_owned()
            }
            (None, _) => self.cluster_queue_for(workload)?,
        };
        let priority = match self.workload_priority(workload) {
            Some(priority) => priority,
            // What it holds counts, whatever it is worth.
            None if runs => 0,
            None => return Err(NotQueuedReason::NoPriorityClass),
        };
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        Ok(Destination {
            is_in_scope: self.accepts_namespace(&queue, namespace),
            queue,
            priority,
        })
    }

    fn cluster_queue_for(&self, workload: &Workload) -> Result<String, NotQueuedReason> {
        let home = super::local_queue_key(workload).ok_or(NotQueuedReason::NoLocalQueue)?;
        let door = self
            .local_queues
            .get(&home)
            .ok_or(NotQueuedReason::NoLocalQueue)?;
        if door.stop_policy.unwrap_or_default() != StopPolicy::None {
            return Err(NotQueuedReason::LocalQueueStopped);
        }
        Ok(door.cluster_queue.clone())
    }

    /// What the status says; before that is there, what the class says.
    fn workload_priority(&self, workload: &Workload) -> Option<i32> {
        let status = workload.status.as_ref();
        if let Some(priority) = status.and_then(|it| it.priority) {
            return Some(priority);
        }
        self.priority_class_value(workload.spec.priority_class_name.as_deref())
    }

    pub(super) fn priority_class_value(&self, name: Option<&str>) -> Option<i32> {
        let Some(name) = name else {
            let mut classes = self.priority_classes.values();
            let default = classes.find(|(_, is_default)| *is_default);
            return Some(default.map_or(0, |(value, _)| *value));
        };
        let known = self.priority_classes.get(name).map(|(value, _)| *value);
        let system = SYSTEM_CLASSES.iter().find(|(class, _)| *class == name);
        known.or(system.map(|(_, value)| *value))
    }

    fn accepts_namespace(&self, queue: &str, namespace: &str) -> bool {
        // One that is not there takes nobody anyway.
        let Some(queue) = self.cluster_queues.get(queue) else {
            return true;
        };
        let Some(selector) = &queue.selector else {
            return false;
        };
        match self.namespaces.get(namespace) {
            Some(labels) => matches(selector, labels),
            None if self.completeness == Completeness::Partial => true,
            None => matches(selector, &BTreeMap::new()),
        }
    }
}
