//! Which unit each pod is of, kept up to date.

use super::cluster::GangCluster;
use super::spec::{PreemptionUnitKind, SchedulerCompatibility};
use super::unit::{Unit, UnitKey};
use crate::ids::{BudgetId, GroupId, HostId, PodId, UnitId};
use crate::placement::Pod;

/// What a world knows of a pod beside the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Membership {
    pub(super) group: Option<GroupId>,
    pub(super) nominated: Option<HostId>,
    pub(super) is_preempted: bool,
    pub(super) unit: Option<UnitId>,
    pub(super) budgets: Box<[BudgetId]>,
}

impl GangCluster {
    pub(super) fn root_of(&self, pod: PodId) -> Option<(GroupId, &super::group::Group)> {
        let group = self.group_of(pod).filter(|_| self.has_groups());
        group.and_then(|it| self.groups.root(it))
    }

    pub(super) const fn has_groups(&self) -> bool {
        match self.options.compatibility {
            SchedulerCompatibility::Lockkeeper => true,
            SchedulerCompatibility::KubeScheduler => self.options.gates.generic_workload,
        }
    }

    pub(super) fn budgets_protecting(&self, id: PodId) -> Box<[BudgetId]> {
        let pod = self.cluster.pod(id);
        pod.map_or_else(Box::default, |pod| {
            self.budgets.budgets_protecting(pod, self.cluster.symbols())
        })
    }

    /// What changes a budget may change for every pod.
    pub(super) fn refresh_budgets(&mut self) {
        let pods: Vec<PodId> = self.cluster.pods().map(|(id, _)| id).collect();
        for id in pods {
            let protecting = self.budgets_protecting(id);
            let member = self.members.get(id.index());
            if member.is_some_and(|it| it.budgets == protecting) {
                continue;
            }
            self.detach(id);
            if let Some(member) = self.members.get_mut(id.index()) {
                member.budgets = protecting;
            }
            self.attach(id);
        }
    }

    pub(super) fn with_pods_below(&mut self, group: GroupId, change: impl FnOnce(&mut Self)) {
        let pods = self.groups.pods_below(group);
        for pod in &pods {
            self.detach(*pod);
        }
        change(self);
        for pod in &pods {
            self.attach(*pod);
        }
    }

    /// Drops what is known of a pod beside the cluster.
    pub(super) fn remove_membership(&mut self, id: PodId) {
        self.nominated.remove(&id);
        let group = self.group_of(id);
        if let Some(group) = group.and_then(|it| self.groups.get_mut(it)) {
            group.pods.remove(&id);
        }
    }

    /// Which unit a pod is of, and what that is.
    fn unit_key(&self, id: PodId) -> (UnitKey, PreemptionUnitKind) {
        let group = self.group_of(id).filter(|_| self.has_groups());
        let Some(group) = group else {
            return (UnitKey::Pod(id), PreemptionUnitKind::Pod);
        };
        match self.groups.disruption_root(group) {
            Some((all, it)) => (UnitKey::Group(all), it.kind),
            // It is of a workload all the same.
            None => (UnitKey::Pod(id), PreemptionUnitKind::PodGroup),
        }
    }

    /// Puts a running pod into its unit.
    pub(super) fn attach(&mut self, id: PodId) {
        let Some(host) = self.cluster.pod(id).and_then(Pod::host) else {
            return;
        };
        let (key, kind) = self.unit_key(id);
        let unit_id = match self.unit_ids.get(&key) {
            Some(unit) => *unit,
            None => self.new_unit(id, key, kind),
        };
        self.remove_protected_unit(unit_id);
        let started_at_ns = self.started_at_ns(id);
        let is_covered = self.membership(id).is_some_and(|it| !it.budgets.is_empty());
        let cluster = &self.cluster;
        let Some(unit) = self.units.get_mut(unit_id.index()).and_then(Option::as_mut) else {
            return;
        };
        let name = |pod: PodId| cluster.pod(pod).map(|it| (it.name(), pod));
        let at = unit.pods.partition_point(|it| name(*it) < name(id));
        unit.pods.insert(at, id);
        unit.started_at_ns = unit.started_at_ns.min(started_at_ns);
        unit.protected_pods = unit.protected_pods.saturating_add(usize::from(is_covered));
        let priority = unit.priority;
        self.add_protected_unit(unit_id);
        if let Some(member) = self.members.get_mut(id.index()) {
            member.unit = Some(unit_id);
        }
        if let Some(of_host) = self.index.node_mut(host) {
            of_host.insert(priority, unit_id, id);
            of_host.rebuild_levels(|pod| self.cluster.requests(pod));
        }
    }

    fn new_unit(&mut self, pod: PodId, key: UnitKey, kind: PreemptionUnitKind) -> UnitId {
        let id = match self.free_unit_ids.pop() {
            Some(id) => id,
            None => UnitId::of(self.units.len()),
        };
        if self.units.len() <= id.index() {
            self.units.push(None);
        }
        let priority = self.preemption_priority(pod);
        let (name, group) = match key {
            UnitKey::Group(group) => (self.group_name(group).to_owned(), Some(group)),
            UnitKey::Pod(pod) => (self.pod_name(pod), None),
        };
        let unit = Unit {
            key,
            kind,
            priority,
            scheduling_priority: self.scheduling_priority(pod),
            pods: Vec::new(),
            started_at_ns: i64::MAX,
            ties_by_pod_id: self.options.compatibility == SchedulerCompatibility::KubeScheduler,
            name: name.into(),
            group,
            protected_pods: 0,
        };
        if let Some(slot) = self.units.get_mut(id.index()) {
            *slot = Some(unit);
        }
        self.unit_ids.insert(key, id);
        let count = self.priorities.entry(priority).or_default();
        *count = count.saturating_add(1);
        id
    }

    /// Takes a running pod out of its unit.
    pub(super) fn detach(&mut self, id: PodId) {
        let Some(unit_id) = self
            .members
            .get_mut(id.index())
            .and_then(|it| it.unit.take())
        else {
            return;
        };
        self.remove_protected_unit(unit_id);
        let is_covered = self.membership(id).is_some_and(|it| !it.budgets.is_empty());
        let Some(unit) = self.units.get_mut(unit_id.index()).and_then(Option::as_mut) else {
            return;
        };
        unit.pods.retain(|it| *it != id);
        unit.protected_pods = unit.protected_pods.saturating_sub(usize::from(is_covered));
        let (priority, rest) = (unit.priority, unit.pods.clone());
        let first = rest.iter().map(|it| self.started_at_ns(*it)).min();
        if let Some(unit) = self.units.get_mut(unit_id.index()).and_then(Option::as_mut) {
            unit.started_at_ns = first.unwrap_or(i64::MAX);
        }
        if rest.is_empty() {
            self.remove_unit(unit_id, priority);
        } else {
            self.add_protected_unit(unit_id);
        }
        let host = self.cluster.pod(id).and_then(Pod::host);
        if let Some(of_host) = host.and_then(|it| self.index.node_mut(it)) {
            of_host.remove(priority, unit_id, id);
            of_host.rebuild_levels(|pod| self.cluster.requests(pod));
        }
    }

    fn remove_unit(&mut self, id: UnitId, priority: i32) {
        let slot = self.units.get_mut(id.index());
        if let Some(unit) = slot.and_then(Option::take) {
            self.unit_ids.remove(&unit.key);
            self.free_unit_ids.push(id);
        }
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    fn add_protected_unit(&mut self, id: UnitId) {
        let rank = self.unit(id).filter(|it| it.protected_pods > 0);
        if let Some(rank) = rank.map(|it| it.importance(id)) {
            self.protected_units.insert(rank);
        }
    }

    fn remove_protected_unit(&mut self, id: UnitId) {
        let rank = self.unit(id).filter(|it| it.protected_pods > 0);
        if let Some(rank) = rank.map(|it| it.importance(id)) {
            self.protected_units.remove(&rank);
        }
    }

    fn membership(&self, id: PodId) -> Option<&Membership> {
        self.members.get(id.index())
    }

    /// One that has not started is the newest.
    fn started_at_ns(&self, pod: PodId) -> i64 {
        let pod = self.cluster.pod(pod);
        pod.and_then(Pod::started_at_ns).unwrap_or(i64::MAX)
    }
}
