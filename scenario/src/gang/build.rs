//! Builds the cluster state of a scenario of pods and pod groups.

use super::amounts::{parse_amount, pod_spec_requests};
use super::error::GangError;
use super::scenario::{
    FilterStatus, GangScenario, Group, Kind, Mode, Node, Pod, Policy, Preemptor, SchedulerBehavior,
    UnitKind, Victim,
};
use super::validate::validate;
use crate::amount_text::AmountText;
use lockkeeper_cluster_state::core_labels::{label_selector, labels};
use lockkeeper_cluster_state::inter_pod_fields::PodIdentity;
use lockkeeper_cluster_state::scheduling_fields::{pod_shape, taint};
use lockkeeper_preemption::gang::{
    BudgetSpec, DisruptionMode, FeatureGates, GangCluster, GangOptions, GroupKey, GroupSpec,
    Importance, MemberSpec, NodeSample, PreemptionRequest, PreemptionUnitKind as CoreKind,
    SchedulerCompatibility,
};
use lockkeeper_preemption::placement::{
    HostSpec, PodPreemption, PodSpec as CorePod, Selector, Shape, Strategy,
};
use lockkeeper_preemption::{Amount, GroupId, HostId, PodId, ResourceId, UnitId};
use std::collections::BTreeMap;

/// A cluster state, and the objects that the scenario evaluates.
#[derive(Clone, Debug)]
pub struct LoadedGangScenario {
    /// The cluster state.
    pub gang_cluster: GangCluster,
    /// The preemptor's pods, in order.
    pub pods: Vec<PodId>,
    /// The preemptor's group.
    pub group: Option<GroupId>,
    /// The candidate nodes, if not all nodes are.
    pub hosts: Option<Vec<HostId>>,
    /// The placement of its pods, if it is given.
    pub fixed_placement: Option<Vec<Option<HostId>>>,
    /// The number of candidate nodes to evaluate.
    pub sample: Option<NodeSample>,
    /// The pod to evaluate.
    pub pod: Option<PodId>,
    /// The disruption units to evaluate, in order.
    pub victims: Vec<UnitId>,
    /// The disruption units to compare, in order.
    pub ranks: Vec<Importance>,
}

impl LoadedGangScenario {
    /// The preemptor.
    #[must_use]
    pub fn preemption_request(&self) -> PreemptionRequest<'_> {
        PreemptionRequest {
            pods: &self.pods,
            group: self.group,
            hosts: self.hosts.as_deref(),
            fixed_placement: self.fixed_placement.as_deref(),
            sample: self.sample,
        }
    }
}

/// The options of a scenario. One with a kind was recorded from kube-scheduler, where gates are off unless it sets
/// them. `compatibility` overrides the value of the scenario.
#[must_use]
pub fn options(
    scenario: &GangScenario,
    compatibility: Option<SchedulerCompatibility>,
) -> GangOptions {
    let written = scenario.compatibility.map(|it| match it {
        SchedulerBehavior::Lockkeeper => SchedulerCompatibility::Lockkeeper,
        SchedulerBehavior::KubeScheduler => SchedulerCompatibility::KubeScheduler,
    });
    let recorded = scenario.kind.map(|_| SchedulerCompatibility::KubeScheduler);
    let features = match (scenario.features, scenario.kind) {
        (Some(features), _) => Some(features),
        (None, Some(_)) => Some(super::scenario::Features::default()),
        (None, None) => None,
    };
    let policy = scenario.preemptor.as_ref();
    let policy = policy.and_then(|it| it.preemption_policy).is_some();
    let gates = features.map(|it| FeatureGates {
        // The listed victims are disruption units, whatever the gates are.
        generic_workload: it.generic_workload || scenario.kind == Some(Kind::PdbSplit),
        composite_pod_group: it.composite_pod_group,
        pod_group_preemption_policy: it.pod_group_preemption_policy || policy,
    });
    let strategy = scenario.placement_strategy.as_deref().unwrap_or_default();
    GangOptions {
        compatibility: compatibility.or(written).or(recorded).unwrap_or_default(),
        strategy: if strategy.starts_with("best_fit") {
            Strategy::BestFit
        } else {
            Strategy::FirstFit
        },
        tries_both_strategies: strategy.starts_with("both"),
        gates: gates.unwrap_or_default(),
    }
}

/// Builds the cluster state of a scenario.
///
/// # Errors
///
/// A [`GangError`] with the field path, such as for a duplicate or unknown name or an invalid amount.
pub fn load(
    scenario: &GangScenario,
    options: GangOptions,
) -> Result<LoadedGangScenario, GangError> {
    validate(scenario)?;
    let mut loaded = LoadedGangScenario {
        gang_cluster: GangCluster::new(options),
        pods: Vec::new(),
        group: None,
        hosts: None,
        fixed_placement: None,
        sample: None,
        pod: None,
        victims: Vec::new(),
        ranks: Vec::new(),
    };
    let gang_cluster = &mut loaded.gang_cluster;
    for (at, node) in scenario.nodes_without_duplicates() {
        add_host(gang_cluster, node, at)?;
    }
    for object in scenario
        .composite_pod_groups
        .iter()
        .chain(&scenario.composite_pod_group)
    {
        add_group(gang_cluster, CoreKind::Composite, object, None);
    }
    for group in scenario.pod_groups.iter().chain(&scenario.pod_group) {
        add_group(gang_cluster, CoreKind::PodGroup, group, None);
    }
    for (at, budget) in scenario.pdbs.iter().enumerate() {
        let path = format!("pdbs[{at}].selector");
        let given = budget.selector.clone().unwrap_or_default();
        let selector = selector(gang_cluster, &given, &path)?;
        let place = format!("pdbs[{at}]");
        let name = Some(budget.name.as_str()).filter(|it| !it.is_empty());
        gang_cluster.set_budget(BudgetSpec {
            namespace: &budget.namespace,
            name: name.unwrap_or(&place),
            selector,
            allowed: budget.disruptions_allowed,
            disrupted: budget.disrupted_pods.iter().map(String::as_str).collect(),
        });
    }
    let group = scenario.pod_group.as_ref().map(|it| it.name.as_str());
    for (at, pod) in scenario.pods.iter().enumerate() {
        let group = pod.pod_group.as_deref().or(group);
        add_pod(
            gang_cluster,
            pod,
            group,
            pod.node.as_deref(),
            &format!("pods[{at}]"),
        )?;
    }
    if let Some(pod) = &scenario.pod {
        let group = pod.pod_group.as_deref();
        loaded.pod = Some(add_pod(
            gang_cluster,
            pod,
            group,
            pod.node.as_deref(),
            "pod",
        )?);
    }
    if let Some(preemptor) = &scenario.preemptor {
        set_preemptor(&mut loaded, preemptor)?;
    }
    set_victims(&mut loaded, &scenario.victims)?;
    restrict_nodes(&mut loaded, scenario)?;
    Ok(loaded)
}

fn selector(
    gang_cluster: &mut GangCluster,
    selector: &super::scenario::Selector,
    at: &str,
) -> Result<Selector, GangError> {
    let requirements = selector.match_expressions.iter();
    let requirements = requirements.map(|it| (&*it.key, &*it.op, &*it.values));
    let selector = label_selector(gang_cluster, &selector.match_labels, requirements);
    selector.map_err(|operator| GangError::Operator {
        at: at.to_owned(),
        operator: operator.to_owned(),
    })
}

fn add_host(gang_cluster: &mut GangCluster, node: &Node, at: usize) -> Result<HostId, GangError> {
    let allocatable = amounts(gang_cluster, &node.allocatable);
    let labels = labels(gang_cluster, &node.labels);
    let mut taints = Vec::new();
    for (taint_at, item) in node.taints.iter().enumerate() {
        taints.push(taint(gang_cluster, item).ok_or_else(|| GangError::Effect {
            at: format!("nodes[{at}].taints[{taint_at}].effect"),
            effect: item.effect.clone(),
        })?);
    }
    Ok(gang_cluster.set_host(HostSpec {
        name: &node.name,
        position: u32::try_from(at).unwrap_or(u32::MAX),
        allocatable,
        labels,
        taints,
        is_unschedulable: node.unschedulable,
    }))
}

fn add_group(
    gang_cluster: &mut GangCluster,
    kind: CoreKind,
    group: &Group,
    preemption: Option<Policy>,
) -> GroupId {
    let key = |kind, name| GroupKey {
        kind,
        namespace: &group.namespace,
        name,
    };
    let parent = group.parent.as_deref();
    let parent = parent.map(|it| gang_cluster.group_id(key(CoreKind::Composite, it)));
    let gang = group.policy.as_ref().and_then(|it| it.gang.as_ref());
    gang_cluster.set_group(&GroupSpec {
        key: key(kind, &group.name),
        parent,
        mode: match group.disruption_mode {
            Some(Mode::All) => DisruptionMode::PodGroup,
            Some(Mode::Single) | None => DisruptionMode::Pod,
        },
        priority: group.priority,
        preemption_priority: group.preemption_priority,
        preemption: preemption
            .or(group.preemption_policy)
            .map(preemption_policy),
        count_min: gang.and_then(|it| it.min_count),
    })
}

fn add_pod(
    gang_cluster: &mut GangCluster,
    pod: &Pod,
    group: Option<&str>,
    node: Option<&str>,
    path: &str,
) -> Result<PodId, GangError> {
    let mut shape = match &pod.spec {
        Some(spec) => {
            let identity = PodIdentity {
                namespace: &pod.namespace,
                labels: Some(&pod.labels),
            };
            pod_shape(gang_cluster, identity, spec)
        }
        None => Shape::default(),
    };
    shape.requests.extend(amounts(gang_cluster, &pod.requests));
    if let Some(spec) = &pod.spec {
        for (resource, amount) in pod_spec_requests(pod, spec, path)? {
            shape
                .requests
                .push((gang_cluster.resource(&resource), amount));
        }
    }
    let shape = gang_cluster.shape(shape);
    let labels = labels(gang_cluster, &pod.labels);
    let group = group.map(|name| {
        gang_cluster.group_id(GroupKey {
            kind: CoreKind::PodGroup,
            namespace: &pod.namespace,
            name,
        })
    });
    let disruption = pod.disruption_target.as_ref();
    let is_preempted =
        |reason: &str, status: &str| reason == "PreemptionByScheduler" && status == "True";
    let host = node.map(|it| gang_cluster.host_id(it));
    let nominated = pod.nominated_node.as_deref().filter(|it| !it.is_empty());
    let nominated = nominated.map(|it| gang_cluster.host_id(it));
    Ok(gang_cluster.set_pod(MemberSpec {
        pod: CorePod {
            namespace: &pod.namespace,
            name: &pod.name,
            host,
            shape,
            labels,
            priority: pod.priority.unwrap_or_default(),
            preemption: pod
                .preemption_policy
                .map(preemption_policy)
                .unwrap_or_default(),
            started_at_ns: pod.start_time_ns,
            is_terminating: pod.terminating,
        },
        group,
        nominated,
        is_preempted: disruption.is_some_and(|it| is_preempted(&it.reason, &it.status)),
        has_budgets: true,
    }))
}

fn set_preemptor(loaded: &mut LoadedGangScenario, preemptor: &Preemptor) -> Result<(), GangError> {
    let gang_cluster = &mut loaded.gang_cluster;
    let policy = preemptor.preemption_policy;
    if let Some(group) = &preemptor.pod_group {
        loaded.group = Some(add_group(gang_cluster, CoreKind::PodGroup, group, policy));
    }
    if let Some(group) = &preemptor.composite_pod_group {
        loaded.group = Some(add_group(gang_cluster, CoreKind::Composite, group, policy));
    }
    let own = preemptor.pod_group.as_ref().map(|it| it.name.as_str());
    for (at, pod) in preemptor.pods.iter().enumerate() {
        let group = pod.pod_group.as_deref().or(own);
        let path = format!("preemptor.pods[{at}]");
        loaded
            .pods
            .push(add_pod(gang_cluster, pod, group, None, &path)?);
    }
    if let Some(pod) = &preemptor.pod {
        let group = pod.pod_group.as_deref();
        // A running preemptor is resized in place: its current requests on the node count as free.
        let host = pod.node.as_deref().map(|it| gang_cluster.host_id(it));
        loaded.hosts = host.map(|it| vec![it]);
        let pod = add_pod(gang_cluster, pod, group, None, "preemptor.pod")?;
        loaded.pods.push(pod);
    }
    Ok(())
}

/// Adds listed victims. Those with named pods run on a separate node.
fn set_victims(loaded: &mut LoadedGangScenario, victims: &[Victim]) -> Result<(), GangError> {
    let gang_cluster = &mut loaded.gang_cluster;
    for (at, victim) in victims.iter().enumerate() {
        let name = format!("victims[{at}]");
        let kind = match victim.kind {
            UnitKind::Pod => CoreKind::Pod,
            UnitKind::PodGroup => CoreKind::PodGroup,
            UnitKind::CompositePodGroup => CoreKind::Composite,
        };
        loaded.ranks.push(Importance {
            priority: std::cmp::Reverse(victim.priority),
            kind: std::cmp::Reverse(kind),
            pods: std::cmp::Reverse(victim.pods.len()),
            started_at_ns: victim.earliest_start_time_ns.unwrap_or(i64::MAX),
            first_pod: PodId::default(),
            name: name.as_str().into(),
            unit: UnitId::default(),
        });
        let Some(first) = victim.pods.first().filter(|it| !it.name.is_empty()) else {
            continue;
        };
        let group = Group {
            name: name.clone(),
            namespace: first.namespace.clone(),
            disruption_mode: Some(Mode::All),
            priority: Some(victim.priority),
            ..Group::default()
        };
        add_group(gang_cluster, CoreKind::PodGroup, &group, None);
        let mut unit = None;
        for (pod_at, pod) in victim.pods.iter().enumerate() {
            let path = format!("{name}.pods[{pod_at}]");
            let pod = add_pod(gang_cluster, pod, Some(&name), Some("somewhere"), &path)?;
            unit = gang_cluster.workloads().unit_of(pod);
        }
        loaded.victims.extend(unit);
    }
    Ok(())
}

/// Sets the candidate nodes, the given placement, and the number of nodes to evaluate.
fn restrict_nodes(
    loaded: &mut LoadedGangScenario,
    scenario: &GangScenario,
) -> Result<(), GangError> {
    let recorded = scenario.expected.get("filter_status").cloned();
    let recorded = recorded.and_then(|it| serde_json::from_value(it).ok());
    let statuses: Option<BTreeMap<String, FilterStatus>> =
        scenario.filtered_node_status.clone().or(recorded);
    let is_kube =
        loaded.gang_cluster.options().compatibility == SchedulerCompatibility::KubeScheduler;
    if let Some(statuses) = statuses.filter(|_| is_kube) {
        let helps = |name: &str| statuses.get(name) == Some(&FilterStatus::Unschedulable);
        let nodes = scenario.nodes.iter().filter(|it| helps(&it.name));
        loaded.hosts = Some(
            nodes
                .map(|it| loaded.gang_cluster.host_id(&it.name))
                .collect(),
        );
    }
    if let Some(node) = scenario
        .main_node
        .as_ref()
        .or(scenario.target_node.as_ref())
    {
        loaded.hosts = Some(vec![find_host(loaded, scenario, node, "main_node")?]);
    }
    if let Some(given) = scenario.placement.as_ref().filter(|it| it.called) {
        let mut seats = BTreeMap::new();
        for (at, seat) in given.with_all_victims_removed.iter().enumerate() {
            let at = format!("placement.with_all_victims_removed[{at}].node");
            seats.insert(
                seat.pod.as_str(),
                find_host(loaded, scenario, &seat.node, &at)?,
            );
        }
        let pods = scenario.preemptor.iter().flat_map(|it| &it.pods);
        loaded.fixed_placement = Some(
            pods.map(|it| seats.get(it.name.as_str()).copied())
                .collect(),
        );
    }
    let sequential = scenario.params.as_ref().filter(|it| it.sequential);
    loaded.sample = sequential.map(|it| NodeSample {
        offset: it.offset,
        count: it.num_candidates,
    });
    if scenario.kind == Some(Kind::DryRun) && loaded.pods.is_empty() {
        return Err(GangError::Form {
            at: "preemptor".to_owned(),
            problem: "missing; set it",
        });
    }
    Ok(())
}

fn find_host(
    loaded: &mut LoadedGangScenario,
    scenario: &GangScenario,
    name: &str,
    at: &str,
) -> Result<HostId, GangError> {
    if scenario.nodes.iter().any(|it| it.name == name) {
        return Ok(loaded.gang_cluster.host_id(name));
    }
    Err(GangError::Unknown {
        at: at.to_owned(),
        kind: "node",
        name: name.to_owned(),
    })
}

fn preemption_policy(policy: Policy) -> PodPreemption {
    match policy {
        Policy::PreemptLowerPriority => PodPreemption::LowerPriority,
        Policy::Never => PodPreemption::Never,
    }
}

fn amounts(
    gang_cluster: &mut GangCluster,
    amounts: &BTreeMap<String, AmountText>,
) -> Vec<(ResourceId, Amount)> {
    let all = amounts.iter().map(|(key, text)| parse_amount(key, *text));
    all.filter_map(|(resource, number)| {
        Some((gang_cluster.resource(resource), Amount::new(number?)))
    })
    .collect()
}
