//! The cluster with its groups, disruption budgets and units, updated by events.

use super::disruption_budgets::DisruptionBudgets;
use super::group::Groups;
use super::member::Member;
use super::spec::{
    BudgetSpec, GangOptions, GroupKey, GroupSpec, MemberSpec, SchedulerCompatibility,
};
use super::unit_table::UnitTable;
use super::workloads::WorkloadView;
use crate::ids::{BudgetId, GroupId, HostId, PodId, ResourceId, ShapeId, SymbolId, UnitId};
use crate::placement::{Cluster, HostSpec, Pod, Shape};
use std::collections::BTreeSet;

/// A cluster with its groups, disruption budgets and preemption units. A pod event costs the pods of the node and a
/// logarithm of all pods, a group event the pods of the group, a budget event all pods.
#[derive(Clone, Debug)]
pub struct GangCluster {
    pub(super) options: GangOptions,
    pub(super) cluster: Cluster,
    pub(super) groups: Groups,
    pub(super) budgets: DisruptionBudgets,
    /// By pod id.
    pub(super) members: Vec<Member>,
    pub(super) units: UnitTable,
    /// Pending pods that are nominated to a node.
    pub(super) nominated: BTreeSet<PodId>,
}

impl GangCluster {
    /// An empty cluster.
    #[must_use]
    pub fn new(options: GangOptions) -> Self {
        let gates = options.gates;
        let is_lockkeeper = options.compatibility == SchedulerCompatibility::Lockkeeper;
        let mut groups = Groups::default();
        // Feature gates apply only to kube-scheduler's algorithm.
        groups.has_parents = is_lockkeeper || gates.composite_pod_group;
        Self {
            options,
            cluster: Cluster::new(),
            groups,
            budgets: DisruptionBudgets::default(),
            members: Vec::new(),
            units: UnitTable::default(),
            nominated: BTreeSet::new(),
        }
    }

    /// The options of every decision.
    #[must_use]
    pub const fn options(&self) -> &GangOptions {
        &self.options
    }

    /// The nodes and pods.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The units of the running pods.
    #[must_use]
    pub const fn units(&self) -> &UnitTable {
        &self.units
    }

    /// Priorities and policies of pods and groups.
    #[must_use]
    pub fn workloads(&self) -> WorkloadView<'_> {
        WorkloadView {
            options: &self.options,
            cluster: &self.cluster,
            groups: &self.groups,
            members: &self.members,
        }
    }

    /// Interns a string. See [`Cluster::symbol`].
    pub fn symbol(&mut self, text: &str) -> SymbolId {
        self.cluster.symbol(text)
    }

    /// The id of a resource. See [`Cluster::resource`].
    pub fn resource(&mut self, name: &str) -> ResourceId {
        self.cluster.resource(name)
    }

    /// The id of a shape. See [`Cluster::shape`].
    pub fn shape(&mut self, shape: Shape) -> ShapeId {
        self.cluster.shape(shape)
    }

    /// The id of a node, whether or not the node exists yet. See [`Cluster::host_id`].
    pub fn host_id(&mut self, name: &str) -> HostId {
        self.cluster.host_id(name)
    }

    /// Adds or updates a node.
    pub fn set_host(&mut self, spec: HostSpec<'_>) -> HostId {
        self.cluster.set_host(spec)
    }

    /// Removes a node.
    pub fn remove_host(&mut self, id: HostId) {
        self.cluster.remove_host(id);
    }

    /// The id of a group, whether or not the group exists yet.
    pub fn group_id(&mut self, key: GroupKey<'_>) -> GroupId {
        self.groups.intern(key)
    }

    /// Adds or updates a group.
    pub fn set_group(&mut self, spec: &GroupSpec<'_>) -> GroupId {
        let id = self.groups.intern(spec.key);
        self.with_pods_below(id, |it| it.groups.set(id, spec));
        id
    }

    /// Removes a group. Its pods stay.
    pub fn remove_group(&mut self, id: GroupId) {
        self.with_pods_below(id, |it| it.groups.remove(id));
    }

    /// Adds or updates a disruption budget. If several budgets protect a pod, the one with the lowest id is charged
    /// first: the one added first, unless [`release_unused`](super::release_unused) has released ids.
    pub fn set_budget(&mut self, spec: BudgetSpec<'_>) -> BudgetId {
        let namespace = self.cluster.symbol(spec.namespace);
        let id = self.budgets.set(namespace, spec);
        self.refresh_budgets();
        id
    }

    /// Removes a disruption budget.
    pub fn remove_budget(&mut self, id: BudgetId) {
        self.budgets.remove(id);
        self.refresh_budgets();
    }

    /// The name of a disruption budget, with its namespace.
    #[must_use]
    pub fn budget_name(&self, id: BudgetId) -> &str {
        self.budgets.name(id)
    }

    /// Adds or updates a pod.
    pub fn set_pod(&mut self, spec: MemberSpec<'_>) -> PodId {
        let existing = self.cluster.pod_id(spec.pod.namespace, spec.pod.name);
        // The indexes use the old node, group and priority: leave them before these change.
        if let Some(id) = existing {
            self.detach(id);
            self.remove_member(id);
        }
        let id = self.cluster.set_pod(spec.pod);
        if let Some(group) = spec.group.and_then(|it| self.groups.get_mut(it)) {
            group.pods.insert(id);
        }
        if self.members.len() <= id.index() {
            let len = id.index().saturating_add(1);
            self.members.resize_with(len, Member::default);
        }
        let budgets = if spec.has_budgets {
            budgets_protecting(&self.budgets, &self.cluster, id)
        } else {
            Box::default()
        };
        if let Some(member) = self.members.get_mut(id.index()) {
            *member = Member {
                group: spec.group,
                nominated: spec.nominated,
                is_preempted: spec.is_preempted,
                unit: None,
                has_budgets: spec.has_budgets,
                budgets,
            };
        }
        let is_pending = self.cluster.pod(id).is_some_and(|it| it.host().is_none());
        // A running pod uses room already; its nomination must not reserve it again.
        if is_pending && spec.nominated.is_some() {
            self.nominated.insert(id);
        }
        self.attach(id);
        id
    }

    /// Removes a pod.
    pub fn remove_pod(&mut self, id: PodId) {
        self.detach(id);
        self.remove_member(id);
        self.cluster.remove_pod(id);
    }

    /// The name of a pod, with its namespace.
    #[must_use]
    pub fn pod_name(&self, id: PodId) -> String {
        self.workloads().pod_name(id)
    }

    /// The name of a group, with its namespace.
    #[must_use]
    pub fn group_name(&self, id: GroupId) -> &str {
        self.groups.get(id).map_or("", |it| &*it.name)
    }

    /// For each of these units, in this order, the pods whose disruption violates a budget, each with that budget.
    #[must_use]
    pub fn budget_violations(&self, units: &[UnitId]) -> Vec<Vec<(PodId, BudgetId)>> {
        let mut counter = self.budgets.counter();
        let violations = |unit: &UnitId| {
            let mut found = Vec::new();
            if let Some(unit) = self.units.get(*unit) {
                counter.charge_unit(unit, &self.members, |pod, budget| found.push((pod, budget)));
            }
            found
        };
        units.iter().map(violations).collect()
    }

    /// Recomputes the budgets of every pod: a changed selector may match any of them.
    fn refresh_budgets(&mut self) {
        let pods: Vec<PodId> = self.cluster.pods().map(|(id, _)| id).collect();
        for id in pods {
            if !self
                .members
                .get(id.index())
                .is_some_and(|it| it.has_budgets)
            {
                continue;
            }
            let budgets = budgets_protecting(&self.budgets, &self.cluster, id);
            let member = self.members.get(id.index());
            // Attaching a pod again rebuilds the sums of its node, so unchanged pods are skipped.
            if member.is_some_and(|it| it.budgets == budgets) {
                continue;
            }
            self.detach(id);
            if let Some(member) = self.members.get_mut(id.index()) {
                member.budgets = budgets;
            }
            self.attach(id);
        }
    }

    /// Changes a group. Its pods leave their units for the change, since it may give them other units or priorities.
    fn with_pods_below(&mut self, group: GroupId, change: impl FnOnce(&mut Self)) {
        let pods = self.groups.pods_below(group);
        for pod in &pods {
            self.detach(*pod);
        }
        change(self);
        for pod in &pods {
            self.attach(*pod);
        }
    }

    /// Removes a pod from its group and from the nominated pods.
    fn remove_member(&mut self, id: PodId) {
        self.nominated.remove(&id);
        let group = self.workloads().group_of(id);
        if let Some(group) = group.and_then(|it| self.groups.get_mut(it)) {
            group.pods.remove(&id);
        }
    }

    /// Adds a running pod to its unit, which is created if needed.
    fn attach(&mut self, id: PodId) {
        // A pending pod uses no room, so it cannot be a victim.
        let Some(host) = self.cluster.pod(id).and_then(Pod::host) else {
            return;
        };
        let workloads = self.workloads();
        let started_at_ns = workloads.started_at_ns(id);
        let is_covered = workloads
            .member(id)
            .is_some_and(|it| !it.budgets.is_empty());
        let (key, _) = workloads.unit_key(id);
        let unit_id = if let Some(unit_id) = self.units.find(key) {
            unit_id
        } else {
            let unit = workloads.new_unit(id);
            self.units.insert(unit)
        };
        let cluster = &self.cluster;
        let mut priority = 0;
        self.units.update(unit_id, |unit| {
            let sort_key = |pod: PodId| cluster.pod(pod).map(|it| (it.name(), pod));
            let at = unit.pods.partition_point(|it| sort_key(*it) < sort_key(id));
            unit.pods.insert(at, id);
            unit.started_at_ns = unit.started_at_ns.min(started_at_ns);
            unit.protected_pods = unit.protected_pods.saturating_add(usize::from(is_covered));
            priority = unit.priority;
        });
        if let Some(member) = self.members.get_mut(id.index()) {
            member.unit = Some(unit_id);
        }
        if let Some(node) = self.units.reclaimable.node_mut(host) {
            node.insert(priority, unit_id, id);
            node.rebuild_levels(|pod| self.cluster.requests(pod));
        }
    }

    /// Removes a running pod from its unit.
    fn detach(&mut self, id: PodId) {
        let member = self.members.get_mut(id.index());
        let Some(unit_id) = member.and_then(|it| it.unit.take()) else {
            return;
        };
        // `self.workloads()` would borrow all of `self`, but `units` is changed below.
        let workloads = WorkloadView {
            options: &self.options,
            cluster: &self.cluster,
            groups: &self.groups,
            members: &self.members,
        };
        let is_covered = workloads
            .member(id)
            .is_some_and(|it| !it.budgets.is_empty());
        let mut priority = 0;
        self.units.update(unit_id, |unit| {
            unit.pods.retain(|it| *it != id);
            unit.protected_pods = unit.protected_pods.saturating_sub(usize::from(is_covered));
            // The removed pod may have been the earliest: compute the start of the others.
            let pods = unit.pods.iter();
            let first = pods.map(|it| workloads.started_at_ns(*it)).min();
            unit.started_at_ns = first.unwrap_or(i64::MAX);
            priority = unit.priority;
        });
        let host = self.cluster.pod(id).and_then(Pod::host);
        if let Some(node) = host.and_then(|it| self.units.reclaimable.node_mut(it)) {
            node.remove(priority, unit_id, id);
            node.rebuild_levels(|pod| self.cluster.requests(pod));
        }
    }
}

fn budgets_protecting(
    budgets: &DisruptionBudgets,
    cluster: &Cluster,
    id: PodId,
) -> Box<[BudgetId]> {
    let pod = cluster.pod(id);
    pod.map_or_else(Box::default, |pod| {
        budgets.budgets_protecting(pod, cluster.symbols())
    })
}
