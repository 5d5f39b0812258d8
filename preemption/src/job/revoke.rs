//! Koordinator's revocation: a quota that uses more than its runtime quota for too long gives pods up. Off by
//! default.
//!
//! Source: Koordinator `elasticquota/quota_overuse_revoke.go`. Who is least important goes first: the lower
//! priority, then the younger, then the later in the list.
//!
//! What differs: pods that are equal in both are told apart by their place; Koordinator leaves it open.

use super::preemptibility::Preemptibility;
use super::resource_list::ResourceList;
use std::cmp::Reverse;

/// A pod that has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedPod {
    /// Its priority.
    pub priority: i32,
    /// Since when it runs, in seconds.
    pub started_at_s: i64,
    /// Whether it may go.
    pub preemptibility: Preemptibility,
    /// What it asks for.
    pub request: ResourceList,
}

/// Which pods go, by their place in the list.
///
/// Preemptible pods are taken, the least important first, until no more is used than there is. If that
/// never happens all of them go, in this order. Otherwise whoever still fits is let off, the most important
/// first; the rest goes, the most important first.
///
/// As in Koordinator, once a pod is taken or put back only the resources that it asks for are looked at.
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
    let mut taken = Vec::new();
    for (at, pod) in order {
        if used.fits(runtime) {
            break;
        }
        used = used.minus(&pod.request).masked(&pod.request);
        taken.push((at, pod));
    }
    if !used.fits(runtime) {
        return taken.into_iter().map(|(at, _)| at).collect();
    }
    let mut revoked = Vec::new();
    for (at, pod) in taken.into_iter().rev() {
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

/// Since when a quota has used more than its runtime quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OveruseTimer {
    /// When it last did not, in seconds.
    since_s: i64,
}

impl OveruseTimer {
    /// A quota that is looked at from now on.
    #[must_use]
    pub const fn starting_at(now_s: i64) -> Self {
        Self { since_s: now_s }
    }

    /// Whether it is to give pods up: it has used too much for longer than the delay, in seconds. Then the
    /// time begins anew.
    pub fn is_due(
        &mut self,
        used: &ResourceList,
        runtime: &ResourceList,
        now_s: i64,
        delay_s: i64,
    ) -> bool {
        let is_over = !used.fits(runtime);
        let is_due = is_over && now_s.saturating_sub(self.since_s) > delay_s;
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
            // Of equal priority the younger goes, and of those the later.
            (4, 3, vec![pod(1, 5, 2), pod(1, 9, 2)], vec![1]),
            (4, 3, vec![pod(1, 9, 2), pod(1, 9, 2)], vec![1]),
            // The small one need not have gone.
            (6, 2, vec![pod(1, 0, 2), pod(2, 0, 4)], vec![1]),
            // Never enough: all go, and the non-preemptible stays.
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
        // The time begins anew.
        assert!(!over.is_due(&high, &runtime, 241, 120));
        assert!(!over.is_due(&low, &runtime, 300, 120));
        assert!(!over.is_due(&high, &runtime, 420, 120));
        assert!(over.is_due(&high, &runtime, 421, 120));
    }
}
