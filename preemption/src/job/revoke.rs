//! Koordinator's revocation: evicts pods of a quota that exceeds its runtime quota for too long. Off by default.
//!
//! Source: Koordinator `elasticquota/quota_overuse_revoke.go`. The least important pods are evicted first: lower
//! priority, then younger, then later in the list.
//!
//! Difference: the position in the list decides between pods of equal priority and age; Koordinator leaves it open.

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;
use std::cmp::Reverse;

/// A pod with a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedPod {
    /// Its priority.
    pub priority: i32,
    /// When it started, in seconds.
    pub started_at_s: i64,
    /// Whether it may be evicted.
    pub preemptibility: Preemptibility,
    /// Its requests.
    pub request: ResourceList,
}

/// The pods to evict, by index.
///
/// Preemptible pods are removed, the least important first, until the usage fits. If it never fits, all of them are
/// evicted, in this order. Otherwise pods that still fit are put back, the most important first; the others are
/// evicted, the most important first.
///
/// As in Koordinator, after a pod is removed or put back only its requested resources are compared.
#[must_use]
pub fn pods_to_revoke(
    used: &ResourceList,
    runtime: &ResourceList,
    pods: &[AssignedPod],
) -> Vec<usize> {
    let mut order: Vec<(usize, &AssignedPod)> = pods.iter().enumerate().collect();
    order.retain(|(_, pod)| pod.preemptibility == Preemptibility::Preemptible);
    order.sort_by_key(|(at, pod)| (pod.priority, Reverse(pod.started_at_s), Reverse(*at)));
    let mut used = used.clone();
    let mut removed = Vec::new();
    for (at, pod) in order {
        if used.fits(runtime) {
            break;
        }
        // Koordinator keeps only the names in the pod's requests after each step.
        used = used.minus(&pod.request).masked(&pod.request);
        removed.push((at, pod));
    }
    if !used.fits(runtime) {
        return removed.into_iter().map(|(at, _)| at).collect();
    }
    let mut revoked = Vec::new();
    for (at, pod) in removed.into_iter().rev() {
        let with = used.plus(&pod.request).masked(&pod.request);
        if with.fits(runtime) {
            used = with;
        } else {
            used = with.minus(&pod.request);
            revoked.push(at);
        }
    }
    revoked
}

/// Measures how long a quota has exceeded its runtime quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OveruseTimer {
    /// When it last did not exceed it, in seconds.
    since_s: i64,
}

impl OveruseTimer {
    /// A timer for a quota that is observed from now on.
    #[must_use]
    pub const fn starting_at(now_s: i64) -> Self {
        Self { since_s: now_s }
    }

    /// Whether pods must be evicted: the quota has been exceeded for longer than the delay, in seconds. If so, the
    /// timer restarts.
    pub fn is_due(
        &mut self,
        used: &ResourceList,
        runtime: &ResourceList,
        now_s: i64,
        delay_s: i64,
    ) -> bool {
        let is_over = !used.fits(runtime);
        let is_due = is_over && now_s.saturating_sub(self.since_s) > delay_s;
        // Koordinator restarts the clock after a revocation, so the next one waits as long.
        if is_due || !is_over {
            self.since_s = now_s;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::{AssignedPod, OveruseTimer, Preemptibility, ResourceList, pods_to_revoke};
    use crate::amount::Amount;
    use crate::ids::ResourceId;

    fn cpu(amount: i64) -> ResourceList {
        ResourceList::from_pairs([(ResourceId(1), Amount::new(amount))])
    }

    fn pod(priority: i32, started_s: i64, amount: i64) -> AssignedPod {
        AssignedPod {
            priority,
            started_at_s: started_s,
            preemptibility: Preemptibility::Preemptible,
            request: cpu(amount),
        }
    }

    #[test]
    fn pods_to_revoke_takes_least_important_first() {
        let fixed = AssignedPod {
            preemptibility: Preemptibility::NonPreemptible,
            ..pod(0, 0, 9)
        };
        for (used, runtime, pods, expected) in [
            (4, 4, vec![pod(1, 0, 4)], vec![]),
            (4, 3, vec![pod(1, 0, 2), pod(2, 0, 2)], vec![0]),
            // With equal priority the younger, then the later pod is evicted.
            (4, 3, vec![pod(1, 5, 2), pod(1, 9, 2)], vec![1]),
            (4, 3, vec![pod(1, 9, 2), pod(1, 9, 2)], vec![1]),
            // The small pod is put back.
            (6, 2, vec![pod(1, 0, 2), pod(2, 0, 4)], vec![1]),
            // Never enough: all preemptible pods are evicted.
            (13, 3, vec![pod(2, 0, 2), fixed, pod(1, 0, 2)], vec![2, 0]),
        ] {
            assert_eq!(
                pods_to_revoke(&cpu(used), &cpu(runtime), &pods),
                expected,
                "{pods:?}"
            );
        }
    }

    #[test]
    fn overuse_within_delay_is_not_due() {
        let mut over = OveruseTimer::starting_at(0);
        let (low, high, runtime) = (cpu(1), cpu(3), cpu(2));
        assert!(!over.is_due(&high, &runtime, 120, 120));
        assert!(over.is_due(&high, &runtime, 121, 120));
        // The timer has restarted.
        assert!(!over.is_due(&high, &runtime, 241, 120));
        assert!(!over.is_due(&low, &runtime, 300, 120));
        assert!(!over.is_due(&high, &runtime, 420, 120));
        assert!(over.is_due(&high, &runtime, 421, 120));
    }
}
