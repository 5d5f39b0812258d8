//! Preemption rounds with victims that still exist.
//!
//! Source: the proposal, step 7 of `PostFilter` (R12): another component deletes the
//! victims, and slowly; until they are gone their job preempts no others, or it would preempt more in every round.
//!
//! The proposal leaves open: a round expires, so that a victim that is never deleted does not block the job forever;
//! the number of rounds is limited; after a restart, rounds are restored from the labels of victims and the
//! nominations of preemptors.

use super::cluster::{JobCluster, JobId};
use crate::ids::PodId;
use std::collections::{BTreeMap, BTreeSet};

/// The limits of rounds in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundLimits {
    /// A round expires after this many seconds.
    pub expires_after_s: i64,
    /// The maximum number of jobs that wait for their victims.
    pub rounds_max: usize,
}

impl Default for RoundLimits {
    /// Ten minutes, and 4096 jobs.
    fn default() -> Self {
        Self {
            expires_after_s: 600,
            rounds_max: 4096,
        }
    }
}

/// The rounds in flight.
#[derive(Clone, Debug, Default)]
pub struct RoundsInFlight {
    limits: RoundLimits,
    rounds: BTreeMap<JobId, InFlightRound>,
    /// The jobs that wait for each victim.
    jobs_by_victim: BTreeMap<PodId, BTreeSet<JobId>>,
}

/// The round of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InFlightRound {
    started_at_s: i64,
    /// The victims that still exist. Never empty.
    victims: BTreeSet<PodId>,
}

/// Why no round may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedReason {
    /// Victims of the job's last round still exist.
    Unfinished {
        /// How many.
        victims: usize,
    },
    /// Too many jobs wait for their victims.
    TooMany {
        /// The limit.
        rounds_max: usize,
    },
}

impl RoundsInFlight {
    /// No rounds yet.
    #[must_use]
    pub fn new(limits: RoundLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Why a job may not begin a round at a time, in seconds; `None` if it may.
    #[must_use]
    pub fn blocked_reason(&self, job: JobId, now_s: i64) -> Option<BlockedReason> {
        let is_live = |round: &&InFlightRound| !self.has_expired(round, now_s);
        if let Some(round) = self.rounds.get(&job).filter(is_live) {
            let victims = round.victims.len();
            return Some(BlockedReason::Unfinished { victims });
        }
        let rounds_max = self.limits.rounds_max;
        // Expired rounds are counted only if the table is full: the scan costs all rounds.
        let is_full = self.rounds.len() >= rounds_max
            && self.rounds.values().filter(is_live).count() >= rounds_max;
        is_full.then_some(BlockedReason::TooMany { rounds_max })
    }

    /// Begins a round: the job waits for these pods. Without victims there is no round.
    pub fn begin(&mut self, job: JobId, victims: impl IntoIterator<Item = PodId>, now_s: i64) {
        // An expired round of the job may still be listed under its old victims.
        self.end(job);
        if self.rounds.len() >= self.limits.rounds_max {
            // `blocked_reason` does not count expired rounds, so make room for this one.
            self.expire(now_s);
        }
        let victims: BTreeSet<PodId> = victims.into_iter().collect();
        if victims.is_empty() || self.rounds.len() >= self.limits.rounds_max {
            return;
        }
        for victim in &victims {
            self.jobs_by_victim.entry(*victim).or_default().insert(job);
        }
        let since_s = now_s;
        self.rounds.insert(
            job,
            InFlightRound {
                started_at_s: since_s,
                victims,
            },
        );
    }

    /// Handles the removal of a pod: ends rounds that waited only for it, and its own round if it is a single-pod job.
    /// Must be called before the pod's id is reused. Costs the jobs that wait for it.
    pub fn pod_removed(&mut self, pod: PodId) {
        self.end(JobId::Pod(pod));
        for job in self.jobs_by_victim.remove(&pod).into_iter().flatten() {
            if let Some(round) = self.rounds.get_mut(&job) {
                round.victims.remove(&pod);
                if round.victims.is_empty() {
                    self.rounds.remove(&job);
                }
            }
        }
    }

    /// Ends the round of a job that was deleted or no longer needs victims.
    pub fn end(&mut self, job: JobId) {
        let round = self.rounds.remove(&job);
        for victim in round.into_iter().flat_map(|it| it.victims) {
            if let Some(jobs) = self.jobs_by_victim.get_mut(&victim) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.jobs_by_victim.remove(&victim);
                }
            }
        }
    }

    /// Ends expired rounds.
    pub fn expire(&mut self, now_s: i64) {
        let rounds = self.rounds.iter();
        let expired = rounds.filter(|(_, round)| self.has_expired(round, now_s));
        for job in expired.map(|(job, _)| *job).collect::<Vec<_>>() {
            self.end(job);
        }
    }

    /// The number of rounds, including expired rounds that were not ended yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Whether there are no rounds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Restores the rounds after a restart, as if they began now: a job waits for the leaving pods with its label
    /// (`marked`), and for the leaving pods on a node that one of its pods is nominated to.
    #[must_use]
    pub fn restore(
        limits: RoundLimits,
        state: &JobCluster,
        marked: &[(PodId, JobId)],
        now_s: i64,
    ) -> Self {
        let mut victims: BTreeMap<JobId, BTreeSet<PodId>> = BTreeMap::new();
        let is_leaving = |pod| state.member(pod).is_some_and(|it| it.is_leaving);
        for (pod, job) in marked.iter().filter(|(pod, _)| is_leaving(*pod)) {
            victims.entry(*job).or_default().insert(*pod);
        }
        // Victims that were deleted at once have no label; the nomination leads to their node.
        for (pod, host) in state.nominated() {
            let on_host = state.cluster().host(host).map_or(&[][..], |it| it.pods());
            if let Some(job) = state.job_of(pod) {
                let leaving = on_host.iter().copied().filter(|it| is_leaving(*it));
                victims.entry(job).or_default().extend(leaving);
            }
        }
        let mut rounds = Self::new(limits);
        for (job, victims) in victims {
            // The start is not stored in objects, so the full expiry applies again.
            rounds.begin(job, victims, now_s);
        }
        rounds
    }

    fn has_expired(&self, round: &InFlightRound, now_s: i64) -> bool {
        now_s.saturating_sub(round.started_at_s) >= self.limits.expires_after_s
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockedReason, JobId, RoundLimits, RoundsInFlight};
    use crate::ids::PodId;

    const fn job(number: u32) -> JobId {
        JobId::Pod(PodId(number))
    }

    fn in_flight_with_max(rounds_max: usize) -> RoundsInFlight {
        RoundsInFlight::new(RoundLimits {
            expires_after_s: 60,
            rounds_max,
        })
    }

    #[test]
    fn round_with_remaining_victims_blocks_next() {
        let mut rounds = in_flight_with_max(9);
        rounds.begin(job(1), [PodId(7), PodId(8)], 100);
        rounds.begin(job(2), [PodId(8)], 100);
        let remaining = |rounds: &RoundsInFlight, of| match rounds.blocked_reason(job(of), 100) {
            Some(BlockedReason::Unfinished { victims }) => victims,
            Some(BlockedReason::TooMany { .. }) => usize::MAX,
            None => 0,
        };
        assert_eq!([1, 2, 3].map(|it| remaining(&rounds, it)), [2, 1, 0]);
        rounds.pod_removed(PodId(8));
        assert_eq!([1, 2].map(|it| remaining(&rounds, it)), [1, 0]);
        rounds.pod_removed(PodId(7));
        assert!(rounds.is_empty() && rounds.jobs_by_victim.is_empty());
    }

    #[test]
    fn round_past_expiry_no_longer_blocks() {
        let mut rounds = in_flight_with_max(9);
        rounds.begin(job(1), [PodId(7)], 100);
        assert!(rounds.blocked_reason(job(1), 159).is_some());
        assert_eq!(rounds.blocked_reason(job(1), 160), None);
        rounds.expire(159);
        assert_eq!(rounds.len(), 1);
        rounds.expire(160);
        assert!(rounds.is_empty() && rounds.jobs_by_victim.is_empty());
    }

    #[test]
    fn begin_at_rounds_max_is_blocked() {
        let mut rounds = in_flight_with_max(2);
        for number in 1..=3 {
            rounds.begin(job(number), [PodId(7)], 100);
        }
        assert_eq!(rounds.len(), 2);
        let too_many = Some(BlockedReason::TooMany { rounds_max: 2 });
        assert_eq!(rounds.blocked_reason(job(3), 159), too_many);
        assert_eq!(rounds.blocked_reason(job(3), 160), None);
        // Expired rounds make room.
        rounds.begin(job(3), [PodId(7)], 160);
        assert!(rounds.blocked_reason(job(3), 160).is_some());
    }
}
