//! The cluster with its groups, budgets and units, kept up to date by events.

use super::disruption_budgets::DisruptionBudgets;
use super::group::Groups;
use super::importance::Importance;
use super::membership::Membership;
use super::reclaimable::ReclaimableIndex;
use super::spec::{
    BudgetSpec, GangOptions, GroupKey, GroupSpec, MemberSpec, SchedulerCompatibility,
};
use super::unit::{Unit, UnitKey, full_name};
use crate::ids::{BudgetId, GroupId, HostId, PodId, ShapeId, SymbolId, UnitId};
use crate::placement::{Cluster, HostSpec, Pod, PodPreemption, Shape};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A cluster, its groups and budgets, and what would be preempted as one. It changes by events: a pod costs the
/// pods of its node and the logarithm of all, a group its pods, a budget all pods.
#[derive(Clone, Debug)]
pub struct GangCluster {
    pub(super) options: GangOptions,
    pub(super) cluster: Cluster,
    pub(super) groups: Groups,
    pub(super) budgets: DisruptionBudgets,
    /// By pod.
    pub(super) members: Vec<Membership>,
    pub(super) units: Vec<Option<Unit>>,
    /// Numbers of units that are gone, to be given again.
    pub(super) free_unit_ids: Vec<UnitId>,
    pub(super) unit_ids: BTreeMap<UnitKey, UnitId>,
    pub(super) index: ReclaimableIndex,
    /// How many units there are of each priority.
    pub(super) priorities: BTreeMap<i32, usize>,
    /// The units of which a budget protects a pod, the most important first.
    pub(super) protected_units: BTreeSet<Importance>,
    /// Pods that wait for a node they were nominated to.
    pub(super) nominated: BTreeSet<PodId>,
}

impl GangCluster {
    /// One without nodes.
    #[must_use]
    pub fn new(options: GangOptions) -> Self {
        let gates = options.gates;
        let is_ours = options.compatibility == SchedulerCompatibility::Lockkeeper;
        let mut groups = Groups::default();
        groups.has_parents = is_ours || gates.composite_pod_group;
        Self {
            options,
            cluster: Cluster::new(),
            groups,
            budgets: DisruptionBudgets::default(),
            members: Vec::new(),
            units: Vec::new(),
            free_unit_ids: Vec::new(),
            unit_ids: BTreeMap::new(),
            index: ReclaimableIndex::default(),
            priorities: BTreeMap::new(),
            protected_units: BTreeSet::new(),
            nominated: BTreeSet::new(),
        }
    }

    /// What holds for every decision.
    #[must_use]
    pub const fn options(&self) -> &GangOptions {
        &self.options
    }

    /// The nodes and pods.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The number of a word. See [`Cluster::word`].
    pub fn symbol(&mut self, word: &str) -> SymbolId {
        self.cluster.symbol(word)
    }

    /// The number of a resource. See [`Cluster::resource`].
    pub fn resource(&mut self, name: &str) -> crate::ids::ResourceId {
        self.cluster.resource(name)
    }

    /// The number of a shape. See [`Cluster::shape`].
    pub fn shape(&mut self, shape: Shape) -> ShapeId {
        self.cluster.shape(shape)
    }

    /// The number of a node, there or not. See [`Cluster::host_id`].
    pub fn host_id(&mut self, name: &str) -> HostId {
        self.cluster.host_id(name)
    }

    /// A node is there, or has changed.
    pub fn set_host(&mut self, spec: HostSpec<'_>) -> HostId {
        self.cluster.set_host(spec)
    }

    /// A node is gone.
    pub fn remove_host(&mut self, id: HostId) {
        self.cluster.remove_host(id);
    }

    /// The number of a group, there or not.
    pub fn group_id(&mut self, key: GroupKey<'_>) -> GroupId {
        self.groups.intern(key)
    }

    /// A group is there, or has changed.
    pub fn set_group(&mut self, spec: &GroupSpec<'_>) -> GroupId {
        let id = self.groups.intern(spec.key);
        self.with_pods_below(id, |it| it.groups.set(id, spec));
        id
    }

    /// A group is gone. Its pods stay.
    pub fn remove_group(&mut self, id: GroupId) {
        self.with_pods_below(id, |it| it.groups.remove(id));
    }

    /// A budget is there, or has changed. Of several that protect a pod, the one that was told first is charged
    /// first.
    pub fn set_budget(&mut self, spec: BudgetSpec<'_>) -> BudgetId {
        let namespace = self.cluster.symbol(spec.namespace);
        let id = self.budgets.set(namespace, spec);
        self.refresh_budgets();
        id
    }

    /// A budget is gone.
    pub fn remove_budget(&mut self, id: BudgetId) {
        self.budgets.remove(id);
        self.refresh_budgets();
    }

    /// The name of a budget, with its namespace.
    #[must_use]
    pub fn budget_name(&self, id: BudgetId) -> &str {
        self.budgets.name(id)
    }

    /// A pod is there, or has changed.
    pub fn set_pod(&mut self, spec: MemberSpec<'_>) -> PodId {
        let known = self.cluster.pod_id(spec.pod.namespace, spec.pod.name);
        if let Some(id) = known {
            self.detach(id);
            self.remove_membership(id);
        }
        let id = self.cluster.set_pod(spec.pod);
        if let Some(group) = spec.group.and_then(|it| self.groups.get_mut(it)) {
            group.pods.insert(id);
        }
        if self.members.len() <= id.index() {
            let len = id.index().saturating_add(1);
            self.members.resize_with(len, Membership::default);
        }
        let protecting = self.budgets_protecting(id);
        if let Some(member) = self.members.get_mut(id.index()) {
            *member = Membership {
                group: spec.group,
                nominated: spec.nominated,
                is_preempted: spec.is_preempted,
                unit: None,
                budgets: protecting,
            };
        }
        let is_pending = self.cluster.pod(id).is_some_and(|it| it.host().is_none());
        if is_pending && spec.nominated.is_some() {
            self.nominated.insert(id);
        }
        self.attach(id);
        id
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, id: PodId) {
        self.detach(id);
        self.remove_membership(id);
        self.cluster.remove_pod(id);
    }

    /// The group of a pod, there or not.
    #[must_use]
    pub fn group_of(&self, pod: PodId) -> Option<GroupId> {
        self.members.get(pod.index()).and_then(|it| it.group)
    }

    /// The name of a group, with its namespace.
    #[must_use]
    pub fn group_name(&self, id: GroupId) -> &str {
        self.groups.get(id).map_or("", |it| &*it.name)
    }

    /// The node that a pod was nominated to.
    #[must_use]
    pub fn nominated_host(&self, pod: PodId) -> Option<HostId> {
        self.members.get(pod.index()).and_then(|it| it.nominated)
    }

    /// Whether a pod goes since the scheduler preempted it, and has not gone yet.
    ///
    /// Source: kube-scheduler v1.37, `PodTerminatingByPreemption`.
    #[must_use]
    pub fn is_terminating_by_preemption(&self, pod: PodId) -> bool {
        let is_preempted = self.members.get(pod.index());
        let is_terminating = self.cluster.pod(pod).is_some_and(Pod::is_terminating);
        is_terminating && is_preempted.is_some_and(|it| it.is_preempted)
    }

    /// The priority that a pod, or the workload that it is of, is scheduled with: that of its topmost group, or
    /// its own if it has none.
    ///
    /// Source: KEP-5710, Workload priorities; kube-scheduler v1.37, `GetPodPriority`.
    #[must_use]
    pub fn scheduling_priority(&self, pod: PodId) -> i32 {
        let own = self.cluster.pod(pod).map_or(0, Pod::priority);
        let root = self.root_of(pod);
        root.map_or(own, |(_, it)| it.priority.unwrap_or_default())
    }

    /// The priority that a pod, or the workload that it is of, is preempted by. With
    /// [`Compatibility::KubeScheduler`] it is the same as the other.
    ///
    /// Source: KEP-5710, Workload priorities.
    #[must_use]
    pub fn preemption_priority(&self, pod: PodId) -> i32 {
        let scheduling = self.scheduling_priority(pod);
        if self.options.compatibility == SchedulerCompatibility::KubeScheduler {
            return scheduling;
        }
        let root = self.root_of(pod);
        let given = root.and_then(|(_, it)| it.preemption_priority);
        given.unwrap_or(scheduling)
    }

    /// The priority that a group is scheduled with: that of the topmost group.
    #[must_use]
    pub fn group_priority(&self, group: GroupId) -> i32 {
        let root = self.groups.root(group);
        root.and_then(|(_, it)| it.priority).unwrap_or_default()
    }

    /// The pods of a workload whose own priority is not the one it is scheduled with, in the order of their
    /// numbers: what the condition `PodsNotMatchingPriority` says.
    ///
    /// Source: KEP-5710, Workload priorities, priority divergence.
    #[must_use]
    pub fn pods_not_matching_priority(&self, group: GroupId) -> Vec<PodId> {
        let root = self.groups.root(group).map_or(group, |(id, _)| id);
        let priority = self.group_priority(group);
        let pods = self.groups.pods_below(root).into_iter();
        pods.filter(|pod| {
            let pod = self.cluster.pod(*pod);
            pod.is_some_and(|it| it.priority() != priority)
        })
        .collect()
    }

    /// Whether a group preempts. Its topmost group says so itself, by its class; if it says nothing, any of its
    /// pods that never does speaks for all.
    ///
    /// Source: KEP-5710, Workload priorities (`PriorityClass.preemptionPolicy` is the same for workloads as for
    /// pods). kube-scheduler v1.37, `resolvePreemptionPolicy`: with its gate the group alone decides, without it
    /// the pods alone.
    #[must_use]
    pub fn group_preemption_policy(&self, group: GroupId, pods: &[PodId]) -> PodPreemption {
        let root = self.groups.root(group);
        let given = root.and_then(|(_, it)| it.preemption);
        let is_never = |pod: &PodId| {
            let pod = self.cluster.pod(*pod);
            pod.is_some_and(|it| it.preemption() == PodPreemption::Never)
        };
        let of_pods = || {
            if pods.iter().any(is_never) {
                return PodPreemption::Never;
            }
            PodPreemption::LowerPriority
        };
        match self.options.compatibility {
            SchedulerCompatibility::Lockkeeper => given.unwrap_or_else(of_pods),
            SchedulerCompatibility::KubeScheduler
                if self.options.gates.pod_group_preemption_policy =>
            {
                given.unwrap_or_default()
            }
            SchedulerCompatibility::KubeScheduler => of_pods(),
        }
    }

    /// A unit; none if its pods are gone.
    #[must_use]
    pub fn unit(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.index()).and_then(Option::as_ref)
    }

    /// The unit that a running pod is of.
    #[must_use]
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.members.get(pod.index()).and_then(|it| it.unit)
    }

    /// The units with pods on a node, by number.
    #[must_use]
    pub fn units_on(&self, host: HostId) -> BTreeSet<UnitId> {
        let of_host = self.index.node(host).into_iter();
        of_host.flat_map(|it| it.units(i32::MAX)).collect()
    }

    /// All units, by number.
    pub fn units(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        let all = self.units.iter().enumerate();
        all.filter_map(|(at, unit)| Some((UnitId::of(at), unit.as_ref()?)))
    }

    /// For each of these units, in this order, how many of its pods cannot go without breaking a budget, and
    /// the budgets.
    #[must_use]
    pub fn budget_violations(&self, units: &[UnitId]) -> Vec<Vec<(PodId, BudgetId)>> {
        let mut count = self.budgets.counter();
        let broken = |unit: &UnitId| {
            let mut breaks = Vec::new();
            self.charge(&mut count, *unit, |pod, budget| breaks.push((pod, budget)));
            breaks
        };
        units.iter().map(broken).collect()
    }

    /// Counts that a unit goes: how many of its pods break a budget.
    pub(super) fn charge(
        &self,
        count: &mut super::disruption_budgets::DisruptionCounter<'_>,
        unit: UnitId,
        mut breaks: impl FnMut(PodId, BudgetId),
    ) -> usize {
        let unit = self.unit(unit).filter(|it| it.protected_pods > 0);
        let pods = unit.map_or(&[][..], |it| it.pods.as_slice()).iter();
        let broken = pods.filter_map(|pod| {
            let member = self.members.get(pod.index())?;
            Some((*pod, count.charge(&member.budgets)?))
        });
        broken.map(|(pod, budget)| breaks(pod, budget)).count()
    }

    /// Whether a budget protects anybody.
    pub(super) fn has_protected_units(&self) -> bool {
        !self.protected_units.is_empty()
    }

    /// Sorts units by importance, the most important first.
    pub(super) fn sort_by_importance(&self, units: &mut [UnitId]) {
        units.sort_unstable_by(|a, b| {
            let both = self.unit(*a).zip(self.unit(*b));
            both.map_or(Ordering::Equal, |(one, other)| one.compare(*a, other, *b))
        });
    }

    /// The priorities of units below one, the lowest first.
    pub(super) fn priorities_below(&self, bound: i32) -> Vec<i32> {
        self.priorities.range(..bound).map(|it| *it.0).collect()
    }

    /// The protected units of a lower priority, the most important first.
    pub(super) fn protected_units_below(&self, bound: i32) -> impl Iterator<Item = &Importance> {
        let all = self.protected_units.iter();
        all.skip_while(move |it| it.priority.0 >= bound)
    }

    /// The name of a pod, with its namespace.
    #[must_use]
    pub fn pod_name(&self, id: PodId) -> String {
        let Some(pod) = self.cluster.pod(id) else {
            return String::new();
        };
        full_name(self.cluster.symbols().text(pod.namespace()), pod.name())
    }
}
