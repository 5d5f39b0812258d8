//! What is written: nodes, pods, groups, budgets, and who wants in. A key that is not known is refused.

use crate::amount_text::AmountText;
use k8s_openapi::api::core::v1::{PodSpec, Taint};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A cluster, and a question about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GangScenario {
    /// Its name.
    pub id: String,
    /// What is asked, in recorded ones; without it, it is what becomes of the preemptor.
    pub kind: Option<Kind>,
    /// Where it is from.
    pub source: Value,
    /// Whose algorithm is followed; a recorded one follows kube-scheduler.
    pub compatibility: Option<SchedulerBehavior>,
    /// Feature gates of kube-scheduler.
    pub features: Option<Features>,
    /// How pods are put on nodes: it begins with `first_fit`, `best_fit` or `both`.
    pub placement_strategy: Option<String>,
    /// Whether the pods of a gang are decided on one by one.
    pub pod_by_pod: bool,
    /// The nodes, in the order in which they are tried.
    pub nodes: Vec<Node>,
    /// The pods.
    pub pods: Vec<Pod>,
    /// A pod that is asked about.
    pub pod: Option<Pod>,
    /// The pod groups.
    pub pod_groups: Vec<Group>,
    /// A pod group that is asked about.
    pub pod_group: Option<Group>,
    /// The composite pod groups.
    pub composite_pod_groups: Vec<Group>,
    /// A composite pod group that is asked about.
    pub composite_pod_group: Option<Group>,
    /// The disruption budgets.
    pub pdbs: Vec<Budget>,
    /// Who wants in.
    pub preemptor: Option<Preemptor>,
    /// Where its pods go, decided elsewhere.
    pub placement: Option<FixedPlacement>,
    /// How many nodes are looked at for a pod.
    pub params: Option<DryRunParams>,
    /// The scheduling cycle of a recorded one.
    pub cycle: i64,
    /// The node that is asked about.
    pub main_node: Option<String>,
    /// The node that is asked about.
    pub target_node: Option<String>,
    /// What kube-scheduler's filters said of each node; others do not count.
    pub filtered_node_status: Option<BTreeMap<String, FilterStatus>>,
    /// What they said of the node that the preemptor was nominated to.
    pub nominated_node_status: Option<FilterStatus>,
    /// Victims that are asked about.
    pub victims: Vec<Victim>,
    /// What was answered; only its `filter_status` is read.
    pub expected: Value,
    /// Whether there are victims that only the order of input tells apart.
    pub equal_importance_victims: bool,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Whom a group preempts in the cluster, whatever its policy.
    PodGroupDomain,
    /// Whether a group may preempt.
    PodGroupOngoingOrNever,
    /// Whom a pod preempts.
    PostFilter,
    /// Whom a pod would preempt on each node.
    DryRun,
    /// The same, and which node is best.
    SelectBest,
    /// Whom a pod preempts.
    Preempt,
    /// Whom a pod preempts on one node.
    SelectVictimsOnNode,
    /// Whether a pod may preempt.
    EligibleToPreempt,
    /// What is preempted as one on a node.
    VictimUnitsOnNode,
    /// What is preempted as one.
    VictimUnitsInDomain,
    /// Whose going breaks a budget.
    PdbSplit,
    /// Which of two is more important.
    MoreImportant,
    /// By which priority a pod is preempted.
    EffectivePriority,
    /// Whether a group preempts.
    ResolvePreemptionPolicy,
    /// Whom a pod preempts.
    OracleSinglePod,
    /// Whom a group preempts.
    OraclePodGroup,
}

/// Whose algorithm is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerBehavior {
    /// That of KEP-5710.
    Lockkeeper,
    /// That of kube-scheduler.
    KubeScheduler,
}

/// Feature gates of kube-scheduler.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// There are groups.
    pub generic_workload: bool,
    /// Groups have parents.
    pub composite_pod_group: bool,
    /// A group says itself whether it preempts.
    pub pod_group_preemption_policy: bool,
}

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What pods can have of it.
    pub allocatable: BTreeMap<String, AmountText>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
}

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid. Nothing depends on it.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The node it runs on, there or not. A preemptor that has one wants more where it is.
    pub node: Option<String>,
    /// Its pod group, there or not.
    pub pod_group: Option<String>,
    /// Its own priority.
    pub priority: Option<i32>,
    /// `Never` or `PreemptLowerPriority`.
    pub preemption_policy: Option<Policy>,
    /// What it asks for in all; instead of `spec`.
    pub requests: BTreeMap<String, AmountText>,
    /// As Kubernetes has it: containers, node selector, affinity, tolerations.
    pub spec: Option<Box<PodSpec>>,
    /// When it started, in nanoseconds since 1970.
    pub start_time_ns: Option<i64>,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// Its condition `DisruptionTarget`.
    pub disruption_target: Option<DisruptionTarget>,
    /// The node it was nominated to.
    pub nominated_node: Option<String>,
}

/// A condition `DisruptionTarget`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisruptionTarget {
    /// Why.
    pub reason: String,
    /// `True`, or it does not hold.
    pub status: String,
}

/// A preemption policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Policy {
    /// It preempts.
    PreemptLowerPriority,
    /// It never does.
    Never,
}

/// A pod group, or a composite one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid. Nothing depends on it.
    pub uid: String,
    /// The composite pod group that it is part of.
    pub parent: Option<String>,
    /// How it is disrupted.
    pub disruption_mode: Option<Mode>,
    /// The priority that it is scheduled with.
    pub priority: Option<i32>,
    /// The priority that it is preempted by; that one if it is not given.
    pub preemption_priority: Option<i32>,
    /// Whether it preempts.
    pub preemption_policy: Option<Policy>,
    /// How it is scheduled; without it one pod is enough.
    pub policy: Option<Scheduling>,
}

/// How a group is disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// By pods.
    #[serde(alias = "Pod")]
    Single,
    /// All or none.
    #[serde(alias = "PodGroup")]
    All,
}

/// How a group is scheduled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scheduling {
    /// As a gang.
    pub gang: Option<Gang>,
    /// Pod by pod.
    pub basic: Option<Value>,
}

/// A gang.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gang {
    /// With how many of its pods it makes do.
    pub min_count: Option<u32>,
    /// With how many of its groups; kube-scheduler's, and not read.
    pub min_group_count: Option<u32>,
}

/// A disruption budget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Which pods it protects; none without it.
    pub selector: Option<Selector>,
    /// How many pods may go.
    pub disruptions_allowed: i32,
    /// Pods that are counted already.
    pub disrupted_pods: Vec<String>,
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selector {
    /// Labels that must be there.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    pub match_expressions: Vec<Expression>,
}

/// A condition on a label.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(alias = "operator")]
    pub op: String,
    /// The values it speaks of.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Who wants in: a pod, or a group with its pods that wait.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preemptor {
    /// The pod.
    pub pod: Option<Pod>,
    /// The group.
    pub pod_group: Option<Group>,
    /// The composite group.
    pub composite_pod_group: Option<Group>,
    /// Its pods, in the order in which they are placed.
    pub pods: Vec<Pod>,
    /// The group's priority once more; the same, or it is refused.
    pub priority: Option<i32>,
    /// Whether it preempts, whatever its group and pods say.
    pub preemption_policy: Option<Policy>,
}

/// Where pods go, decided elsewhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedPlacement {
    /// Whether a place was asked for at all.
    pub called: bool,
    /// Whether there was one.
    pub feasible: bool,
    /// How it was found.
    pub strategy: String,
    /// The places.
    pub with_all_victims_removed: Vec<NodeAssignment>,
}

/// Where a pod goes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeAssignment {
    /// The pod.
    pub pod: String,
    /// The node.
    pub node: String,
}

/// How many nodes are looked at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DryRunParams {
    /// How many are enough.
    pub num_candidates: usize,
    /// Where it is begun.
    pub offset: usize,
    /// Whether they were looked at one after the other; else all are.
    pub sequential: bool,
    /// Where `num_candidates` is from.
    pub min_candidate_nodes_absolute: i64,
    /// Where `num_candidates` is from.
    pub min_candidate_nodes_percentage: i64,
}

/// What kube-scheduler's filters say of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FilterStatus {
    /// The pod fits.
    Success,
    /// It might if others went.
    Unschedulable,
    /// It never will.
    UnschedulableAndUnresolvable,
}

/// What is preempted as one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Victim {
    /// The priority that it is preempted by.
    pub priority: i32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: UnitKind,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// When the first of them started, in nanoseconds since 1970.
    #[serde(default)]
    pub earliest_start_time_ns: Option<i64>,
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitKind {
    /// A pod.
    Pod,
    /// A pod group, or a pod of it.
    PodGroup,
    /// A composite pod group.
    CompositePodGroup,
}

impl GangScenario {
    /// The nodes. In a recorded one the first of a name counts; there is one with a slip of the pen.
    pub(super) fn nodes_without_duplicates(&self) -> impl Iterator<Item = (usize, &Node)> {
        let mut seen = std::collections::BTreeSet::new();
        let is_recorded = self.kind.is_some();
        let all = self.nodes.iter().enumerate();
        all.filter(move |(_, it)| seen.insert(it.name.as_str()) || !is_recorded)
    }
}

/// Whether what is written is about pods on nodes: it has a preemptor and no other kind, or one of these kinds.
#[must_use]
pub fn is_gang_scenario(value: &Value) -> bool {
    match value.get("kind") {
        Some(kind) => serde_json::from_value::<Kind>(kind.clone()).is_ok(),
        None => value.get("nodes").is_some(),
    }
}
