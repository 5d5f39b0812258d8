//! Input of a [`GangCluster`](super::GangCluster): options, groups, disruption budgets and pods.

use crate::ids::{GroupId, HostId};
use crate::placement::{PodPreemption, PodSpec, Selector, Strategy};

/// The options of every decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangOptions {
    /// The algorithm.
    pub compatibility: SchedulerCompatibility,
    /// Selects among the nodes on which a pod of the preemptor fits. kube-scheduler's node scores are not modelled, so
    /// this also applies with [`SchedulerCompatibility::KubeScheduler`].
    pub strategy: Strategy,
    /// Whether a gang is searched with both strategies, and the plan with the lower cost is chosen. Doubles the time.
    pub tries_both_strategies: bool,
    /// Used only with [`SchedulerCompatibility::KubeScheduler`].
    pub gates: FeatureGates,
}

/// The algorithm of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerCompatibility {
    /// KEP-5710: search for the lowest sufficient priority cutoff, preemption priorities, cascades counted.
    #[default]
    Lockkeeper,
    /// kube-scheduler v1.37.
    KubeScheduler,
}

/// Feature gates of kube-scheduler. All on by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// `GenericWorkload`: groups are respected.
    pub generic_workload: bool,
    /// `CompositePodGroup`: groups have parents.
    pub composite_pod_group: bool,
    /// `PodGroupPreemptionPolicy`: a group has its own preemption policy.
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

/// The kind of a unit or a group. With equal priority, later kinds are more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionUnitKind {
    /// A pod in no group.
    Pod,
    /// A pod group, or one pod of it.
    PodGroup,
    /// A composite pod group; or a workload, with its replicas as the groups below it.
    Composite,
}

/// The disruption mode of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisruptionMode {
    /// Each pod separately. `single` in kube-scheduler.
    #[default]
    Pod,
    /// All pods together. `all` in kube-scheduler.
    PodGroup,
}

/// Identifies a group. Pod groups and composite pod groups have separate names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey<'a> {
    /// The kind; not [`PreemptionUnitKind::Pod`].
    pub kind: PreemptionUnitKind,
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// A group. Each replica of a pod group is a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupSpec<'a> {
    /// The identity of the group.
    pub key: GroupKey<'a>,
    /// The group above it.
    pub parent: Option<GroupId>,
    /// The disruption mode.
    pub mode: DisruptionMode,
    /// The scheduling priority; `None` means 0. Only that of the topmost group counts.
    pub priority: Option<i32>,
    /// The preemption priority, not below the scheduling priority; `None` means equal to it.
    pub preemption_priority: Option<i32>,
    /// The preemption policy of its priority class.
    pub preemption: Option<PodPreemption>,
    /// How many of its pods must run; `None` means one.
    pub count_min: Option<u32>,
}

/// A disruption budget.
#[derive(Clone, Debug)]
pub struct BudgetSpec<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The pods that it protects. An empty selector protects none.
    pub selector: Selector,
    /// `status.disruptionsAllowed`.
    pub allowed: i32,
    /// `status.disruptedPods`: the names of pods that are already counted.
    pub disrupted: Vec<&'a str>,
}

/// A pod with its group and preemption state.
#[derive(Clone, Debug)]
pub struct MemberSpec<'a> {
    /// The pod.
    pub pod: PodSpec<'a>,
    /// Its pod group, whether or not the group exists.
    pub group: Option<GroupId>,
    /// `status.nominatedNodeName`.
    pub nominated: Option<HostId>,
    /// Whether it has the condition `DisruptionTarget` with the reason `PreemptionByScheduler`.
    pub is_preempted: bool,
    /// Whether disruption budgets protect it.
    pub has_budgets: bool,
}
