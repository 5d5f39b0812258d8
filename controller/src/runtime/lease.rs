//! Lease records: whether a lease can be acquired, and the record to write.
//!
//! As in client-go, a lease is free when its record has not changed for the lease duration, measured by the
//! observer's own clock. Clocks of different machines are never compared.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::time::Duration;

/// Durations of the leader election, as in client-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTiming {
    /// After this time without a renewal other candidates may acquire the lease.
    pub duration: Duration,
    /// After this time without a renewal the leader stops writing; shorter than `duration`.
    pub renew_deadline: Duration,
    /// The pause between two attempts.
    pub retry_period: Duration,
}

/// Added to the time that a new leader waits for the writes of the former one.
const TAKEOVER_MARGIN: Duration = Duration::from_secs(2);

/// The shortest time limit of one request about the lease.
const REQUEST_TIMEOUT_MIN: Duration = Duration::from_secs(1);

impl LeaseTiming {
    /// The time limit of each request about the lease: a renewal may need two, and a pause before them.
    pub(super) fn request_timeout(&self) -> Duration {
        let left = self.renew_deadline.saturating_sub(self.retry_period);
        (left / 2).max(REQUEST_TIMEOUT_MIN)
    }

    /// How long a new leader waits before it writes. A leader that has not released the lease may have sent a write
    /// at the end of its leadership, which the API server executes later: the write has a time limit, too.
    pub(super) fn takeover_wait(&self, waits_for_predecessor: bool) -> Duration {
        if !waits_for_predecessor {
            return Duration::ZERO;
        }
        let late = self.duration.saturating_sub(self.renew_deadline);
        late.saturating_add(TAKEOVER_MARGIN)
    }
}

/// The fields of a lease that change with each renewal: holder, renew time, transitions.
type LeaseRecord = (Option<String>, Option<MicroTime>, Option<i32>);

/// A candidate of the leader election.
#[derive(Debug)]
pub(super) struct LeaseCandidate {
    identity: String,
    timing: LeaseTiming,
    /// The record that was observed last, and since when, in milliseconds of this machine's clock.
    last_record: Option<(LeaseRecord, u64)>,
}

impl LeaseCandidate {
    pub(super) fn new(identity: String, timing: LeaseTiming) -> Self {
        Self {
            identity,
            timing,
            last_record: None,
        }
    }

    /// Whether another candidate holds the lease, or held it until it expired.
    pub(super) fn is_foreign(&self, lease: Option<&LeaseSpec>) -> bool {
        let holder = lease.and_then(|it| it.holder_identity.as_deref());
        holder.is_some_and(|it| !it.is_empty() && it != self.identity)
    }

    /// The record to write if the lease is ours or free; `None` if another candidate holds it.
    pub(super) fn try_acquire(
        &mut self,
        lease: Option<&LeaseSpec>,
        now_ms: u64,
        wall: &MicroTime,
    ) -> Option<LeaseSpec> {
        let none = LeaseSpec::default();
        let lease = lease.unwrap_or(&none);
        let holder = lease.holder_identity.as_deref().unwrap_or_default();
        let is_mine = holder == self.identity;
        if !is_mine && !holder.is_empty() && !self.is_expired(lease, now_ms) {
            return None;
        }
        let seconds = i32::try_from(self.timing.duration.as_secs()).unwrap_or(i32::MAX);
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

    fn is_expired(&mut self, lease: &LeaseSpec, now_ms: u64) -> bool {
        let record = (
            lease.holder_identity.clone(),
            lease.renew_time.clone(),
            lease.lease_transitions,
        );
        match &self.last_record {
            Some((before, since_ms)) if *before == record => {
                // The duration in the record, as in client-go: settings of replicas may differ.
                let seconds = lease.lease_duration_seconds.unwrap_or_default();
                let good_ms = u64::try_from(seconds)
                    .unwrap_or_default()
                    .saturating_mul(1000);
                now_ms.saturating_sub(*since_ms) >= good_ms
            }
            _ => {
                // A changed record shows that its holder is alive: its duration starts now.
                self.last_record = Some((record, now_ms));
                false
            }
        }
    }

    /// The record that releases the lease, so that the next leader need not wait; `None` if it is not ours.
    pub(super) fn release(&self, lease: &LeaseSpec, wall: &MicroTime) -> Option<LeaseSpec> {
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

    fn candidate(name: &str) -> LeaseCandidate {
        let timing = LeaseTiming {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        };
        LeaseCandidate::new(name.to_owned(), timing)
    }

    #[test]
    fn lease_candidate_empty_lease_is_acquired_and_renewed() {
        let mut a = candidate("a");
        let first = a.try_acquire(None, 0, &wall(100)).unwrap();
        assert_eq!(first.holder_identity.as_deref(), Some("a"));
        assert_eq!(first.lease_transitions, Some(1));
        let next = a.try_acquire(Some(&first), 2_000, &wall(102)).unwrap();
        assert_eq!(next.acquire_time, first.acquire_time);
        assert_eq!(next.renew_time, Some(wall(102)));
        assert_eq!(next.lease_transitions, Some(1));
    }

    #[test]
    fn lease_candidate_unchanged_lease_expires_after_its_duration() {
        let (mut a, mut b) = (candidate("a"), candidate("b"));
        let mut lease = a.try_acquire(None, 0, &wall(100)).unwrap();
        // Wall clocks do not matter, only the time at which b first observed the record.
        assert_eq!(b.try_acquire(Some(&lease), 1_000, &wall(9_999)), None);
        assert_eq!(b.try_acquire(Some(&lease), 15_999, &wall(9_999)), None);
        lease = a.try_acquire(Some(&lease), 20_000, &wall(120)).unwrap();
        assert_eq!(b.try_acquire(Some(&lease), 16_000, &wall(9_999)), None);
        assert_eq!(b.try_acquire(Some(&lease), 30_999, &wall(9_999)), None);
        let taken = b.try_acquire(Some(&lease), 31_000, &wall(9_999)).unwrap();
        assert_eq!(taken.holder_identity.as_deref(), Some("b"));
        assert_eq!(taken.lease_transitions, Some(2));
        assert_eq!(a.try_acquire(Some(&taken), 22_000, &wall(122)), None);
    }

    #[test]
    fn lease_request_timeout_allows_two_slow_requests_before_the_deadline() {
        let timing = candidate("a").timing;
        assert_eq!(timing.request_timeout(), Duration::from_secs(4));
        let all = timing.request_timeout() * 2 + timing.retry_period;
        assert!(all <= timing.renew_deadline);
        let short = LeaseTiming {
            duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_secs(1),
        };
        assert_eq!(short.request_timeout(), Duration::from_secs(1));
    }

    #[test]
    fn lease_takeover_waits_unless_lease_was_released() {
        let (mut a, b) = (candidate("a"), candidate("b"));
        let lease = a.try_acquire(None, 0, &wall(100)).unwrap();
        assert!(b.is_foreign(Some(&lease)));
        assert!(!a.is_foreign(Some(&lease)));
        let free = a.release(&lease, &wall(101)).unwrap();
        assert!(!b.is_foreign(Some(&free)) && !b.is_foreign(None));
        let timing = b.timing;
        assert_eq!(timing.takeover_wait(true), Duration::from_secs(7));
        assert_eq!(timing.takeover_wait(false), Duration::ZERO);
    }

    #[test]
    fn lease_candidate_released_lease_is_acquired_at_once() {
        let (mut a, mut b) = (candidate("a"), candidate("b"));
        let lease = a.try_acquire(None, 0, &wall(100)).unwrap();
        assert_eq!(b.release(&lease, &wall(101)), None);
        let free = a.release(&lease, &wall(101)).unwrap();
        let taken = b.try_acquire(Some(&free), 0, &wall(101)).unwrap();
        assert_eq!(taken.holder_identity.as_deref(), Some("b"));
    }
}
