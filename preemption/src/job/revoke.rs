//! Koordinator's revocation: a quota that uses more than its runtime quota for too long gives pods up. Off by
//! default.
//!
//! Source: Koordinator `elasticquota/quota_overuse_revoke.go`. Who is least important goes first: the lower
//! priority, then the younger, then the later in the list.
//!
//! What differs: pods that are equal in both are told apart by their place; Koordinator leaves it open.

use super::class::Class;
use super::resources::Resources;
use std::cmp::Reverse;

/// A pod that has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Its priority.
    pub priority: i32,
    /// Since when it runs, in seconds.
    pub started_s: i64,
    /// Whether it may go.
    pub class: Class,
    /// What it asks for.
    pub request: Resources,
}

/// Which pods go, by their place in the list.
///
/// Preemptible pods are taken, the least important first, until no more is used than there is. If that
/// never happens all of them go, in this order. Otherwise whoever still fits is let off, the most important
/// first; the rest goes, the most important first.
///
/// As in Koordinator, once a pod is taken or put back only the resources that it asks for are looked at.
#[must_use]
pub fn revoked(used: &Resources, runtime: &Resources, pods: &[Assigned]) -> Vec<usize> {
    let mut order: Vec<(usize, &Assigned)> = pods.iter().enumerate().collect();
    order.retain(|(_, pod)| pod.class == Class::Preemptible);
    order.sort_by_key(|(at, pod)| (pod.priority, Reverse(pod.started_s), Reverse(*at)));
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
pub struct OverUse {
    /// When it last did not, in seconds.
    since_s: i64,
}

impl OverUse {
    /// A quota that is looked at from now on.
    #[must_use]
    pub const fn from(now_s: i64) -> Self {
        Self { since_s: now_s }
    }

    /// Whether it is to give pods up: it has used too much for longer than the delay, in seconds. Then the
    /// time begins anew.
    pub fn is_due(
        &mut self,
        used: &Resources,
        runtime: &Resources,
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
    use super::{Assigned, Class, OverUse, Resources, revoked};
    use crate::amount::Amount;
    use crate::names::ResourceId;

    fn cpu(amount: i64) -> Resources {
        Resources::of([(ResourceId(1), Amount::new(amount))])
    }

    fn pod(priority: i32, started_s: i64, amount: i64) -> Assigned {
        Assigned {
            priority,
            started_s,
            class: Class::Preemptible,
            request: cpu(amount),
        }
    }

    #[test]
    fn the_least_important_go_and_who_fits_comes_back() {
        let fixed = Assigned {
            class: Class::NonPreemptible,
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
                revoked(&cpu(used), &cpu(runtime), &pods),
                expected,
                "{pods:?}"
            );
        }
    }

    #[test]
    fn over_use_must_last_longer_than_the_delay() {
        let mut over = OverUse::from(0);
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
