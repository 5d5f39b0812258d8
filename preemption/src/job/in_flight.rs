//! Rounds of preemption whose victims have not gone yet.
//!
//! Source: the proposal, step 7 of `PostFilter` (R12): victims are deleted by somebody else, and slowly; until
//! they have gone their job takes no others, or it would go on until nobody is left.
//!
//! What the proposal leaves open: a round ends by itself after a time, so that a victim that never goes
//! blocks nobody for ever; there are only so many rounds at once, and beyond that none begins; after a restart
//! rounds are read off the labels of victims and the nominations of preemptors.

use super::world::{JobId, World};
use crate::names::PodId;
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
pub struct InFlight {
    limits: RoundLimits,
    rounds: BTreeMap<JobId, Round>,
    /// By victim, the jobs that wait for it.
    waiting: BTreeMap<PodId, BTreeSet<JobId>>,
}

/// A round of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Round {
    since_s: i64,
    /// Those that have not gone. Never empty.
    victims: BTreeSet<PodId>,
}

/// Why no round may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
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

impl InFlight {
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
    pub fn blocked(&self, job: JobId, now_s: i64) -> Option<Blocked> {
        let is_live = |round: &&Round| !self.has_expired(round, now_s);
        if let Some(round) = self.rounds.get(&job).filter(is_live) {
            let victims = round.victims.len();
            return Some(Blocked::Unfinished { victims });
        }
        let rounds_max = self.limits.rounds_max;
        // Only a full cache is counted through.
        let is_full = self.rounds.len() >= rounds_max
            && self.rounds.values().filter(is_live).count() >= rounds_max;
        is_full.then_some(Blocked::TooMany { rounds_max })
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
            self.waiting.entry(*victim).or_default().insert(job);
        }
        let since_s = now_s;
        self.rounds.insert(job, Round { since_s, victims });
    }

    /// A pod has gone: rounds that waited for it alone end, and that of a job that it was by itself. To be told
    /// before its number is given to another. Costs the jobs that wait for it.
    pub fn gone(&mut self, pod: PodId) {
        self.end(JobId::Pod(pod));
        for job in self.waiting.remove(&pod).into_iter().flatten() {
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
            if let Some(jobs) = self.waiting.get_mut(&victim) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.waiting.remove(&victim);
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
    pub fn rebuilt(
        limits: RoundLimits,
        world: &World,
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

    fn has_expired(&self, round: &Round, now_s: i64) -> bool {
        now_s.saturating_sub(round.since_s) >= self.limits.expires_after_s
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocked, InFlight, JobId, RoundLimits};
    use crate::names::PodId;

    const fn job(number: u32) -> JobId {
        JobId::Pod(PodId(number))
    }

    fn rounds(rounds_max: usize) -> InFlight {
        InFlight::new(RoundLimits {
            expires_after_s: 60,
            rounds_max,
        })
    }

    #[test]
    fn a_job_waits_until_its_victims_have_gone() {
        let mut rounds = rounds(9);
        rounds.begin(job(1), [PodId(7), PodId(8)], 100);
        rounds.begin(job(2), [PodId(8)], 100);
        let left = |rounds: &InFlight, of| match rounds.blocked(job(of), 100) {
            Some(Blocked::Unfinished { victims }) => victims,
            Some(Blocked::TooMany { .. }) => usize::MAX,
            None => 0,
        };
        assert_eq!([1, 2, 3].map(|it| left(&rounds, it)), [2, 1, 0]);
        rounds.gone(PodId(8));
        assert_eq!([1, 2].map(|it| left(&rounds, it)), [1, 0]);
        rounds.gone(PodId(7));
        assert!(rounds.is_empty() && rounds.waiting.is_empty());
    }

    #[test]
    fn a_round_expires() {
        let mut rounds = rounds(9);
        rounds.begin(job(1), [PodId(7)], 100);
        assert!(rounds.blocked(job(1), 159).is_some());
        assert_eq!(rounds.blocked(job(1), 160), None);
        rounds.expire(159);
        assert_eq!(rounds.len(), 1);
        rounds.expire(160);
        assert!(rounds.is_empty() && rounds.waiting.is_empty());
    }

    #[test]
    fn there_are_only_so_many() {
        let mut rounds = rounds(2);
        for number in 1..=3 {
            rounds.begin(job(number), [PodId(7)], 100);
        }
        assert_eq!(rounds.len(), 2);
        let too_many = Some(Blocked::TooMany { rounds_max: 2 });
        assert_eq!(rounds.blocked(job(3), 159), too_many);
        assert_eq!(rounds.blocked(job(3), 160), None);
        // Those that have expired make room.
        rounds.begin(job(3), [PodId(7)], 160);
        assert!(rounds.blocked(job(3), 160).is_some());
    }
}
