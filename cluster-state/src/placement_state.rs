//! Nodes, bound pods, disruption budgets and workloads as the state of the core's placement.
//!
//! [`PlacementState`] applies one watch event at a time, and plans workloads: on which nodes their pods run, and which
//! units are preempted for them.
//!
//! - A pod that is bound to a node and has not ended takes room. All other pods are ignored.
//! - The pods of a workload are one unit, or a unit each (its disruption mode). A pod of no workload is a unit with its
//!   own priority.
//! - Pods with a system priority, mirror pods and the pods of a `DaemonSet` are never victims.
//! - The pods of an evicted workload, and terminating pods, are expected to release their room: a plan that needs only
//!   this room waits for it, and preempts no unit.
//! - Reservations take the room of an admitted workload until its pods are bound.
//!
//! Limits of the model: volumes and devices are not modelled, nor are the scores of kube-scheduler. A pod that is resized in place counts with the requests of its spec.
//!
//! Memory follows the objects that exist: the ids of strings, shapes, nodes and groups that nothing uses any more are
//! released when there are as many of them as of others. Resources have ids only if a node has or had them.

mod changed_nodes;
mod departures;
mod known_resources;
mod node_report;
mod node_values;
mod obstacles;
mod plan;
mod pod_plan;
mod pod_values;
mod request;
mod reserve;
mod resource_names;
mod surrounding_pods;
mod unit_store;
mod unused_ids;
mod workload_entry;

pub use node_report::NodeReport;
pub use request::{
    PlacementDecision, PlacementOutcome, PlacementPodSet, PlacementRequest, Victim, VictimRef,
    WorkloadUnit,
};

use crate::core_labels;
use crate::error::object_key as key_of_object;
use changed_nodes::ChangedNodes;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use lockkeeper_api::workload::NominatedPlacement;
use lockkeeper_preemption::gang::set_namespace;
use lockkeeper_preemption::{BudgetId, HostId};
use node_values::{BudgetValues, NodeValues};
use pod_values::PodValues;
use std::collections::{BTreeMap, BTreeSet};
use unit_store::UnitStore;
use workload_entry::{object_key, split_key};

/// Nodes, bound pods, disruption budgets and workloads as the state of the core's placement.
#[derive(Clone, Debug)]
pub struct PlacementState {
    store: UnitStore,
    /// By name.
    nodes: BTreeMap<String, (NodeValues, HostId)>,
    /// By `namespace/name`.
    budgets: BTreeMap<String, (BudgetValues, BudgetId)>,
}

impl Default for PlacementState {
    fn default() -> Self {
        Self::new()
    }
}

impl PlacementState {
    /// An empty state, with the algorithm of KEP-5710.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: UnitStore::new(),
            nodes: BTreeMap::new(),
            budgets: BTreeMap::new(),
        }
    }

    /// Adds or updates a node. Costs the pods of the node; a heartbeat changes nothing.
    pub fn set_node(&mut self, node: &Node) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let resources = self.store.cluster.cluster().resources_len();
        let values = NodeValues::from_node(&mut self.store.cluster, node);
        if self.store.cluster.cluster().resources_len() > resources {
            known_resources::count_known_resources(&mut self.store);
        }
        if self.nodes.get(name).is_some_and(|it| it.0 == values) {
            return;
        }
        let host = self.store.cluster.set_host(values.spec(name));
        self.nodes.insert(name.to_owned(), (values, host));
        self.store.changed.add(host);
        self.store.grow_revision();
        unused_ids::release_if_many(&mut self.store);
    }

    /// Removes a node. Its pods stay until they are removed as well.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((_, host)) = self.nodes.remove(name) {
            self.store.cluster.remove_host(host);
            self.store.changed.add(host);
            self.store.grow_revision();
        }
    }

    /// Adds or updates a pod that is bound to a node and has not ended; removes every other pod. The first event of a
    /// bound pod replaces a reservation of its workload. Costs the pods of the node, and the reservations of the
    /// workload.
    pub fn set_pod(&mut self, pod: &Pod) {
        let metadata = &pod.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let key = object_key(namespace, metadata.name.as_deref().unwrap_or_default());
        match PodValues::from_pod(&mut self.store.cluster, pod) {
            Some(values) => self.store.set_pod(&key, values),
            None => self.store.remove_pod(&key),
        }
        unused_ids::release_if_many(&mut self.store);
    }

    /// Removes a pod. Costs the pods of its node.
    pub fn remove_pod(&mut self, namespace: &str, name: &str) {
        self.store.remove_pod(&object_key(namespace, name));
    }

    /// Sets the labels of a namespace: a required term of pod affinity or anti-affinity can select namespaces.
    pub fn set_namespace(&mut self, name: &str, labels: &BTreeMap<String, String>) {
        let labels = core_labels::labels(&mut self.store.cluster, labels);
        if set_namespace(&mut self.store.cluster, name, labels) {
            self.store.changed.add_all();
            self.store.grow_revision();
        }
        unused_ids::release_if_many(&mut self.store);
    }

    /// Adds or updates a disruption budget. As in kube-scheduler, a budget without a selector, or with an empty or an
    /// invalid one, protects no pod. Costs all pods.
    pub fn set_budget(&mut self, budget: &PodDisruptionBudget) {
        let key = key_of_object(&budget.metadata);
        let values = BudgetValues::from_budget(&mut self.store.cluster, budget);
        if self.budgets.get(&key).is_some_and(|it| it.0 == values) {
            return;
        }
        let (namespace, name) = split_key(&key);
        let id = values.apply(&mut self.store.cluster, namespace, name);
        self.budgets.insert(key, (values, id));
        self.store.changed.add_all();
        self.store.grow_revision();
        unused_ids::release_if_many(&mut self.store);
    }

    /// Removes a disruption budget. Costs all pods.
    pub fn remove_budget(&mut self, namespace: &str, name: &str) {
        if let Some((_, id)) = self.budgets.remove(&object_key(namespace, name)) {
            self.store.cluster.remove_budget(id);
            self.store.changed.add_all();
            self.store.grow_revision();
        }
    }

    /// Adds or updates a workload. The pods of its namespace belong to it whose uid, whose controller's uid, or whose
    /// label `jobset.sigs.k8s.io/jobset-uid` is one of the owner uids, whether they arrive before or after. Costs the
    /// pods of the workload; an unchanged workload costs nothing.
    pub fn set_workload(&mut self, workload: &WorkloadUnit<'_>) {
        self.store.set_workload(workload);
        unused_ids::release_if_many(&mut self.store);
    }

    /// Removes a workload and its reservations. Each of its pods becomes a unit by itself. Costs the pods of the
    /// workload.
    pub fn remove_workload(&mut self, namespace: &str, name: &str) {
        self.store.remove_workload(&object_key(namespace, name));
    }

    /// Decides on which nodes the pods of a workload run, and which units are preempted for it. The same state returns
    /// the same decision. Changes no visible state: the room of the workload's own reservations counts as free.
    ///
    /// A nominated placement that is still valid forbids new preemptions; a placement without victims replaces it.
    ///
    /// Costs the pods of the request, the nodes times the logarithm of the priorities, the units that a budget
    /// protects, and the units on the nodes of the placement; if the pods do not fit, all pods once more.
    pub fn plan(&mut self, request: &PlacementRequest<'_>) -> PlacementDecision {
        let decision = plan::plan(&mut self.store, request);
        unused_ids::release_if_many(&mut self.store);
        decision
    }

    /// What each node has for one pod of each pod set of a request, for answers to users. Changes no visible state. Costs the
    /// pod sets times the nodes and their pods.
    pub fn node_reports(&mut self, request: &PlacementRequest<'_>) -> Vec<NodeReport> {
        node_report::node_reports(&mut self.store, request)
    }

    /// Decides as if these workloads, by namespace and name, were evicted already: whether a workload for whose quota they
    /// would be preempted fits on nodes afterwards. Changes no visible state. Costs a plan, and the pods of these
    /// workloads.
    pub fn plan_after_eviction<'a>(
        &mut self,
        request: &PlacementRequest<'_>,
        evicted: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> PlacementDecision {
        departures::plan_after_eviction(&mut self.store, request, evicted)
    }

    /// Records that a pod was evicted, and that another component deletes it: from now on it is expected to release its
    /// room, like a terminating pod. Ignores other units.
    pub fn set_pod_evicted(&mut self, pod: &VictimRef<'_>) {
        departures::set_pod_evicted(&mut self.store, pod);
    }

    /// Stops to expect that the pods on the nodes of a placement release their room: those that were evicted or are
    /// terminating count like pods that are never victims, until they are gone. Returns their keys, `namespace/name`.
    /// Costs all pods.
    pub fn stop_waiting_for(&mut self, placement: &NominatedPlacement) -> Vec<String> {
        let nodes = placement.pod_sets.iter().flat_map(|it| it.nodes.keys());
        let hosts = nodes.filter_map(|name| Some(self.nodes.get(name)?.1));
        let hosts: BTreeSet<HostId> = hosts.collect();
        departures::stop_waiting_for(&mut self.store, &hosts)
    }

    /// Takes the room of an admitted workload's pods on their nodes, until the pods themselves are bound: each bound
    /// pod of the workload, also those that are bound already, replaces one reservation. That is one on the same node,
    /// else one with the same requests, else any. Replaces an earlier reservation of the workload. A request with
    /// an invalid template reserves nothing. Costs the pods of the workload, squared while many of them are bound.
    pub fn reserve(&mut self, request: &PlacementRequest<'_>, placement: &NominatedPlacement) {
        reserve::reserve(&mut self.store, request, placement);
    }

    /// Releases the reservations of a workload. Costs the pods of the workload.
    pub fn release(&mut self, namespace: &str, name: &str) {
        let removed = self.store.take_reservations(&object_key(namespace, name));
        if !removed.is_empty() {
            self.store.grow_revision();
        }
    }

    /// Whether a workload has reservations that no bound pod has replaced.
    #[must_use]
    pub fn has_reservation(&self, namespace: &str, name: &str) -> bool {
        let workload = self.store.workloads.get(&object_key(namespace, name));
        workload.is_some_and(|it| !it.reservations.is_empty())
    }

    /// A number that grows with every change that may make room: a pod that leaves, moves or terminates, a node or a
    /// budget that changes, a workload that is evicted or changes its priority, a released reservation.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.store.revision
    }

    /// Whether a node of a placement has changed since [`Self::forget_changes`]: its pods, its reservations, the workloads of its
    /// pods, the node itself, or any disruption budget. Costs the nodes of the placement.
    #[must_use]
    pub fn has_changed(&self, placement: &NominatedPlacement) -> bool {
        let nodes = placement.pod_sets.iter().flat_map(|it| it.nodes.keys());
        // A node without an id exists no more.
        let hosts = nodes.map(|name| self.store.cluster.cluster().known_host(name));
        let hosts: Option<Vec<HostId>> = hosts.collect();
        hosts.is_none_or(|it| self.store.changed.has(it.into_iter()))
    }

    /// All nodes count as unchanged from now on.
    pub fn forget_changes(&mut self) {
        self.store.changed = ChangedNodes::default();
    }

    /// The workload of a bound pod, `namespace/name`, if they differ in their scheduling priority.
    #[must_use]
    pub fn workload_of_other_priority(&self, namespace: &str, name: &str) -> Option<&str> {
        let pod = self.store.pods.get(&object_key(namespace, name))?;
        let key = pod.workload.as_deref()?;
        let workload = self.store.workloads.get(key)?;
        (pod.values.priority != workload.properties.priority).then_some(key)
    }

    /// The first bound pod of a workload, by name, with another scheduling priority than the workload, and that priority.
    /// Costs the pods of the workload.
    #[must_use]
    pub fn pod_of_other_priority(&self, namespace: &str, name: &str) -> Option<(&str, i32)> {
        let workload = self.store.workloads.get(&object_key(namespace, name))?;
        workload.pods.iter().find_map(|key| {
            let priority = self.store.pods.get(key)?.values.priority;
            (priority != workload.properties.priority).then_some((split_key(key).1, priority))
        })
    }

    /// Whether a unit still has pods on nodes, running or terminating.
    #[must_use]
    pub fn has_pods(&self, victim: &VictimRef<'_>) -> bool {
        match victim {
            VictimRef::Workload { namespace, name } => {
                let workload = self.store.workloads.get(&object_key(namespace, name));
                workload.is_some_and(|it| !it.pods.is_empty())
            }
            VictimRef::Pod {
                namespace,
                name,
                uid,
            } => {
                let pod = self.store.pods.get(&object_key(namespace, name));
                pod.is_some_and(|it| it.values.uid == *uid)
            }
        }
    }
}
