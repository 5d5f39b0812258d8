//! What a world of gangs is told: settings, groups, budgets, members.

use crate::ids::{GroupId, HostId};
use crate::placement::{PodPreemption, PodSpec, Selector, Strategy};

/// What holds for every decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangOptions {
    /// Whose algorithm is followed.
    pub compatibility: SchedulerCompatibility,
    /// Which of the nodes that fit a pod of the preemptor gets. kube-scheduler's own scores are not known here,
    /// so this holds under [`Compatibility::KubeScheduler`] too.
    pub strategy: Strategy,
    /// Whether a gang is placed by both strategies, and what costs less is taken. It never costs more than without, and
    /// takes as long as both.
    pub tries_both_strategies: bool,
    /// Only with [`Compatibility::KubeScheduler`].
    pub gates: FeatureGates,
}

/// Whose algorithm is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerCompatibility {
    /// That of KEP-5710: a search for the lowest priority that will do, preemption priorities, cascades counted.
    #[default]
    Lockkeeper,
    /// What kube-scheduler v1.37 does.
    KubeScheduler,
}

/// Feature gates of kube-scheduler. All on by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `GenericWorkload`: there are groups at all.
    pub generic_workload: bool,
    /// `CompositePodGroup`: groups have parents.
    pub composite_pod_group: bool,
    /// `PodGroupPreemptionPolicy`: a group says itself whether it preempts.
    pub pod_group_preemption_policy: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            generic_workload: true,
            composite_pod_group: true,
            pod_group_preemption_policy: true,
        }
    }
}

/// What a unit or a group is. Later ones are the more important of equal priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionUnitKind {
    /// A pod that is in no group.
    Pod,
    /// A pod group, or one pod of it.
    PodGroup,
    /// A composite pod group; or a workload, with its replicas as the groups below it.
    Composite,
}

/// How a group is disrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisruptionMode {
    /// Each pod for itself. kube-scheduler's `single`.
    #[default]
    Pod,
    /// All or none. kube-scheduler's `all`.
    PodGroup,
}

/// Says which group is meant. Pod groups and composite ones have names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey<'a> {
    /// Whether it is composite; a pod is never meant.
    pub kind: PreemptionUnitKind,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A group. A pod group of several replicas is as many groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupSpec<'a> {
    /// Which one.
    pub key: GroupKey<'a>,
    /// The group that it is part of.
    pub parent: Option<GroupId>,
    /// How it is disrupted.
    pub mode: DisruptionMode,
    /// The priority that it is scheduled with; 0 if none is given. That of the topmost group counts.
    pub priority: Option<i32>,
    /// The priority that it is preempted by, not below the other one; the same if none is given.
    pub preemption_priority: Option<i32>,
    /// Whether it preempts, by its class.
    pub preemption: Option<PodPreemption>,
    /// With how many of its pods it makes do; `None` is one.
    pub count_min: Option<u32>,
}

/// A disruption budget.
#[derive(Clone, Debug)]
pub struct BudgetSpec<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Which pods it protects. One that is empty protects none.
    pub selector: Selector,
    /// `status.disruptionsAllowed`.
    pub allowed: i32,
    /// `status.disruptedPods`: names of pods that are counted already.
    pub disrupted: Vec<&'a str>,
}

/// A pod, and how it stands to groups and preemption.
#[derive(Clone, Debug)]
pub struct MemberSpec<'a> {
    /// The pod.
    pub pod: PodSpec<'a>,
    /// Its pod group, there or not.
    pub group: Option<GroupId>,
    /// `status.nominatedNodeName`.
    pub nominated: Option<HostId>,
    /// Whether it has the condition `DisruptionTarget` with the reason `PreemptionByScheduler`.
    pub is_preempted: bool,
}
