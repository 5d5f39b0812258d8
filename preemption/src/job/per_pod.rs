//! Koordinator's elastic quota as its scheduler has it: pod by pod, within one quota. Off by default; jobs are
//! decided as a whole ([`super::preempt`]).
//!
//! Source: Koordinator `elasticquota/plugin.go` (`PreFilter`, `checkQuotaRecursive`, `AddPod`, `RemovePod`) and
//! `elasticquota/preempt.go` (`canPreempt`, `SelectVictimsOnNode`).

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;
use crate::amount::Amount;
use crate::ids::ResourceId;
use std::cmp::Reverse;

/// A quota as the check of one pod sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodQuota {
    /// What may be used: the runtime quota, or max where there is none.
    pub limit: ResourceList,
    /// What is used.
    pub used: ResourceList,
    /// What non-preemptible pods may use.
    pub min: ResourceList,
    /// What they use.
    pub non_preemptible_used: ResourceList,
}

/// Why a pod has no quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// It would pass what may be used, of its own quota or of one above.
    Limit {
        /// How far up, 0 for its own quota.
        level: usize,
        /// Of these resources, sorted.
        over: Vec<ResourceId>,
    },
    /// It is non-preemptible and would pass min.
    Min {
        /// Of these resources, sorted.
        over: Vec<ResourceId>,
    },
}

/// Whether there is quota for one pod. `path` is its quota first and then, if parents are asked at all,
/// those above; of these only `limit` and `used` count. The request must have no resource that the quota
/// does not name in its max.
///
/// # Errors
///
/// The first limit that would be passed.
pub fn check_pod_quota(
    request: &ResourceList,
    class: Preemptibility,
    path: &[PodQuota],
) -> Result<(), QuotaExceeded> {
    let mut path = path.iter().enumerate();
    let beyond = |level: usize, quota: &PodQuota| {
        let over = quota.used.plus(request).exceeding(&quota.limit);
        if over.is_empty() {
            return Ok(());
        }
        Err(QuotaExceeded::Limit { level, over })
    };
    if let Some((level, own)) = path.next() {
        beyond(level, own)?;
        if class == Preemptibility::NonPreemptible {
            let over = own.non_preemptible_used.plus(request).exceeding(&own.min);
            if !over.is_empty() {
                return Err(QuotaExceeded::Min { over });
            }
        }
    }
    path.try_for_each(|(level, quota)| beyond(level, quota))
}

/// A pod on a node, or one that wants to be on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaPod {
    /// Its quota; equal numbers are the same quota.
    pub quota: u32,
    /// Its class.
    pub preemptibility: Preemptibility,
    /// Its priority.
    pub priority: i32,
    /// Since when it runs, in seconds.
    pub started_at_s: i64,
    /// What it asks for.
    pub request: ResourceList,
    /// Whether it could only go against a `PodDisruptionBudget`.
    pub violates_budget: bool,
}

/// Whether one pod may take another: within one quota, of a lower priority, preemptible. `exempt` is the
/// quota in which nobody may be taken, Koordinator's default quota.
#[must_use]
pub fn may_preempt_pod(preemptor: &QuotaPod, other: &QuotaPod, exempt: Option<u32>) -> bool {
    other.preemptibility == Preemptibility::Preemptible
        && other.priority < preemptor.priority
        && other.quota == preemptor.quota
        && exempt != Some(other.quota)
}

/// What comes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeVictims {
    /// With these gone the pod fits; by their place in the list, in the order in which they were looked at.
    Fits {
        /// The victims; there may be none.
        victims: Vec<usize>,
        /// How many of them go against a budget. Who goes only for the sake of the quota is not counted.
        violations: usize,
    },
    /// Nobody there may be taken.
    NoCandidates,
    /// It does not fit with all gone that may be taken.
    DoesNotFit,
    /// A pod neither fits beside it nor, without it, is there quota: Koordinator takes it out twice and gives
    /// the node up.
    RemovedTwice,
}

/// A node with its pods, and the quota of who wants to be on it.
#[derive(Clone, Copy, Debug)]
pub struct NodeAndQuota<'a> {
    /// What the node has; what it does not name is not limited.
    pub allocatable: &'a ResourceList,
    /// All pods on it.
    pub pods: &'a [QuotaPod],
    /// What is used of the preemptor's quota, those pods included that are of it.
    pub used: &'a ResourceList,
    /// What may be used of it.
    pub limit: &'a ResourceList,
}

/// Who has to go from a node for one pod.
///
/// All that may be taken go; then each comes back if the pod still fits and its quota holds, those first
/// whose eviction breaks a budget, the most important first.
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
    let mut taken = Vec::new();
    for (at, pod) in on.pods.iter().enumerate() {
        if may_preempt_pod(preemptor, pod, exempt) {
            used = used.minus(&pod.request).masked(on.used).clamped_at_zero();
            taken.push((at, pod));
        } else {
            room = room.minus(&pod.request).masked(on.allocatable);
        }
    }
    if taken.is_empty() {
        return NodeVictims::NoCandidates;
    }
    if is_overdrawn(&room) {
        return NodeVictims::DoesNotFit;
    }
    taken.sort_by_key(|(at, pod)| {
        let importance = (Reverse(pod.priority), pod.started_at_s, *at);
        (!pod.violates_budget, importance)
    });
    let (mut victims, mut violations) = (Vec::new(), 0_usize);
    let has_quota = |used: &ResourceList| {
        used.plus(&preemptor.request)
            .masked(&preemptor.request)
            .fits(on.limit)
    };
    for (at, pod) in taken {
        let with = room.minus(&pod.request).masked(on.allocatable);
        let fits = !is_overdrawn(&with);
        let used_with = used.plus(&pod.request).masked(on.used);
        match (fits, has_quota(if fits { &used_with } else { &used })) {
            (true, true) => (room, used) = (with, used_with),
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
        // What the node has and what the quota has, who is there, what the preemptor wants, what comes of it.
        for (node, quota, pods, wants, expected) in [
            (4, 9, vec![pod(1, 2), pod(2, 2)], 2, fits(&[0], 0)),
            (4, 9, vec![pod(1, 2), pod(9, 2)], 3, NodeVictims::DoesNotFit),
            (4, 9, vec![pod(9, 2)], 2, NodeVictims::NoCandidates),
            // There is room, but no quota: no budget is counted as broken.
            (9, 3, vec![fragile.clone()], 2, fits(&[0], 0)),
            // The one whose eviction breaks a budget comes back first.
            (4, 9, vec![pod(2, 2), fragile.clone()], 2, fits(&[0], 0)),
            (
                4,
                9,
                vec![fragile.clone(), fragile.clone()],
                2,
                fits(&[1], 1),
            ),
            // There is neither room for it nor quota without it.
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
                victims_on_node(on, &pod(5, wants), None),
                expected,
                "{pods:?}"
            );
            // Nobody is taken in the quota that is exempt.
            assert_eq!(
                victims_on_node(on, &pod(5, wants), Some(1)),
                NodeVictims::NoCandidates
            );
        }
    }
}
