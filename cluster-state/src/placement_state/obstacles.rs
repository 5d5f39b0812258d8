//! Messages: why the pods of a request fit on no nodes.

use super::pod_plan::{PodPlan, PodSetShape};
use super::request::PlacementRequest;
use super::surrounding_pods;
use crate::inter_pod_text::inter_pod_predicate;
use lockkeeper_preemption::gang::{GangCluster, GangOutcome, IneligibleReason, InfeasibleReason};
use lockkeeper_preemption::placement::{
    FilterRejection, InterPodCounts, InterPodTable, Overlay, Strategy, place,
};
use lockkeeper_preemption::{Amount, HostId, PodId, PortProtocol, ResourceId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most reasons in a message: the number of different taints has no limit.
const REASONS_MAX: usize = 8;

/// The verb and the object of a sentence about one node, and about several.
pub(super) type Predicate = (String, String);

/// The obstacles for a request that is infeasible: how many pods fit, and how many nodes have each reason. Costs the
/// nodes and their pods.
pub(super) fn message(
    cluster: &GangCluster,
    request: &PlacementRequest<'_>,
    pod_plan: &PodPlan<'_>,
    outcome: &GangOutcome,
) -> String {
    let never = matches!(
        outcome,
        GangOutcome::Ineligible(IneligibleReason::PolicyNever)
    );
    let hosts: Vec<HostId> = cluster.cluster().hosts().collect();
    if hosts.is_empty() {
        return "the cluster has no nodes".to_owned();
    }
    let table = InterPodTable::new(cluster.cluster(), &pod_plan.pods, std::iter::empty());
    let mut counts = table
        .as_ref()
        .map(|it| surrounding_pods::counts(cluster, it, request, never));
    let (failing, placed) = match &mut counts {
        Some(counts) => {
            surrounding_pods::failing_pod(cluster, counts, request, &pod_plan.pods, never)
        }
        None => failing_pod(cluster, pod_plan, &hosts, outcome),
    };
    let pod_set = pod_plan.pod_set_at(failing);
    let pod = pod_plan.pods.get(failing);
    let around = counts.as_ref().zip(pod.copied());
    let mut reasons: BTreeMap<Predicate, usize> = BTreeMap::new();
    for host in &hosts {
        let reason =
            pod_set.and_then(|it| node_obstacle(cluster, request, it, around, *host, never));
        let Some(reason) = reason else {
            continue;
        };
        let count = reasons.entry(reason).or_default();
        *count = count.saturating_add(1);
    }
    let (total, nodes) = (pod_plan.pods.len(), nodes_text(hosts.len()));
    let pods = if total == 1 { "pod" } else { "pods" };
    let mut message = match placed {
        0 => format!("0 of {nodes} fit {total} {pods}"),
        placed => format!("only {placed} of {total} pods fit on {nodes}"),
    };
    if let Some(pod_set) = pod_set.filter(|_| pod_plan.pod_sets.len() > 1) {
        // Writing to a string returns no error.
        let _ = write!(message, " (pod set {:?})", pod_set.name);
    }
    if reasons.is_empty() {
        message.push_str(if never { "" } else { WITHOUT_LOWER });
    } else {
        message.push_str(": ");
        message.push_str(&reasons_text(reasons));
    }
    if never {
        message.push_str("; the preemption policy of the workload is Never");
    }
    message
}

const WITHOUT_LOWER: &str = " even without the pods of lower priority";

/// The index of the first pod that fits nowhere, and how many pods fit.
fn failing_pod(
    cluster: &GangCluster,
    pod_plan: &PodPlan<'_>,
    hosts: &[HostId],
    outcome: &GangOutcome,
) -> (usize, usize) {
    if let GangOutcome::Infeasible { domains } = outcome
        && let Some((None, InfeasibleReason::NoPlacement { pod, placed, .. })) = domains.first()
    {
        let mut pods = pod_plan.pods.iter();
        let at = pods.position(|it| Some(*it) == *pod);
        return (at.unwrap_or_default(), *placed);
    }
    // Without potential victims, the core places no pods.
    let cluster = cluster.cluster();
    let mut overlay = Overlay::dense(cluster, cluster.hosts_len(), cluster.resources_len());
    let shapes = pod_plan.shapes();
    let placement = place(cluster, &mut overlay, hosts, &shapes, Strategy::default());
    let failing = placement.iter().position(Option::is_none);
    (
        failing.unwrap_or_default(),
        placement.iter().flatten().count(),
    )
}

/// Why a node is infeasible for one pod, even without the pods of lower priority; with them if the workload `never` preempts.
/// `around` is a pod of the request and the pods around it, if they restrict it.
pub(super) fn node_obstacle(
    cluster: &GangCluster,
    request: &PlacementRequest<'_>,
    pod_set: &PodSetShape<'_>,
    around: Option<(&InterPodCounts<'_>, PodId)>,
    host: HostId,
    never: bool,
) -> Option<Predicate> {
    let node = cluster.cluster().host(host)?;
    let shape = cluster.cluster().shape_of(pod_set.shape);
    if let Some(rejection) = shape.rejection_by(node, cluster.cluster().symbols()) {
        return Some(rejection_predicate(cluster, pod_set, rejection));
    }
    let workloads = cluster.workloads();
    let lower = node.pods().iter().copied();
    let lower = lower.filter(|it| !never && workloads.preemption_priority(*it) < request.priority);
    let mut freed: BTreeMap<ResourceId, Amount> = BTreeMap::new();
    for (resource, amount) in lower.flat_map(|it| cluster.cluster().requests(it)) {
        let sum = freed.entry(*resource).or_default();
        *sum = sum.plus(*amount);
    }
    let requests = shape.requests.iter();
    let short = requests.filter(|(resource, amount)| {
        let freed = freed.get(resource).copied().unwrap_or_default();
        *amount > node.free_amount(*resource).plus(freed)
    });
    let short: Vec<ResourceId> = short.map(|(resource, _)| *resource).collect();
    let tail = if never { "" } else { WITHOUT_LOWER };
    if short.is_empty() {
        let (counts, pod) = around?;
        let (one, several) = inter_pod_predicate(cluster, counts.rejection_of(pod, host)?);
        return Some((format!("{one}{tail}"), format!("{several}{tail}")));
    }
    Some(has(&format!("{}{tail}", shortage_text(cluster, &short))))
}

/// Why a nominated node is no longer feasible for a pod: the predicate of a sentence about the node.
pub(super) fn nomination_obstacle(
    cluster: &GangCluster,
    pod_set: &PodSetShape<'_>,
    reason: &InfeasibleReason,
) -> String {
    match reason {
        InfeasibleReason::Rejected(it) => rejection_predicate(cluster, pod_set, *it).0,
        InfeasibleReason::RejectedByPods(it) => inter_pod_predicate(cluster, *it).0,
        InfeasibleReason::InsufficientResources { resources } => {
            has(&shortage_text(cluster, resources)).0
        }
        _ => "is infeasible".to_owned(),
    }
}

fn rejection_predicate(
    cluster: &GangCluster,
    pod_set: &PodSetShape<'_>,
    rejection: FilterRejection,
) -> Predicate {
    let both = |one: &str, several: &str| (one.to_owned(), several.to_owned());
    match rejection {
        FilterRejection::NodeNotFound => both("does not exist", "do not exist"),
        FilterRejection::Unschedulable => both("is cordoned", "are cordoned"),
        FilterRejection::SelectorMismatch => both(
            "does not match the node selector",
            "do not match the node selector",
        ),
        FilterRejection::UntoleratedTaint { key } => has(&format!(
            "the taint {}, which the pods do not tolerate",
            cluster.cluster().symbols().text(key)
        )),
        FilterRejection::UnknownResource => has(&format!(
            "no {}",
            pod_set.unknown_resources.join(" and no ")
        )),
        FilterRejection::InsufficientAllocatable { resource, .. } => has(&format!(
            "less {} than a pod requests",
            resources_text(cluster, &[resource])
        )),
        _ => both("is infeasible", "are infeasible"),
    }
}

fn has(object: &str) -> Predicate {
    (format!("has {object}"), format!("have {object}"))
}

/// What a node has too little of, and which of its ports are in use.
fn shortage_text(cluster: &GangCluster, short: &[ResourceId]) -> String {
    let ports = short.iter().filter_map(|it| it.as_host_port());
    let ports: Vec<String> = ports
        .map(|(protocol, port)| format!("{port}/{}", protocol_name(protocol)))
        .collect();
    let others = short.iter().copied().filter(|it| !it.is_host_port());
    let others: Vec<ResourceId> = others.collect();
    let mut texts = Vec::new();
    if !others.is_empty() {
        texts.push(format!("too little {}", resources_text(cluster, &others)));
    }
    if !ports.is_empty() {
        texts.push(format!("host port {} in use", ports.join(" and ")));
    }
    texts.join(" and ")
}

const fn protocol_name(protocol: PortProtocol) -> &'static str {
    match protocol {
        PortProtocol::Tcp => "TCP",
        PortProtocol::Udp => "UDP",
        PortProtocol::Sctp => "SCTP",
    }
}

fn resources_text(cluster: &GangCluster, resources: &[ResourceId]) -> String {
    let names = resources.iter().map(|it| match *it {
        ResourceId::PODS => "room for more pods",
        resource => cluster.cluster().resource_name(resource),
    });
    names.collect::<Vec<_>>().join(" and ")
}

/// The reasons, the most frequent first.
fn reasons_text(reasons: BTreeMap<Predicate, usize>) -> String {
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| Reverse(*count));
    let others = reasons.split_off(reasons.len().min(REASONS_MAX));
    let texts = reasons.into_iter().map(|((one, several), count)| {
        let predicate = if count == 1 { one } else { several };
        format!("{} {predicate}", nodes_text(count))
    });
    let mut texts: Vec<String> = texts.collect();
    let others: usize = others.into_iter().map(|(_, count)| count).sum();
    if others > 0 {
        texts.push(format!("{} for other reasons", nodes_text(others)));
    }
    texts.join(", ")
}

fn nodes_text(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
