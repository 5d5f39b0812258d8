//! The nodes with their free resources, and the pods.

use super::host::{Host, HostSpec};
use super::inter_pod_index::InterPodIndex;
use super::labels::{Labels, SymbolTable};
use super::overlay::FreeResources;
use super::pod::{Pod, PodSpec, Shape};
use super::resource_vec::ResourceVec;
use super::used_ids::UsedIds;
use crate::amount::Amount;
use crate::ids::{HostId, Interner, PodId, ResourceId, ShapeId, SymbolId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The nodes and pods of a cluster. An event costs O(log n) and the pods of its node.
#[derive(Clone, Debug)]
pub struct Cluster {
    symbols: SymbolTable,
    resources: Interner,
    hosts: Vec<Host>,
    host_ids: BTreeMap<Arc<str>, HostId>,
    /// Ids to be used again.
    free_host_ids: BTreeSet<HostId>,
    /// The existing nodes, in the order in which they are tried.
    order: BTreeSet<(u32, Arc<str>, HostId)>,
    pods: Vec<Option<Pod>>,
    /// Ids of removed pods, to be reused.
    free_pod_ids: Vec<PodId>,
    pod_ids: BTreeMap<(SymbolId, Arc<str>), PodId>,
    shapes: Vec<Arc<Shape>>,
    shape_ids: BTreeMap<Arc<Shape>, ShapeId>,
    /// Ids to be used again.
    free_shape_ids: BTreeSet<ShapeId>,
    inter_pod: InterPodIndex,
    name_field: SymbolId,
    /// The shape of an unknown id.
    empty_shape: Shape,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Cluster {
    /// An empty cluster.
    #[must_use]
    pub fn new() -> Self {
        let mut symbols = SymbolTable::default();
        let name_field = symbols.intern("metadata.name");
        let mut resources = Interner::default();
        // The first id: `ResourceId::PODS`.
        resources.intern("pods");
        Self {
            symbols,
            resources,
            hosts: Vec::new(),
            host_ids: BTreeMap::new(),
            free_host_ids: BTreeSet::new(),
            order: BTreeSet::new(),
            pods: Vec::new(),
            free_pod_ids: Vec::new(),
            pod_ids: BTreeMap::new(),
            shapes: Vec::new(),
            shape_ids: BTreeMap::new(),
            free_shape_ids: BTreeSet::new(),
            inter_pod: InterPodIndex::default(),
            name_field,
            empty_shape: Shape::default(),
        }
    }

    /// Interns a string.
    pub fn symbol(&mut self, text: &str) -> SymbolId {
        self.symbols.intern(text)
    }

    /// The interned strings.
    #[must_use]
    pub const fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The id of a resource.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        ResourceId(self.resources.intern(name))
    }

    /// The id of a resource that has one already.
    #[must_use]
    pub fn known_resource(&self, name: &str) -> Option<ResourceId> {
        self.resources.get(name).map(ResourceId)
    }

    /// The name of a resource; `host port` for any host port.
    #[must_use]
    pub fn resource_name(&self, resource: ResourceId) -> &str {
        if resource.is_host_port() {
            return "host port";
        }
        self.resources.name(resource.0)
    }

    /// The id of a shape. Requests are sorted, duplicates added, zeros dropped, and one [`ResourceId::PODS`] is added.
    /// A host port is requested once.
    pub fn shape(&mut self, mut shape: Shape) -> ShapeId {
        let mut requests = ResourceVec::from_amounts(&shape.requests);
        requests.set(ResourceId::PODS, Amount::new(1));
        let mut ports: Vec<ResourceId> = shape.requests.iter().map(|it| it.0).collect();
        ports.retain(|it| it.is_host_port());
        ports.sort_unstable();
        ports.dedup();
        let positive = requests.iter().filter(|(_, amount)| *amount > Amount::ZERO);
        // The ids of ports are larger than all indexes.
        let ports = ports.into_iter().map(|it| (it, Amount::new(1)));
        shape.requests = positive.chain(ports).collect();
        // The order of tolerations has no meaning; equal shapes share an id.
        shape.tolerations.sort_unstable();
        shape.tolerations.dedup();
        if let Some(id) = self.shape_ids.get(&shape) {
            return *id;
        }
        let shape = Arc::new(shape);
        let id = match self.free_shape_ids.pop_first() {
            Some(id) => id,
            None => ShapeId::of(self.shapes.len()),
        };
        match self.shapes.get_mut(id.index()) {
            Some(slot) => *slot = Arc::clone(&shape),
            None => self.shapes.push(Arc::clone(&shape)),
        }
        self.shape_ids.insert(shape, id);
        id
    }

    /// The shape of an id.
    #[must_use]
    pub fn shape_of(&self, shape: ShapeId) -> &Shape {
        let shape = self.shapes.get(shape.index());
        shape.map_or(&self.empty_shape, |it| &**it)
    }

    /// Sets the labels of a namespace, for terms with a selector of namespaces. A namespace without labels need not be set.
    /// Returns whether they have changed.
    pub fn set_namespace(&mut self, name: &str, labels: Labels) -> bool {
        let name = self.symbols.intern(name);
        self.inter_pod.set_namespace(name, labels)
    }

    /// What pods say about the pods around them.
    pub(super) const fn inter_pod(&self) -> &InterPodIndex {
        &self.inter_pod
    }

    /// The id of a node, whether or not the node exists. A node that does not exist may have pods but accepts no new
    /// ones.
    pub fn host_id(&mut self, name: &str) -> HostId {
        if let Some(id) = self.host_ids.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let field = (self.name_field, self.symbols.intern(&name));
        let host = Host {
            fields: Labels::from_pairs([field]),
            ..Host::absent(Arc::clone(&name))
        };
        let id = match self.free_host_ids.pop_first() {
            Some(id) => id,
            None => HostId::of(self.hosts.len()),
        };
        match self.hosts.get_mut(id.index()) {
            Some(slot) => *slot = host,
            None => self.hosts.push(host),
        }
        self.host_ids.insert(name, id);
        id
    }

    /// The id of a node that has one already.
    #[must_use]
    pub fn known_host(&self, name: &str) -> Option<HostId> {
        self.host_ids.get(name).copied()
    }

    /// Adds or updates a node.
    pub fn set_host(&mut self, spec: HostSpec<'_>) -> HostId {
        let id = self.host_id(spec.name);
        let mut allocatable = ResourceVec::from_amounts(&spec.allocatable);
        let mut allocatable_resources = spec.allocatable.iter();
        // A node without a pod limit accepts any number of pods.
        if !allocatable_resources.any(|(resource, _)| *resource == ResourceId::PODS) {
            allocatable.set(ResourceId::PODS, Amount::UNLIMITED);
        }
        // The position is part of the key in `order`: remove the old key before it changes.
        self.remove_host(id);
        let Some(host) = self.hosts.get_mut(id.index()) else {
            return id;
        };
        let mut free = allocatable.clone();
        // Pods may be observed before their node, so count all of them again.
        for pod in &host.pods {
            let pod = self.pods.get(pod.index()).and_then(Option::as_ref);
            let shape = pod.and_then(|pod| self.shapes.get(pod.shape.index()));
            free.subtract(shape.map_or(&[], |it| &it.requests));
        }
        host.position = spec.position;
        host.is_present = true;
        host.allocatable = allocatable;
        host.free = free;
        host.labels = spec.labels;
        host.taints = spec.taints.into();
        host.is_unschedulable = spec.is_unschedulable;
        self.order
            .insert((host.position, Arc::clone(&host.name), id));
        id
    }

    /// Removes a node. Its pods stay until they are removed as well.
    pub fn remove_host(&mut self, id: HostId) {
        if let Some(host) = self.hosts.get_mut(id.index()) {
            let key = (host.position, Arc::clone(&host.name), id);
            self.order.remove(&key);
            host.is_present = false;
        }
    }

    /// A node, whether or not it exists.
    #[must_use]
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(id.index())
    }

    /// The name of a node.
    #[must_use]
    pub fn host_name(&self, id: HostId) -> &str {
        self.host(id).map_or("", Host::name)
    }

    /// The existing nodes, by position and name.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.order.iter().map(|(_, _, id)| *id)
    }

    /// The number of resource ids.
    #[must_use]
    pub fn resources_len(&self) -> usize {
        self.resources.len()
    }

    /// The number of node ids.
    #[must_use]
    pub fn hosts_len(&self) -> usize {
        self.hosts.len()
    }

    /// The id of an existing pod.
    #[must_use]
    pub fn pod_id(&self, namespace: &str, name: &str) -> Option<PodId> {
        let namespace = self.symbols.lookup(namespace)?;
        self.pod_ids.get(&(namespace, name.into())).copied()
    }

    /// Adds or updates a pod. Its id stays the same until it is removed.
    pub fn set_pod(&mut self, spec: PodSpec<'_>) -> PodId {
        let namespace = self.symbols.intern(spec.namespace);
        let name: Arc<str> = spec.name.into();
        let key = (namespace, Arc::clone(&name));
        let id = match self.pod_ids.get(&key) {
            Some(id) => *id,
            None => match self.free_pod_ids.pop() {
                Some(id) => id,
                None => PodId::of(self.pods.len()),
            },
        };
        self.pod_ids.insert(key, id);
        if self.pods.len() <= id.index() {
            self.pods.push(None);
        }
        // An update may change the node or the requests: release the old ones first.
        self.unbind(id);
        if let Some(slot) = self.pods.get_mut(id.index()) {
            *slot = Some(Pod {
                namespace,
                name,
                host: spec.host,
                shape: spec.shape,
                labels: spec.labels,
                priority: spec.priority,
                preemption: spec.preemption,
                started_at_ns: spec.started_at_ns,
                is_terminating: spec.is_terminating,
            });
        }
        self.bind(id);
        id
    }

    /// Removes a pod. Its id may be reused.
    pub fn remove_pod(&mut self, id: PodId) {
        self.unbind(id);
        if let Some(pod) = self.pods.get_mut(id.index()).and_then(Option::take) {
            self.pod_ids.remove(&(pod.namespace, pod.name));
            self.free_pod_ids.push(id);
        }
    }

    /// A pod; `None` if it does not exist.
    #[must_use]
    pub fn pod(&self, id: PodId) -> Option<&Pod> {
        self.pods.get(id.index()).and_then(Option::as_ref)
    }

    /// The pods, by id.
    pub fn pods(&self) -> impl Iterator<Item = (PodId, &Pod)> {
        let all = self.pods.iter().enumerate();
        all.filter_map(|(at, pod)| Some((PodId::of(at), pod.as_ref()?)))
    }

    /// The requests of a pod; empty if it does not exist.
    #[must_use]
    pub fn requests(&self, pod: PodId) -> &[(ResourceId, Amount)] {
        let shape = self.pod(pod).map(|pod| self.shape_of(pod.shape));
        shape.map_or(&[], |it| &it.requests)
    }

    /// How many interned strings, shapes and nodes have an id.
    #[must_use]
    pub fn ids_len(&self) -> usize {
        let names = self.symbols.len().saturating_add(self.host_ids.len());
        names.saturating_add(self.shape_ids.len())
    }

    /// Releases the ids of strings, shapes and nodes that are not in use; new ones get these ids. A node is in use if it
    /// exists or has pods, a shape if a pod has it, and all that `used` marks. So memory follows the objects that exist,
    /// not those that have ever existed. Costs all ids and pods.
    pub fn release_unused(&mut self, mut used: UsedIds) {
        for pod in self.pods.iter().flatten() {
            used.mark_symbol(pod.namespace);
            used.mark_labels(&pod.labels);
            used.mark_shape(pod.shape);
        }
        let (hosts, free_ids) = (&mut self.hosts, &mut self.free_host_ids);
        self.host_ids.retain(|_, id| {
            let Some(host) = hosts.get_mut(id.index()) else {
                return false;
            };
            if host.is_present || !host.pods.is_empty() || used.has_host(*id) {
                used.mark_host_symbols(host);
                return true;
            }
            *host = Host::absent("".into());
            free_ids.insert(*id);
            false
        });
        let (shapes, free_ids) = (&mut self.shapes, &mut self.free_shape_ids);
        self.shape_ids.retain(|shape, id| {
            if used.has_shape(*id) {
                used.mark_shape_symbols(shape);
                return true;
            }
            if let Some(slot) = shapes.get_mut(id.index()) {
                *slot = Arc::default();
            }
            free_ids.insert(*id);
            false
        });
        self.inter_pod.mark_symbols(&mut used);
        used.mark_symbol(self.name_field);
        self.symbols.retain(|id| used.has_symbol(id));
    }

    fn bind(&mut self, id: PodId) {
        self.update_host(id, |host, index, shape_id, shape| {
            if !shape.inter_pod.anti_affinity.is_empty() {
                index.add(shape_id);
            }
            host.take(&shape.requests);
            if let Err(at) = host.pods.binary_search(&id) {
                host.pods.insert(at, id);
            }
        });
    }

    fn unbind(&mut self, id: PodId) {
        self.update_host(id, |host, index, shape_id, shape| {
            if !shape.inter_pod.anti_affinity.is_empty() {
                index.remove(shape_id);
            }
            host.give_back(&shape.requests);
            host.pods.retain(|it| *it != id);
        });
    }

    fn update_host(
        &mut self,
        id: PodId,
        change: impl FnOnce(&mut Host, &mut InterPodIndex, ShapeId, &Shape),
    ) {
        let pod = self.pods.get(id.index()).and_then(Option::as_ref);
        let Some((host, shape)) = pod.and_then(|pod| Some((pod.host?, pod.shape))) else {
            return;
        };
        if let Some(host) = self.hosts.get_mut(host.index()) {
            let known = self.shapes.get(shape.index());
            let known = known.map_or(&self.empty_shape, |it| &**it);
            change(host, &mut self.inter_pod, shape, known);
        }
    }
}

impl FreeResources for Cluster {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let host = self.host(host);
        host.map_or(Amount::ZERO, |it| it.free_amount(resource))
    }

    fn fill_free(&self, host: HostId, out: &mut [Amount]) {
        let free = self.host(host).map_or(&[][..], |it| it.free.amounts());
        for (slot, amount) in out.iter_mut().zip(free) {
            *slot = *amount;
        }
    }
}
