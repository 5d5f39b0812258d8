//! kube-scheduler's message for a decision.

use lockkeeper_preemption::ResourceId;
use lockkeeper_preemption::gang::{GangCluster, GangOutcome, IneligibleReason, InfeasibleReason};
use lockkeeper_preemption::placement::InterPodRejection;
use std::collections::BTreeMap;

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// The message of kube-scheduler v1.37 for a decision on a pod or group: the text of events and of
/// `status.conditions`, without the plugin name as a prefix.
#[must_use]
pub fn scheduler_message(
    gang_cluster: &GangCluster,
    is_gang: bool,
    outcome: &GangOutcome,
) -> String {
    let pods = |units: &[lockkeeper_preemption::UnitId]| {
        let units = units.iter().filter_map(|it| gang_cluster.units().get(*it));
        units.map(|it| it.pods().len()).sum::<usize>()
    };
    match outcome {
        GangOutcome::Fits { .. } => String::new(),
        GangOutcome::Preempt(plan) => {
            let victims = pods(&plan.victims);
            match plan.host {
                Some(host) => format!(
                    "found a potential placement for pod on node {}, preempting {victims} victims",
                    gang_cluster.cluster().host_name(host)
                ),
                None => format!("found a placement for podgroup, preempting {victims} victims"),
            }
        }
        GangOutcome::AwaitingVictims { .. } => "ongoing preemption on nominated nodes".to_owned(),
        GangOutcome::Ineligible(IneligibleReason::PolicyNever) => {
            "not eligible due to preemptionPolicy=Never.".to_owned()
        }
        GangOutcome::Ineligible(_) => {
            "not eligible due to a terminating pod on the nominated node.".to_owned()
        }
        GangOutcome::Infeasible { domains } if is_gang => match domains.first() {
            Some((_, InfeasibleReason::NoLowerPriority)) => {
                "No preemption victims found for incoming preemptor".to_owned()
            }
            _ => "placement infeasible".to_owned(),
        },
        GangOutcome::Infeasible { domains } => unavailable_nodes(gang_cluster, domains),
    }
}

/// The number of unsuitable nodes by reason. Source: kube-scheduler v1.37, `FitError.Error`.
fn unavailable_nodes(
    gang_cluster: &GangCluster,
    domains: &[(Option<lockkeeper_preemption::HostId>, InfeasibleReason)],
) -> String {
    let all = gang_cluster.cluster().hosts().count();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |reason: String, more: usize| {
        let count = reasons.entry(reason).or_default();
        *count = count.saturating_add(more);
    };
    let mut seen = 0_usize;
    for (_, why) in domains {
        if let InfeasibleReason::Rejected(_) = why {
            continue;
        }
        seen = seen.saturating_add(1);
        for reason in node_reasons(gang_cluster, why) {
            add(reason, 1);
        }
    }
    let others = all.saturating_sub(seen);
    if others > 0 {
        add(NOT_HELPFUL.to_owned(), others);
    }
    let mut parts: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    parts.sort();
    format!("0/{all} nodes are available: {}.", parts.join(", "))
}

/// The reasons of the filters for a node, or of the search for victims on it.
#[must_use]
pub fn node_reasons(gang_cluster: &GangCluster, why: &InfeasibleReason) -> Vec<String> {
    match why {
        InfeasibleReason::NoLowerPriority => {
            vec!["No preemption victims found for incoming pod".to_owned()]
        }
        InfeasibleReason::RejectedByPods(rejection) => vec![pods_reason(*rejection).to_owned()],
        InfeasibleReason::InsufficientResources { resources: short } => {
            let each = short.iter().map(|it| match *it {
                ResourceId::PODS => "Too many pods".to_owned(),
                resource => format!(
                    "Insufficient {}",
                    gang_cluster.cluster().resource_name(resource)
                ),
            });
            each.collect()
        }
        _ => vec![NOT_HELPFUL.to_owned()],
    }
}

/// A node that lacks a topology key, or a pod that the affinity selects, is not searched for victims.
///
/// Source: kube-scheduler v1.37, plugins `InterPodAffinity` and `PodTopologySpread`.
const fn pods_reason(rejection: InterPodRejection) -> &'static str {
    match rejection {
        InterPodRejection::MissingTopologyKey { .. } | InterPodRejection::Affinity => NOT_HELPFUL,
        InterPodRejection::TopologySpread { .. } => {
            "node(s) didn't match pod topology spread constraints"
        }
        InterPodRejection::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
        _ => "node(s) didn't satisfy existing pods anti-affinity rules",
    }
}
