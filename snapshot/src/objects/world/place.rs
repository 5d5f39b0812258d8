//! Where a workload belongs, and how it gets there.

use super::{Knowledge, Objects};
use crate::labels::selects;
use crate::objects::error::{ObjectError, Problem, Subject};
use crate::objects::sums::part;
use crate::objects::workloads::{admission, pod_sets, reservation, says, standing, stop_policy};
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
pub enum Place {
    /// It waits in its queue.
    Waits,
    /// It must not be looked at before this second.
    Held(i64),
    /// It holds quota.
    Runs,
    /// It is not in the state.
    Outside(Outside),
}

/// Why a workload is not in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
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
struct Target {
    queue: String,
    priority: i32,
    is_in_scope: bool,
}

impl Objects {
    /// Brings the state up to date with a workload.
    pub(super) fn refresh(&mut self, key: &str) {
        let Some(known) = self.workloads.get(key) else {
            return;
        };
        let object = Arc::clone(&known.object);
        let place = self.update(key, &object).map_err(Box::new);
        if let Some(known) = self.workloads.get_mut(key) {
            known.place = place;
        }
    }

    /// Takes a workload out of the state.
    pub(super) fn leave(&mut self, key: &str) {
        self.held.remove(key);
        if let Some(id) = self.state.workload(key) {
            self.state.remove(id);
        }
    }

    fn update(&mut self, key: &str, workload: &Workload) -> Result<Place, ObjectError> {
        let mut held = reservation(workload, &mut self.state)?;
        if held.is_some() {
            self.assumed.remove(key);
        }
        let target = match self.target(key, workload, held.is_some()) {
            Ok(target) => target,
            Err(outside) => {
                self.leave(key);
                self.assumed.remove(key);
                return Ok(Place::Outside(outside));
            }
        };
        let queue = self.cluster_queues.get(&target.queue);
        let groups = queue.map(|it| it.spec.resource_groups.as_slice());
        let groups = groups.unwrap_or_default();
        let pod_sets = pod_sets(workload, &mut self.state, groups, &self.flavors)?;
        let policy = stop_policy(queue.and_then(|it| it.spec.stop_policy));
        let standing = standing(workload, policy, stop_policy(None));
        let amounts = held.iter().flat_map(|it| &it.usage);
        let amounts = part(amounts.map(|(of, amount)| (of.resource, *amount)));
        if !self.held.set(key, amounts) {
            let field = FieldPath::new("status.admission.podSetAssignments");
            let subject = Subject::new("Workload", &workload.metadata);
            return Err(subject.error(&field, Problem::TooLarge));
        }
        let spec = WorkloadSpec {
            name: key,
            uid: workload.metadata.uid.as_deref().unwrap_or_default(),
            queue: &target.queue,
            priority: target.priority,
            order_time: standing.order_time_ms(&self.settings),
            pod_sets,
            is_in_scope: target.is_in_scope,
            says: says(workload),
        };
        let id = match self.state.workload(key) {
            Some(id) => {
                self.state.change(id, spec);
                id
            }
            None => match &held {
                Some(held) => self.state.add_running(spec, held),
                None => self.state.add_pending(spec),
            },
        };
        if self.assumed.contains(key) {
            held = self.state.held_by(id);
        }
        if let Some(held) = held {
            self.run(id, &held);
            return Ok(Place::Runs);
        }
        if self.state.held_by(id).is_some() {
            self.state.release(id);
        }
        let put_off = self.put_off.get(key).copied();
        let put_off = put_off.filter(|until_s| *until_s > self.now_ms.div_euclid(1000));
        Ok(self.wait(id, standing.held_until_s(self.now_ms).max(put_off)))
    }

    /// It holds this quota. What the state knows already it is not told again.
    fn run(&mut self, id: WorkloadId, held: &Reservation) {
        let Some(before) = self.state.held_by(id) else {
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

    fn wait(&mut self, id: WorkloadId, until_s: Option<i64>) -> Place {
        match (self.state.held_until_s(id), until_s) {
            (before, Some(until_s)) => {
                if before != Some(until_s) {
                    self.state.hold(id, until_s);
                }
                Place::Held(until_s)
            }
            (Some(_), None) => {
                // The next cycle takes it in.
                self.state.hold(id, self.now_ms.div_euclid(1000));
                Place::Waits
            }
            (None, None) => Place::Waits,
        }
    }

    fn target(&self, key: &str, workload: &Workload, runs: bool) -> Result<Target, Outside> {
        let finished = workload.status.iter().flat_map(|it| &it.conditions);
        let mut finished = finished.filter(|it| it.type_ == "Finished" && it.status == "True");
        if finished.next().is_some() {
            return Err(Outside::Finished);
        }
        let runs = runs || self.assumed.contains(key);
        if workload.spec.active == Some(false) && !runs {
            return Err(Outside::Inactive);
        }
        let queue = match (admission(workload), self.state.workload(key)) {
            (Some(admission), _) => admission.cluster_queue.clone(),
            // It holds quota where the cycle found it some, wherever its LocalQueue leads now.
            (None, Some(id)) if runs => {
                let queue = self.state.queue_of(id).ok_or(Outside::NoLocalQueue)?;
                self.state.node_name(queue).to_owned()
            }
            (None, _) => self.way_in(workload)?,
        };
        let priority = match self.priority(workload) {
            Some(priority) => priority,
            // What it holds counts, whatever it is worth.
            None if runs => 0,
            None => return Err(Outside::NoPriorityClass),
        };
        let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
        Ok(Target {
            is_in_scope: self.takes(&queue, namespace),
            queue,
            priority,
        })
    }

    fn way_in(&self, workload: &Workload) -> Result<String, Outside> {
        let home = super::home(workload).ok_or(Outside::NoLocalQueue)?;
        let door = self.local_queues.get(&home).ok_or(Outside::NoLocalQueue)?;
        if door.stop_policy.unwrap_or_default() != StopPolicy::None {
            return Err(Outside::LocalQueueStopped);
        }
        Ok(door.cluster_queue.clone())
    }

    /// What the status says; before that is there, what the class says.
    fn priority(&self, workload: &Workload) -> Option<i32> {
        let status = workload.status.as_ref();
        if let Some(priority) = status.and_then(|it| it.priority) {
            return Some(priority);
        }
        self.class_value(workload.spec.priority_class_name.as_deref())
    }

    pub(super) fn class_value(&self, name: Option<&str>) -> Option<i32> {
        let Some(name) = name else {
            let mut classes = self.classes.values();
            let default = classes.find(|(_, is_default)| *is_default);
            return Some(default.map_or(0, |(value, _)| *value));
        };
        let known = self.classes.get(name).map(|(value, _)| *value);
        let system = SYSTEM_CLASSES.iter().find(|(class, _)| *class == name);
        known.or(system.map(|(_, value)| *value))
    }

    fn takes(&self, queue: &str, namespace: &str) -> bool {
        // One that is not there takes nobody anyway.
        let Some(queue) = self.cluster_queues.get(queue) else {
            return true;
        };
        let Some(selector) = &queue.selector else {
            return false;
        };
        match self.namespaces.get(namespace) {
            Some(labels) => selects(selector, labels),
            None if self.knowledge == Knowledge::Partial => true,
            None => selects(selector, &BTreeMap::new()),
        }
    }
}
