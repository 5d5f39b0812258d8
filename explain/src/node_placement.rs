//! Places a workload on the nodes of the input, as the controller does.

use crate::answer::{Answer, Forecast};
use crate::count_text::count;
use crate::node_answer::{
    NodeAnswer, NodePlacementAnswer, NodeVictim, PlacedPods, PlacementResult,
};
use crate::world::World;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use lockkeeper_api::workload::{Admission, NominatedPlacement};
use lockkeeper_api::{Workload, labels};
use lockkeeper_cluster_state::pending_reason::{WAITING_FOR_NODES, waiting_for_nodes_message};
use lockkeeper_cluster_state::placement_state::{
    PlacementOutcome, PlacementRequest, PlacementState, Victim, WorkloadUnit,
};
use lockkeeper_cluster_state::{
    ClusterState, disruption_mode, placement_priorities, placement_request, pod_group_size,
    preemption_traits,
};
use lockkeeper_preemption::job::Preemptibility;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most nodes of a pod set in an answer.
const NODES_MAX: usize = 100;

/// The nodes, pods and disruption budgets of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeObjects {
    pub(crate) nodes: Vec<Node>,
    /// The pods that are bound to nodes.
    pub(crate) pods: Vec<Pod>,
    pub(crate) budgets: Vec<PodDisruptionBudget>,
}

impl NodeObjects {
    /// Adds the objects of another collection behind these.
    pub(crate) fn merge(&mut self, other: Self) {
        self.nodes.extend(other.nodes);
        self.pods.extend(other.pods);
        self.budgets.extend(other.budgets);
    }

    /// The uids of the bound pods of each group.
    fn pod_groups(&self) -> BTreeMap<GroupKey<'_>, Vec<&str>> {
        let mut groups: BTreeMap<GroupKey<'_>, Vec<&str>> = BTreeMap::new();
        for pod in &self.pods {
            let size = pod
                .spec
                .as_ref()
                .and_then(|it| pod_group_size(&pod.metadata, it));
            if let Some(size) = size {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let uids = groups.entry((namespace, size.name)).or_default();
                uids.extend(pod.metadata.uid.as_deref());
            }
        }
        groups
    }

    /// The state of the nodes with the workloads that have quota; `None` without nodes.
    pub(crate) fn placement_state(
        &self,
        cluster: &ClusterState,
        workloads: &BTreeMap<String, Arc<Workload>>,
    ) -> Option<PlacementState> {
        if self.nodes.is_empty() {
            return None;
        }
        let mut state = PlacementState::new();
        for (name, labels) in cluster.objects().namespaces() {
            state.set_namespace(name, labels);
        }
        for node in &self.nodes {
            state.set_node(node);
        }
        for pod in &self.pods {
            state.set_pod(pod);
        }
        for budget in &self.budgets {
            state.set_budget(budget);
        }
        let groups = self.pod_groups();
        for workload in workloads.values() {
            let pods = group_key(workload).and_then(|it| groups.get(&it));
            let pods = pods.map_or(&[][..], Vec::as_slice);
            set_workload(&mut state, cluster, workload, pods);
        }
        Some(state)
    }
}

/// Namespace and name of a group of pods.
type GroupKey<'a> = (&'a str, String);

/// The group that a workload was created for.
fn group_key(workload: &Workload) -> Option<GroupKey<'_>> {
    let labels = workload.metadata.labels.as_ref()?;
    let name = labels.get(labels::POD_GROUP_NAME)?;
    let namespace = workload.metadata.namespace.as_deref();
    Some((namespace.unwrap_or_default(), name.clone()))
}

/// Adds a workload with quota as a unit, and takes the room of its pods that are not bound yet. `pods` has the uids of the pods
/// of its group.
fn set_workload(
    state: &mut PlacementState,
    cluster: &ClusterState,
    workload: &Workload,
    pods: &[&str],
) {
    let Some(admission) = admission(workload) else {
        return;
    };
    if has_condition(workload, "Finished") {
        return;
    }
    let (priority, preemption_priority) = placement_priorities(cluster, workload);
    let traits = preemption_traits(cluster.objects(), workload, &admission.cluster_queue);
    let is_evicted =
        has_condition(workload, "Evicted") || workload.metadata.deletion_timestamp.is_some();
    state.set_workload(&WorkloadUnit {
        namespace: workload.metadata.namespace.as_deref().unwrap_or_default(),
        name: workload.metadata.name.as_deref().unwrap_or_default(),
        owner_uids: owner_uids(workload).chain(pods.iter().copied()).collect(),
        priority,
        preemption_priority,
        never_preempts: !traits.may_preempt,
        is_evicted,
        is_non_preemptible: traits.preemptibility == Preemptibility::NonPreemptible,
        disruption: disruption_mode(workload),
    });
    // Pods that have ended keep no room: it ends when all have been ready.
    if !is_evicted
        && !has_condition(workload, "PodsReady")
        && let Some(nodes) = nominated(workload)
    {
        let request = placement_request(cluster, workload, admission, None);
        state.reserve(&request, nodes);
    }
}

/// The uid of the job or pod of a workload. A group is no object.
fn owner_uids(workload: &Workload) -> impl Iterator<Item = &str> {
    let owners = workload.metadata.owner_references.iter().flatten();
    let owners = owners.filter(|it| it.controller == Some(true));
    owners.map(|it| it.uid.as_str())
}

/// Takes the room of a workload that is admitted, and returns true, or false if it does not fit on nodes. A workload of a
/// ClusterQueue without placement needs no room.
pub(crate) fn place(
    cluster: &ClusterState,
    nodes: &mut PlacementState,
    workload: &Workload,
    admission: &Admission,
) -> bool {
    if !cluster.objects().places_on_nodes(&admission.cluster_queue) {
        return true;
    }
    let request = placement_request(cluster, workload, admission, nominated(workload));
    match nodes.plan(&request).outcome {
        PlacementOutcome::Infeasible(_) => return false,
        PlacementOutcome::Fits(placement)
        | PlacementOutcome::AwaitingVictims(placement)
        | PlacementOutcome::Preempt { placement, .. } => nodes.reserve(&request, &placement),
    }
    true
}

/// Completes the answer about a workload that waits in a queue with placement, and that the quota suffices for: whether it fits on
/// these nodes. `after` has the workloads, `namespace/name`, that release quota for it.
pub(crate) fn explain_placement(
    world: &World,
    workload: &Workload,
    admission: &Admission,
    nodes: Option<PlacementState>,
    after: &[String],
    answer: &mut Answer,
) {
    let Some(mut nodes) = usable_nodes(world, nodes, &admission.cluster_queue, answer) else {
        return;
    };
    let request = placement_request(&world.cluster, workload, admission, nominated(workload));
    let decision = if after.is_empty() {
        nodes.plan(&request)
    } else {
        let evicted = after.iter().filter_map(|it| it.split_once('/'));
        nodes.plan_after_eviction(&request, evicted)
    };
    let found = node_answers(&mut nodes, &request);
    let placement = placement_answer(decision.outcome, found);
    match placement.result {
        PlacementResult::DoesNotFit => {
            WAITING_FOR_NODES.clone_into(&mut answer.reason);
            answer.message = waiting_for_nodes_message(&placement.message);
            answer.summary = format!(
                "has enough quota, and does not fit on nodes: {}",
                placement.message
            );
        }
        PlacementResult::Preempts => {
            let victims = count(placement.victims.len(), "unit");
            let next = format!(
                "preempts {victims} on nodes, and is admitted when the preempted pods are gone"
            );
            answer.summary = with_next_step(answer, &next);
        }
        PlacementResult::WaitsForVictims => {
            let next = "is admitted when terminating pods are gone from its nodes";
            answer.summary = with_next_step(answer, next);
        }
        // The scheduler tries it again when nodes or pods change.
        PlacementResult::Fits if answer.reason == WAITING_FOR_NODES => {
            "fits on nodes now, and is admitted when the scheduler tries it again"
                .clone_into(&mut answer.summary);
        }
        PlacementResult::Fits => {}
    }
    answer.placement = Some(placement);
}

/// What happens to a workload that gets quota, and then needs room on nodes.
fn with_next_step(answer: &Answer, next: &str) -> String {
    match answer.forecast {
        Some(Forecast::Preempts { .. }) => format!("{}; then it {next}", answer.summary),
        _ => format!("gets quota in the next cycle, {next}"),
    }
}

/// Completes the answer about a workload with quota that has nominated nodes, and whose pods are not ready.
pub(crate) fn explain_nomination(world: &World, workload: &Workload, answer: &mut Answer) {
    let Some(admission) = admission(workload) else {
        return;
    };
    if has_condition(workload, "PodsReady") || nominated(workload).is_none() {
        return;
    }
    let nodes = world.nodes.clone();
    let Some(mut nodes) = usable_nodes(world, nodes, &admission.cluster_queue, answer) else {
        return;
    };
    let request = placement_request(&world.cluster, workload, admission, nominated(workload));
    let decision = nodes.plan(&request);
    let found = node_answers(&mut nodes, &request);
    answer.placement = Some(placement_answer(decision.outcome, found));
}

/// The nodes to place on; `None` if the ClusterQueue does not place workloads, or if the input has no node, which the answer
/// states.
fn usable_nodes(
    world: &World,
    nodes: Option<PlacementState>,
    queue: &str,
    answer: &mut Answer,
) -> Option<PlacementState> {
    if !world.cluster.objects().places_on_nodes(queue) {
        return None;
    }
    if nodes.is_none() {
        let assumption =
            "the input has no Node: the answer is about quota, and pods may not fit on nodes";
        answer.assumptions.push(assumption.to_owned());
    }
    nodes
}

fn placement_answer(outcome: PlacementOutcome, nodes: Vec<NodeAnswer>) -> NodePlacementAnswer {
    let mut message = String::new();
    let mut victims = Vec::new();
    let (result, placement) = match outcome {
        PlacementOutcome::Fits(placement) => (PlacementResult::Fits, Some(placement)),
        PlacementOutcome::AwaitingVictims(placement) => {
            (PlacementResult::WaitsForVictims, Some(placement))
        }
        PlacementOutcome::Preempt {
            placement,
            victims: found,
        } => {
            victims = found.iter().map(node_victim).collect();
            (PlacementResult::Preempts, Some(placement))
        }
        PlacementOutcome::Infeasible(why) => {
            message = why;
            (PlacementResult::DoesNotFit, None)
        }
    };
    let pod_sets = placement.into_iter().flat_map(|it| it.pod_sets);
    NodePlacementAnswer {
        result,
        message,
        pod_sets: pod_sets
            .map(|it| PlacedPods {
                pod_set: it.name,
                nodes: it.nodes,
            })
            .collect(),
        victims,
        nodes,
    }
}

fn node_victim(victim: &Victim) -> NodeVictim {
    match victim {
        Victim::Workload { namespace, name } => NodeVictim {
            kind: "Workload",
            name: format!("{namespace}/{name}"),
            violates_budget: false,
        },
        Victim::Pod {
            namespace,
            name,
            violates_budget,
            ..
        } => NodeVictim {
            kind: "Pod",
            name: format!("{namespace}/{name}"),
            violates_budget: *violates_budget,
        },
    }
}

/// The first nodes of each pod set.
fn node_answers(nodes: &mut PlacementState, request: &PlacementRequest<'_>) -> Vec<NodeAnswer> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let reports = nodes.node_reports(request).into_iter();
    let first = reports.filter(|it| {
        let count = counts.entry(it.pod_set.clone()).or_default();
        *count = count.saturating_add(1);
        *count <= NODES_MAX
    });
    let answers = first.map(|it| NodeAnswer {
        node: it.node,
        pod_set: it.pod_set,
        free: it.free.into_iter().collect(),
        obstacle: it.obstacle,
        fits_after_preemption: it.fits_after_preemption,
    });
    answers.collect()
}

fn admission(workload: &Workload) -> Option<&Admission> {
    workload.status.as_ref()?.admission.as_ref()
}

fn nominated(workload: &Workload) -> Option<&NominatedPlacement> {
    workload.status.as_ref()?.nominated_placement.as_ref()
}

fn has_condition(workload: &Workload, type_: &str) -> bool {
    let mut conditions = workload.status.iter().flat_map(|it| &it.conditions);
    conditions.any(|it| it.type_ == type_ && it.status == "True")
}
