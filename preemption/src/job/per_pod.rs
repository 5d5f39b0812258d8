//! Koordinator's own elastic quota plugin: pod by pod, within one quota. Off by default; jobs are decided as a whole
//! ([`super::preempt`]).
//!
//! Source: Koordinator `elasticquota/plugin.go` (`PreFilter`, `checkQuotaRecursive`, `AddPod`, `RemovePod`) and
//! `elasticquota/preempt.go` (`canPreempt`, `SelectVictimsOnNode`).

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;
use crate::amount::Amount;
use crate::ids::ResourceId;
use std::cmp::Reverse;

/// A quota, for the check of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodQuota {
    /// The limit: the runtime quota, or max without one.
    pub limit: ResourceList,
    /// The usage.
    pub used: ResourceList,
    /// The limit of non-preemptible pods.
    pub min: ResourceList,
    /// The usage of non-preemptible pods.
    pub non_preemptible_used: ResourceList,
}

/// The limit that a pod would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// The limit of its own quota or of an ancestor.
    Limit {
        /// The number of levels above its own quota.
        level: usize,
        /// The exceeding resources, sorted.
        over: Vec<ResourceId>,
    },
    /// The min of its own quota; it is non-preemptible.
    Min {
        /// The exceeding resources, sorted.
        over: Vec<ResourceId>,
    },
}

/// Checks the quota of one pod. `path` is its quota, followed by the ancestors if they are checked; of these only
/// `limit` and `used` count. The quota's max must contain every requested resource.
///
/// # Errors
///
/// The first limit that would be exceeded.
pub fn check_pod_quota(
    request: &ResourceList,
    class: Preemptibility,
    path: &[PodQuota],
) -> Result<(), QuotaExceeded> {
    let mut path = path.iter().enumerate();
    let check = |level: usize, quota: &PodQuota| {
        let over = quota.used.plus(request).exceeding(&quota.limit);
        if over.is_empty() {
            return Ok(());
        }
        Err(QuotaExceeded::Limit { level, over })
    };
    if let Some((level, own)) = path.next() {
        check(level, own)?;
        if class == Preemptibility::NonPreemptible {
            let over = own.non_preemptible_used.plus(request).exceeding(&own.min);
            if !over.is_empty() {
                return Err(QuotaExceeded::Min { over });
            }
        }
    }
    // `checkQuotaRecursive` compares ancestors with their limit only, not with min.
    path.try_for_each(|(level, quota)| check(level, quota))
}

/// A pod on a node, or the preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPod {
    /// Its quota; equal numbers are the same quota.
    pub quota: u32,
    /// Its preemptibility.
    pub preemptibility: Preemptibility,
    /// Its priority.
    pub priority: i32,
    /// When it started, in seconds.
    pub started_at_s: i64,
    /// Its requests.
    pub request: ResourceList,
    /// Whether its eviction violates a `PodDisruptionBudget`.
    pub violates_budget: bool,
}

/// Whether one pod may preempt another: same quota, lower priority, preemptible. Pods of the `exempt` quota,
/// Koordinator's default quota, are never preempted.
#[must_use]
pub fn may_preempt_pod(preemptor: &QuotaPod, other: &QuotaPod, exempt: Option<u32>) -> bool {
    other.preemptibility == Preemptibility::Preemptible
        && other.priority < preemptor.priority
        && other.quota == preemptor.quota
        && exempt != Some(other.quota)
}

/// The result for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeVictims {
    /// The pod fits without these pods, given by index, in the order in which they were tried.
    Fits {
        /// The victims; may be empty.
        victims: Vec<usize>,
        /// How many of them violate a budget. Victims only because of quota are not counted.
        violations: usize,
    },
    /// No pod on the node may be preempted.
    NoCandidates,
    /// The pod does not fit even without all candidates.
    DoesNotFit,
    /// A candidate does not fit beside the pod, and even without it quota is missing: Koordinator removes it twice,
    /// fails, and skips the node.
    RemovedTwice,
}

/// A node with its pods, and the quota of the preemptor.
#[derive(Clone, Copy, Debug)]
pub struct NodeAndQuota<'a> {
    /// The allocatable resources; a missing resource is not limited.
    pub allocatable: &'a ResourceList,
    /// All pods on it.
    pub pods: &'a [QuotaPod],
    /// The usage of the preemptor's quota, including its pods on this node.
    pub used: &'a ResourceList,
    /// The limit of the preemptor's quota.
    pub limit: &'a ResourceList,
}

/// Selects the victims on a node for one pod.
///
/// All candidates are removed; then each is put back if the pod still fits and has quota: first those with evictions
/// that violate a budget, the most important first.
#[must_use]
pub fn victims_on_node(
    on: NodeAndQuota<'_>,
    preemptor: &QuotaPod,
    exempt: Option<u32>,
) -> NodeVictims {
    let mut room = on
        .allocatable
        .minus(&preemptor.request)
        .masked(on.allocatable);
    let mut used = on.used.clone();
    let mut removed = Vec::new();
    for (at, pod) in on.pods.iter().enumerate() {
        if may_preempt_pod(preemptor, pod, exempt) {
            used = used.minus(&pod.request).masked(on.used).clamped_at_zero();
            removed.push((at, pod));
        } else {
            room = room.minus(&pod.request).masked(on.allocatable);
        }
    }
    if removed.is_empty() {
        return NodeVictims::NoCandidates;
    }
    if is_overdrawn(&room) {
        return NodeVictims::DoesNotFit;
    }
    removed.sort_by_key(|(at, pod)| {
        let importance = (Reverse(pod.priority), pod.started_at_s, *at);
        // `false` sorts first: pods whose eviction violates a budget are put back first.
        (!pod.violates_budget, importance)
    });
    let (mut victims, mut violations) = (Vec::new(), 0_usize);
    let has_quota = |used: &ResourceList| {
        used.plus(&preemptor.request)
            .masked(&preemptor.request)
            .fits(on.limit)
    };
    for (at, pod) in removed {
        let with = room.minus(&pod.request).masked(on.allocatable);
        let fits = !is_overdrawn(&with);
        let used_with = used.plus(&pod.request).masked(on.used);
        // Koordinator takes the pod out again after a failed filter, then checks the quota
        // without it; if that fails too, the pod is taken out a second time, which is an error.
        match (fits, has_quota(if fits { &used_with } else { &used })) {
            (true, true) => (room, used) = (with, used_with),
            // A victim only because of quota: Koordinator does not count its violation.
            (true, false) => victims.push(at),
            (false, true) => {
                victims.push(at);
                violations = violations.saturating_add(usize::from(pod.violates_budget));
            }
            (false, false) => return NodeVictims::RemovedTwice,
        }
    }
    NodeVictims::Fits {
        victims,
        violations,
    }
}

fn is_overdrawn(room: &ResourceList) -> bool {
    room.iter().any(|(_, amount)| amount < Amount::ZERO)
}

#[cfg(test)]
mod tests {
    use super::{
        NodeAndQuota, NodeVictims, Preemptibility, QuotaPod, ResourceList, victims_on_node,
    };
    use crate::amount::Amount;
    use crate::ids::ResourceId;

    fn cpu(amount: i64) -> ResourceList {
        ResourceList::from_pairs([(ResourceId(1), Amount::new(amount))])
    }

    fn pod(priority: i32, amount: i64) -> QuotaPod {
        QuotaPod {
            quota: 1,
            preemptibility: Preemptibility::Preemptible,
            priority,
            started_at_s: 0,
            request: cpu(amount),
            violates_budget: false,
        }
    }

    #[test]
    fn victims_on_node_cases() {
        let fragile = QuotaPod {
            violates_budget: true,
            ..pod(1, 2)
        };
        let fits = |victims: &[usize], violations| NodeVictims::Fits {
            victims: victims.to_vec(),
            violations,
        };
        // Node size, quota limit, pods on the node, request of the preemptor, expected result.
        for (node, quota, pods, request, expected) in [
            (4, 9, vec![pod(1, 2), pod(2, 2)], 2, fits(&[0], 0)),
            (4, 9, vec![pod(1, 2), pod(9, 2)], 3, NodeVictims::DoesNotFit),
            (4, 9, vec![pod(9, 2)], 2, NodeVictims::NoCandidates),
            // Room but no quota: the violation is not counted.
            (9, 3, vec![fragile.clone()], 2, fits(&[0], 0)),
            // The pod with an eviction that violates a budget is put back first.
            (4, 9, vec![pod(2, 2), fragile.clone()], 2, fits(&[0], 0)),
            (
                4,
                9,
                vec![fragile.clone(), fragile.clone()],
                2,
                fits(&[1], 1),
            ),
            // Neither room beside it nor quota without it.
            (2, 1, vec![pod(1, 2)], 2, NodeVictims::RemovedTwice),
        ] {
            let used = pods.iter().fold(cpu(0), |sum, it| sum.plus(&it.request));
            let on = NodeAndQuota {
                allocatable: &cpu(node),
                pods: &pods,
                used: &used,
                limit: &cpu(quota),
            };
            assert_eq!(
                victims_on_node(on, &pod(5, request), None),
                expected,
                "{pods:?}"
            );
            // Pods of the exempt quota are never victims.
            assert_eq!(
                victims_on_node(on, &pod(5, request), Some(1)),
                NodeVictims::NoCandidates
            );
        }
    }
}
