//! Rounds of preemption whose victims have not gone yet.
//!
//! Source: the proposal, step 7 of `PostFilter` (R12): victims are deleted by somebody else, and slowly; until
//! they have gone their job takes no others, or it would go on until nobody is left.
//!
//! What the proposal leaves open: a round ends by itself after a time, so that a victim that never goes
//! blocks nobody for ever; there are only so many rounds at once, and beyond that none begins; after a restart
//! rounds are read off the labels of victims and the nominations of preemptors.

use super::cluster::{JobCluster, JobId};
use crate::ids::PodId;
use std::collections::{BTreeMap, BTreeSet};

/// How long rounds last, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundLimits {
    /// After this many seconds a round no longer counts.
    pub expires_after_s: i64,
    /// This many jobs may wait for their victims at once.
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
    /// By victim, the jobs that wait for it.
    jobs_by_victim: BTreeMap<PodId, BTreeSet<JobId>>,
}

/// A round of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InFlightRound {
    started_at_s: i64,
    /// Those that have not gone. Never empty.
    victims: BTreeSet<PodId>,
}

/// Why no round may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedReason {
    /// Victims of the job's last round have not gone.
    Unfinished {
        /// How many.
        victims: usize,
    },
    /// Too many jobs wait for their victims.
    TooMany {
        /// How many may.
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

    /// Whether a job may begin a round at a time, in seconds.
    #[must_use]
    pub fn blocked_reason(&self, job: JobId, now_s: i64) -> Option<BlockedReason> {
        let is_live = |round: &&InFlightRound| !self.has_expired(round, now_s);
        if let Some(round) = self.rounds.get(&job).filter(is_live) {
            let victims = round.victims.len();
            return Some(BlockedReason::Unfinished { victims });
        }
        let rounds_max = self.limits.rounds_max;
        // Only a full cache is counted through.
        let is_full = self.rounds.len() >= rounds_max
            && self.rounds.values().filter(is_live).count() >= rounds_max;
        is_full.then_some(BlockedReason::TooMany { rounds_max })
    }

    /// A round begins: the job waits for these to go. Without any there is nothing to wait for.
    pub fn begin(&mut self, job: JobId, victims: impl IntoIterator<Item = PodId>, now_s: i64) {
        self.end(job);
        if self.rounds.len() >= self.limits.rounds_max {
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

    /// A pod has gone: rounds that waited for it alone end, and that of a job that it was by itself. To be told
    /// before its number is given to another. Costs the jobs that wait for it.
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

    /// A job is gone, or needs no victims any more.
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

    /// Forgets the rounds that have lasted too long.
    pub fn expire(&mut self, now_s: i64) {
        let rounds = self.rounds.iter();
        let expired = rounds.filter(|(_, round)| self.has_expired(round, now_s));
        for job in expired.map(|(job, _)| *job).collect::<Vec<_>>() {
            self.end(job);
        }
    }

    /// How many rounds there are, those included that have expired and were not forgotten yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rounds.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// The rounds after a restart, as if they began now: a job waits for the pods whose label names it
    /// (`marked`), and for those that leave a node which is held for one of its pods.
    #[must_use]
    pub fn restore(
        limits: RoundLimits,
        world: &JobCluster,
        marked: &[(PodId, JobId)],
        now_s: i64,
    ) -> Self {
        let mut victims: BTreeMap<JobId, BTreeSet<PodId>> = BTreeMap::new();
        let is_leaving = |pod| world.member(pod).is_some_and(|it| it.is_leaving);
        for (pod, job) in marked.iter().filter(|(pod, _)| is_leaving(*pod)) {
            victims.entry(*job).or_default().insert(*pod);
        }
        for (pod, host) in world.nominated() {
            let on_host = world.cluster().host(host).map_or(&[][..], |it| it.pods());
            if let Some(job) = world.job_of(pod) {
                let leaving = on_host.iter().copied().filter(|it| is_leaving(*it));
                victims.entry(job).or_default().extend(leaving);
            }
        }
        let mut rounds = Self::new(limits);
        for (job, victims) in victims {
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
        let left = |rounds: &RoundsInFlight, of| match rounds.blocked_reason(job(of), 100) {
            Some(BlockedReason::Unfinished { victims }) => victims,
            Some(BlockedReason::TooMany { .. }) => usize::MAX,
            None => 0,
        };
        assert_eq!([1, 2, 3].map(|it| left(&rounds, it)), [2, 1, 0]);
        rounds.pod_removed(PodId(8));
        assert_eq!([1, 2].map(|it| left(&rounds, it)), [1, 0]);
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
        // Those that have expired make room.
        rounds.begin(job(3), [PodId(7)], 160);
        assert!(rounds.blocked_reason(job(3), 160).is_some());
    }
}
