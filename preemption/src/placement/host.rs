//! Hosts: the Kubernetes Nodes of a cluster.

use super::labels::Labels;
use super::resource_vec::ResourceVec;
use crate::amount::Amount;
use crate::ids::{PodId, ResourceId, SymbolId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The input for a node.
#[derive(Clone, Debug)]
pub struct HostSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its position in the order in which nodes are tried; equal positions are ordered by name.
    pub position: u32,
    /// Its allocatable resources. A missing resource is zero; without [`ResourceId::PODS`] the number of pods is
    /// unlimited.
    pub allocatable: Vec<(ResourceId, Amount)>,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned (`spec.unschedulable`).
    pub is_unschedulable: bool,
}

/// A taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: SymbolId,
    /// Its value; the empty string without one.
    pub value: SymbolId,
    /// Its effect.
    pub effect: TaintEffect,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    NoSchedule,
    /// The node is avoided, but not excluded.
    PreferNoSchedule,
    /// They are not scheduled to the node, and running pods are evicted.
    NoExecute,
}

/// A node with its pods.
#[derive(Clone, Debug)]
pub struct Host {
    pub(super) name: Arc<str>,
    pub(super) position: u32,
    /// False for a node that only pods refer to, and for a removed node.
    pub(super) is_present: bool,
    pub(super) allocatable: ResourceVec,
    /// Allocatable less the requests of its pods; negative if overcommitted.
    pub(super) free: ResourceVec,
    pub(super) labels: Labels,
    /// `metadata.name`, for `matchFields`.
    pub(super) fields: Labels,
    pub(super) taints: Box<[Taint]>,
    pub(super) is_unschedulable: bool,
    /// Sorted.
    pub(super) pods: Vec<PodId>,
    /// How many of its pods use each host port.
    pub(super) ports_in_use: BTreeMap<ResourceId, Amount>,
}

impl Host {
    /// A node that does not exist, without pods.
    pub(super) fn absent(name: Arc<str>) -> Self {
        Self {
            name,
            position: 0,
            is_present: false,
            allocatable: ResourceVec::new(),
            free: ResourceVec::new(),
            labels: Labels::default(),
            fields: Labels::default(),
            taints: Box::default(),
            is_unschedulable: false,
            pods: Vec::new(),
            ports_in_use: BTreeMap::new(),
        }
    }

    /// Takes the room of a pod.
    pub(super) fn take(&mut self, requests: &[(ResourceId, Amount)]) {
        self.free.subtract(requests);
        for (port, amount) in requests.iter().filter(|it| it.0.has_port_bit()) {
            let used = self.ports_in_use.entry(*port).or_default();
            *used = used.plus(*amount);
        }
    }

    /// Gives the room of a pod back.
    pub(super) fn give_back(&mut self, requests: &[(ResourceId, Amount)]) {
        self.free.add(requests);
        for (port, amount) in requests.iter().filter(|it| it.0.has_port_bit()) {
            let used = self.ports_in_use.entry(*port).or_default();
            *used = used.minus(*amount);
            if *used <= Amount::ZERO {
                self.ports_in_use.remove(port);
            }
        }
    }

    /// How much of a resource is free; negative if overcommitted. Of a host port, a node has one.
    #[must_use]
    pub fn free_amount(&self, resource: ResourceId) -> Amount {
        if resource.has_port_bit() {
            return self.free_port(resource);
        }
        self.free.get(resource)
    }

    #[cold]
    fn free_port(&self, port: ResourceId) -> Amount {
        let used = self.ports_in_use.get(&port).copied();
        Amount::new(1).minus(used.unwrap_or_default())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its labels.
    #[must_use]
    pub const fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Its allocatable resources.
    #[must_use]
    pub const fn allocatable(&self) -> &ResourceVec {
        &self.allocatable
    }

    /// Allocatable less the requests of its pods; negative if overcommitted. Without host ports.
    #[must_use]
    pub const fn free(&self) -> &ResourceVec {
        &self.free
    }

    /// The pods on it, by id.
    #[must_use]
    pub fn pods(&self) -> &[PodId] {
        &self.pods
    }
}
