//! Priorities and policies of pods and of the workloads that they belong to.

use super::group::{Group, Groups};
use super::member::Member;
use super::spec::{GangOptions, PreemptionUnitKind, SchedulerCompatibility};
use super::unit::{Unit, UnitKey, full_name};
use crate::ids::{GroupId, HostId, PodId, UnitId};
use crate::placement::{Cluster, Pod, PodPreemption};
use std::sync::Arc;

/// A read-only view of pods together with their groups.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadView<'a> {
    pub(super) options: &'a GangOptions,
    pub(super) cluster: &'a Cluster,
    pub(super) groups: &'a Groups,
    pub(super) members: &'a [Member],
}

impl<'a> WorkloadView<'a> {
    pub(super) fn member(&self, pod: PodId) -> Option<&'a Member> {
        self.members.get(pod.index())
    }

    /// The group of a pod, whether or not the group exists yet.
    #[must_use]
    pub fn group_of(&self, pod: PodId) -> Option<GroupId> {
        self.member(pod).and_then(|it| it.group)
    }

    /// The unit of a running pod.
    #[must_use]
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.member(pod).and_then(|it| it.unit)
    }

    /// The node that a pod is nominated to.
    #[must_use]
    pub fn nominated_host(&self, pod: PodId) -> Option<HostId> {
        self.member(pod).and_then(|it| it.nominated)
    }

    /// Whether a pod is terminating because the scheduler preempted it.
    ///
    /// Source: kube-scheduler v1.37, `PodTerminatingByPreemption`.
    #[must_use]
    pub fn is_terminating_by_preemption(&self, pod: PodId) -> bool {
        let is_preempted = self.member(pod).is_some_and(|it| it.is_preempted);
        is_preempted && self.cluster.pod(pod).is_some_and(Pod::is_terminating)
    }

    /// The priority with which a pod is scheduled: that of its topmost group, or its own if it is in no group.
    ///
    /// Source: KEP-5710, Workload priorities; kube-scheduler v1.37, `GetPodPriority`.
    #[must_use]
    pub fn scheduling_priority(&self, pod: PodId) -> i32 {
        let own = self.cluster.pod(pod).map_or(0, Pod::priority);
        let root = self.root_of(pod);
        // `GetPodPriority`: a group without a priority counts as 0, whatever its pods have.
        root.map_or(own, |(_, it)| it.priority.unwrap_or_default())
    }

    /// The priority by which a pod is selected as a victim. With [`SchedulerCompatibility::KubeScheduler`] it equals
    /// the scheduling priority.
    ///
    /// Source: KEP-5710, Workload priorities.
    #[must_use]
    pub fn preemption_priority(&self, pod: PodId) -> i32 {
        let scheduling = self.scheduling_priority(pod);
        if self.options.compatibility == SchedulerCompatibility::KubeScheduler {
            // kube-scheduler has no preemption priority.
            return scheduling;
        }
        let root = self.root_of(pod);
        let explicit = root.and_then(|(_, it)| it.preemption_priority);
        explicit.unwrap_or(scheduling)
    }

    /// The priority with which a group is scheduled: that of its topmost group.
    #[must_use]
    pub fn group_priority(&self, group: GroupId) -> i32 {
        let root = self.groups.root(group);
        root.and_then(|(_, it)| it.priority).unwrap_or_default()
    }

    /// The pods of a workload whose own priority differs from its scheduling priority, by id: the content of the
    /// condition `PodsNotMatchingPriority`.
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

    /// The preemption policy of a group: that of its topmost group's class if it is set. Otherwise it is `Never` if
    /// any of the pods has `Never`.
    ///
    /// Source: KEP-5710, Workload priorities (`PriorityClass.preemptionPolicy` applies to workloads as to pods).
    /// kube-scheduler v1.37, `resolvePreemptionPolicy`: with its feature gate only the group counts, without it only
    /// the pods.
    #[must_use]
    pub fn group_preemption_policy(&self, group: GroupId, pods: &[PodId]) -> PodPreemption {
        let root = self.groups.root(group);
        let group_policy = root.and_then(|(_, it)| it.preemption);
        let is_never = |pod: &PodId| {
            let pod = self.cluster.pod(*pod);
            pod.is_some_and(|it| it.preemption() == PodPreemption::Never)
        };
        let pod_policy = || {
            if pods.iter().any(is_never) {
                return PodPreemption::Never;
            }
            PodPreemption::LowerPriority
        };
        match self.options.compatibility {
            SchedulerCompatibility::Lockkeeper => group_policy.unwrap_or_else(pod_policy),
            SchedulerCompatibility::KubeScheduler
                if self.options.gates.pod_group_preemption_policy =>
            {
                // The policies of the pods do not count; an unset policy permits preemption.
                group_policy.unwrap_or_default()
            }
            SchedulerCompatibility::KubeScheduler => pod_policy(),
        }
    }

    /// How many of a group's pending pods must be placed, running pods counted as placed: at least one.
    #[must_use]
    pub fn count_min(&self, group: GroupId) -> usize {
        let count = self.groups.get(group).and_then(|it| it.count_min);
        let required = usize::try_from(count.unwrap_or(1)).unwrap_or(usize::MAX);
        let pods = self.groups.pods_below(group).into_iter();
        // A terminating pod will not run with the gang, so another one must be placed.
        let is_running = |it: &Pod| it.host().is_some() && !it.is_terminating();
        let running = pods
            .filter(|it| self.cluster.pod(*it).is_some_and(is_running))
            .count();
        // At least one: with zero, a placement without any pod would be enough.
        required.saturating_sub(running).max(1)
    }

    /// The key and the kind of the unit that a pod belongs to.
    pub(super) fn unit_key(&self, pod: PodId) -> (UnitKey, PreemptionUnitKind) {
        let group = self.group_of(pod).filter(|_| self.has_groups());
        let Some(group) = group else {
            return (UnitKey::Pod(pod), PreemptionUnitKind::Pod);
        };
        match self.groups.disruption_root(group) {
            Some((root, root_group)) => (UnitKey::Group(root), root_group.kind),
            // Disrupted by itself, but still more important than a pod without a group.
            None => (UnitKey::Pod(pod), PreemptionUnitKind::PodGroup),
        }
    }

    /// A unit without pods, for a pod that is about to be added.
    pub(super) fn new_unit(&self, pod: PodId) -> Unit {
        let (key, kind) = self.unit_key(pod);
        let (name, group) = match key {
            UnitKey::Group(group) => {
                let name = self.groups.get(group).map(|it| Arc::clone(&it.name));
                (name.unwrap_or_default(), Some(group))
            }
            UnitKey::Pod(pod) => (self.pod_name(pod).into(), None),
        };
        Unit {
            key,
            kind,
            priority: self.preemption_priority(pod),
            scheduling_priority: self.scheduling_priority(pod),
            pods: Vec::new(),
            // The minimum over no pods; `GangCluster::attach` lowers it.
            started_at_ns: i64::MAX,
            ties_by_pod_id: self.options.compatibility == SchedulerCompatibility::KubeScheduler,
            name,
            group,
            protected_pods: 0,
        }
    }

    /// The name of a pod, with its namespace.
    pub(super) fn pod_name(&self, id: PodId) -> String {
        let Some(pod) = self.cluster.pod(id) else {
            return String::new();
        };
        full_name(self.cluster.symbols().text(pod.namespace()), pod.name())
    }

    /// When a pod started. A pod that has not started counts as the newest.
    pub(super) fn started_at_ns(&self, pod: PodId) -> i64 {
        let pod = self.cluster.pod(pod);
        pod.and_then(Pod::started_at_ns).unwrap_or(i64::MAX)
    }

    fn root_of(&self, pod: PodId) -> Option<(GroupId, &'a Group)> {
        let group = self.group_of(pod).filter(|_| self.has_groups());
        group.and_then(|it| self.groups.root(it))
    }

    const fn has_groups(&self) -> bool {
        match self.options.compatibility {
            SchedulerCompatibility::Lockkeeper => true,
            SchedulerCompatibility::KubeScheduler => self.options.gates.generic_workload,
        }
    }
}
