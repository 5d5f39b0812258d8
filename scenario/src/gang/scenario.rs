//! The file format: nodes, pods, pod groups, disruption budgets, and the preemptor. Unknown keys are rejected.

use crate::amount_text::AmountText;
use k8s_openapi::api::core::v1::{PodSpec, Taint};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A cluster state, and the preemptor or the objects to evaluate.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GangScenario {
    /// Its name.
    pub id: String,
    /// The recorded function of kube-scheduler. Without it, the preemptor is decided.
    pub kind: Option<Kind>,
    /// The source of the scenario.
    pub source: Value,
    /// The scheduler to reproduce; kube-scheduler for a recorded scenario.
    pub compatibility: Option<SchedulerBehavior>,
    /// Feature gates of kube-scheduler.
    pub features: Option<Features>,
    /// The placement strategy; it starts with `first_fit`, `best_fit` or `both`.
    pub placement_strategy: Option<String>,
    /// Whether the pods of a gang are decided one by one.
    pub pod_by_pod: bool,
    /// The nodes, in the order in which they are evaluated.
    pub nodes: Vec<Node>,
    /// The pods.
    pub pods: Vec<Pod>,
    /// A pod to evaluate.
    pub pod: Option<Pod>,
    /// The pod groups.
    pub pod_groups: Vec<Group>,
    /// A pod group to evaluate.
    pub pod_group: Option<Group>,
    /// The composite pod groups.
    pub composite_pod_groups: Vec<Group>,
    /// A composite pod group to evaluate.
    pub composite_pod_group: Option<Group>,
    /// The disruption budgets.
    pub pdbs: Vec<Budget>,
    /// The preemptor.
    pub preemptor: Option<Preemptor>,
    /// The placement of its pods, if it is given.
    pub placement: Option<FixedPlacement>,
    /// The number of candidate nodes to evaluate.
    pub params: Option<DryRunParams>,
    /// The scheduling cycle of a recorded scenario.
    pub cycle: i64,
    /// The node to evaluate.
    pub main_node: Option<String>,
    /// The node to evaluate.
    pub target_node: Option<String>,
    /// The recorded filter results by node; nodes without one are ignored.
    pub filtered_node_status: Option<BTreeMap<String, FilterStatus>>,
    /// The recorded filter result of the preemptor's nominated node.
    pub nominated_node_status: Option<FilterStatus>,
    /// Victims to evaluate.
    pub victims: Vec<Victim>,
    /// The recorded result; only its `filter_status` is used.
    pub expected: Value,
    /// Whether some victims differ only in the order of the input.
    pub equal_importance_victims: bool,
}

/// The recorded function of kube-scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The victims of a group in the cluster, whatever its policy is.
    PodGroupDomain,
    /// Whether a group may preempt.
    PodGroupOngoingOrNever,
    /// The victims of a pod.
    PostFilter,
    /// The victims of a pod on each node.
    DryRun,
    /// The victims of a pod on each node, and the best node.
    SelectBest,
    /// The victims of a pod.
    Preempt,
    /// The victims of a pod on one node.
    SelectVictimsOnNode,
    /// Whether a pod may preempt.
    EligibleToPreempt,
    /// The disruption units on a node.
    VictimUnitsOnNode,
    /// The disruption units.
    VictimUnitsInDomain,
    /// The victims that violate a disruption budget.
    PdbSplit,
    /// Whether the first of two units is more important.
    MoreImportant,
    /// The preemption priority of a pod.
    EffectivePriority,
    /// The preemption policy of a group.
    ResolvePreemptionPolicy,
    /// The victims of a pod.
    OracleSinglePod,
    /// The victims of a group.
    OraclePodGroup,
}

/// The scheduler to reproduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerBehavior {
    /// lockkeeper (KEP-5710).
    Lockkeeper,
    /// kube-scheduler.
    KubeScheduler,
}

/// Feature gates of kube-scheduler.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Features {
    /// Pod groups are supported.
    pub generic_workload: bool,
    /// Pod groups may have parents.
    pub composite_pod_group: bool,
    /// Pod groups have a preemption policy.
    pub pod_group_preemption_policy: bool,
}

/// A node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The allocatable resources.
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
    /// Its uid; not used.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The node it runs on, which may not exist. A preemptor with a node is resized in place.
    pub node: Option<String>,
    /// Its pod group, which may not exist.
    pub pod_group: Option<String>,
    /// Its own priority.
    pub priority: Option<i32>,
    /// `Never` or `PreemptLowerPriority`.
    pub preemption_policy: Option<Policy>,
    /// Its total requests, instead of `spec`.
    pub requests: BTreeMap<String, AmountText>,
    /// Kubernetes' pod spec: containers, node selector, affinity, tolerations.
    pub spec: Option<Box<PodSpec>>,
    /// When it started, in nanoseconds since 1970.
    pub start_time_ns: Option<i64>,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// Its condition `DisruptionTarget`.
    pub disruption_target: Option<DisruptionTarget>,
    /// The nominated node.
    pub nominated_node: Option<String>,
}

/// A condition `DisruptionTarget`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisruptionTarget {
    /// The reason.
    pub reason: String,
    /// The status; only `True` counts.
    pub status: String,
}

/// A preemption policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Policy {
    /// Preempts lower priorities.
    PreemptLowerPriority,
    /// Never preempts.
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
    /// Its uid; not used.
    pub uid: String,
    /// The composite pod group that it is part of.
    pub parent: Option<String>,
    /// The disruption mode.
    pub disruption_mode: Option<Mode>,
    /// The scheduling priority.
    pub priority: Option<i32>,
    /// The preemption priority; the scheduling priority by default.
    pub preemption_priority: Option<i32>,
    /// The preemption policy.
    pub preemption_policy: Option<Policy>,
    /// The scheduling policy; without it one pod is enough.
    pub policy: Option<Scheduling>,
}

/// The disruption mode of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// Each pod on its own.
    #[serde(alias = "Pod")]
    Single,
    /// All pods together.
    #[serde(alias = "PodGroup")]
    All,
}

/// The scheduling policy of a group.
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
    /// The minimum number of pods.
    pub min_count: Option<u32>,
    /// The minimum number of groups; not used.
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
    /// The protected pods; none without a selector.
    pub selector: Option<Selector>,
    /// The number of allowed disruptions.
    pub disruptions_allowed: i32,
    /// Pods whose disruption is counted already.
    pub disrupted_pods: Vec<String>,
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selector {
    /// The required labels.
    pub match_labels: BTreeMap<String, String>,
    /// The requirements.
    pub match_expressions: Vec<Expression>,
}

/// A requirement on a label.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(alias = "operator")]
    pub op: String,
    /// The values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// The preemptor: a pod, or a group with its pending pods.
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
    /// The group's priority again; another value is rejected.
    pub priority: Option<i32>,
    /// The preemption policy; overrides those of its group and pods.
    pub preemption_policy: Option<Policy>,
}

/// A given placement of pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FixedPlacement {
    /// Whether a placement was searched.
    pub called: bool,
    /// Whether a placement was found.
    pub feasible: bool,
    /// How the placement was found.
    pub strategy: String,
    /// The placements of the pods.
    pub with_all_victims_removed: Vec<NodeAssignment>,
}

/// The placement of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeAssignment {
    /// The pod.
    pub pod: String,
    /// The node.
    pub node: String,
}

/// The sample of candidate nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DryRunParams {
    /// The number of candidates.
    pub num_candidates: usize,
    /// The index of the first node.
    pub offset: usize,
    /// Whether nodes were evaluated sequentially; otherwise all are.
    pub sequential: bool,
    /// An input of `num_candidates`.
    pub min_candidate_nodes_absolute: i64,
    /// An input of `num_candidates`.
    pub min_candidate_nodes_percentage: i64,
}

/// The result of kube-scheduler's filters for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FilterStatus {
    /// The pod fits.
    Success,
    /// The pod may fit after preemption.
    Unschedulable,
    /// Preemption cannot help.
    UnschedulableAndUnresolvable,
}

/// The disruption units.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Victim {
    /// The preemption priority.
    pub priority: i32,
    /// The kind.
    #[serde(rename = "type")]
    pub kind: UnitKind,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// The earliest start of its pods, in nanoseconds since 1970.
    #[serde(default)]
    pub earliest_start_time_ns: Option<i64>,
}

/// The kind of a disruption unit.
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
    /// The nodes. In a recorded scenario, the first node of a name counts: one recording has a duplicate name.
    pub(super) fn nodes_without_duplicates(&self) -> impl Iterator<Item = (usize, &Node)> {
        let mut seen = std::collections::BTreeSet::new();
        let is_recorded = self.kind.is_some();
        let all = self.nodes.iter().enumerate();
        all.filter(move |(_, it)| seen.insert(it.name.as_str()) || !is_recorded)
    }
}

/// Returns true for a scenario of pods on nodes: one with one of these kinds, or with a preemptor and no kind.
#[must_use]
pub fn is_gang_scenario(value: &Value) -> bool {
    match value.get("kind") {
        Some(kind) => serde_json::from_value::<Kind>(kind.clone()).is_ok(),
        None => value.get("nodes").is_some(),
    }
}
