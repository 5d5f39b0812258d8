//! Who leads: what a Lease says, and what to write into it.
//!
//! As client-go does it: a lease is free when its record has not changed for its own duration, by the clock
//! of who looks. Clocks of different machines are never compared.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::time::Duration;

/// For how long a lease is good, and how often it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// After this time without a renewal others may take it.
    pub lease: Duration,
    /// After this time without a renewal the leader writes no more. It is shorter than the lease.
    pub renew: Duration,
    /// Between two looks.
    pub retry: Duration,
}

/// What others have written into a lease.
type Record = (Option<String>, Option<MicroTime>, Option<i32>);

/// One who may lead.
#[derive(Debug)]
pub(super) struct Candidate {
    identity: String,
    terms: Terms,
    /// The record that was seen last, and since when, in milliseconds of this machine's own clock.
    seen: Option<(Record, u64)>,
}

impl Candidate {
    pub(super) fn new(identity: String, terms: Terms) -> Self {
        Self {
            identity,
            terms,
            seen: None,
        }
    }

    /// The same one, who has seen nothing yet.
    pub(super) fn again(&self) -> Self {
        Self::new(self.identity.clone(), self.terms)
    }

    /// What to write, if it is ours or free; `None` if another has it.
    pub(super) fn look(
        &mut self,
        lease: Option<&LeaseSpec>,
        now_ms: u64,
        wall: &MicroTime,
    ) -> Option<LeaseSpec> {
        let none = LeaseSpec::default();
        let lease = lease.unwrap_or(&none);
        let holder = lease.holder_identity.as_deref().unwrap_or_default();
        let is_mine = holder == self.identity;
        if !is_mine && !holder.is_empty() && !self.has_run_out(lease, now_ms) {
            return None;
        }
        let seconds = i32::try_from(self.terms.lease.as_secs()).unwrap_or(i32::MAX);
        let transitions = lease.lease_transitions.unwrap_or_default();
        Some(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(wall.clone()),
            acquire_time: if is_mine {
                lease.acquire_time.clone()
            } else {
                Some(wall.clone())
            },
            lease_transitions: Some(if is_mine {
                transitions
            } else {
                transitions.saturating_add(1)
            }),
            ..LeaseSpec::default()
        })
    }

    fn has_run_out(&mut self, lease: &LeaseSpec, now_ms: u64) -> bool {
        let record = (
            lease.holder_identity.clone(),
            lease.renew_time.clone(),
            lease.lease_transitions,
        );
        match &self.seen {
            Some((before, since_ms)) if *before == record => {
                let seconds = lease.lease_duration_seconds.unwrap_or_default();
                let good_ms = u64::try_from(seconds)
                    .unwrap_or_default()
                    .saturating_mul(1000);
                now_ms.saturating_sub(*since_ms) >= good_ms
            }
            _ => {
                self.seen = Some((record, now_ms));
                false
            }
        }
    }

    /// The lease given back, so that the next one need not wait; `None` if it is not ours.
    pub(super) fn give_back(&self, lease: &LeaseSpec, wall: &MicroTime) -> Option<LeaseSpec> {
        let is_mine = lease.holder_identity.as_deref() == Some(self.identity.as_str());
        is_mine.then(|| LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            renew_time: Some(wall.clone()),
            ..lease.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use k8s_openapi::jiff::Timestamp;

    fn wall(second: i64) -> MicroTime {
        MicroTime(Timestamp::from_second(second).unwrap())
    }

    fn candidate(name: &str) -> Candidate {
        let terms = Terms {
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        };
        Candidate::new(name.to_owned(), terms)
    }

    #[test]
    fn an_empty_lease_is_taken_and_renewed() {
        let mut a = candidate("a");
        let first = a.look(None, 0, &wall(100)).unwrap();
        assert_eq!(first.holder_identity.as_deref(), Some("a"));
        assert_eq!(first.lease_transitions, Some(1));
        let next = a.look(Some(&first), 2_000, &wall(102)).unwrap();
        assert_eq!(next.acquire_time, first.acquire_time);
        assert_eq!(next.renew_time, Some(wall(102)));
        assert_eq!(next.lease_transitions, Some(1));
    }

    #[test]
    fn a_lease_is_free_when_it_has_not_changed_for_its_time() {
        let (mut a, mut b) = (candidate("a"), candidate("b"));
        let mut lease = a.look(None, 0, &wall(100)).unwrap();
        // Whatever the clocks say: what counts is when b first saw it.
        assert_eq!(b.look(Some(&lease), 1_000, &wall(9_999)), None);
        assert_eq!(b.look(Some(&lease), 15_999, &wall(9_999)), None);
        lease = a.look(Some(&lease), 20_000, &wall(120)).unwrap();
        assert_eq!(b.look(Some(&lease), 16_000, &wall(9_999)), None);
        assert_eq!(b.look(Some(&lease), 30_999, &wall(9_999)), None);
        let taken = b.look(Some(&lease), 31_000, &wall(9_999)).unwrap();
        assert_eq!(taken.holder_identity.as_deref(), Some("b"));
        assert_eq!(taken.lease_transitions, Some(2));
        assert_eq!(a.look(Some(&taken), 22_000, &wall(122)), None);
    }

    #[test]
    fn who_gives_it_back_holds_up_nobody() {
        let (mut a, mut b) = (candidate("a"), candidate("b"));
        let lease = a.look(None, 0, &wall(100)).unwrap();
        assert_eq!(b.give_back(&lease, &wall(101)), None);
        let free = a.give_back(&lease, &wall(101)).unwrap();
        let taken = b.look(Some(&free), 0, &wall(101)).unwrap();
        assert_eq!(taken.holder_identity.as_deref(), Some("b"));
    }
}
