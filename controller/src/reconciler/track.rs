//! What is known of an object beside what stands in it.

use super::output::{Outcome, Ticket, What};
use super::retry::Retry;

/// What is known of an object beside what stands in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    /// The resource version that was seen.
    pub(super) version: u64,
    /// The version that has to be seen before anything more is decided.
    pub(super) awaits: u64,
    /// It awaits what outran a write, until the next try.
    pub(super) is_outrun: bool,
    /// The write that is under way.
    pub(super) flight: Option<Ticket>,
    pub(super) retry: Retry,
    /// A write of which nobody knows whether it was done said that it may run: what is seen of it may be
    /// behind that.
    pub(super) is_in_doubt: bool,
}

impl Track {
    /// A version was seen. Whether it is news: watches may be behind.
    pub(super) fn see(&mut self, version: u64) -> bool {
        if version < self.version {
            return false;
        }
        let is_news = version > self.version || version == 0;
        if is_news {
            self.retry.succeeded();
            self.is_in_doubt = false;
            self.is_outrun = false;
        }
        self.version = version;
        is_news
    }

    /// Whether what is seen of it is all that was written.
    pub(super) fn is_settled(&self) -> bool {
        self.flight.is_none() && self.version >= self.awaits
    }

    /// What became of a write that was decided on a version.
    pub(super) fn answered(
        &mut self,
        what: What,
        version: u64,
        outcome: &Outcome,
        now_ms: i64,
        chance: u64,
    ) {
        self.flight = None;
        let is_of_another = what == What::CreateWorkload;
        match outcome {
            // What a job is the owner of has versions of its own.
            Outcome::Done(_) | Outcome::DryRun if is_of_another => {}
            Outcome::Done(version) => self.awaits = self.awaits.max(*version),
            // Where its watch has not shown it yet it will; if it was deleted since, it is made again.
            Outcome::Exists if is_of_another => self.retry.failed(now_ms, chance),
            Outcome::DryRun => self.awaits = self.awaits.max(version.saturating_add(1)),
            // What outran it may have been seen already, or may never be: an API server may say so of its
            // own.
            Outcome::Conflict | Outcome::Exists | Outcome::Absent => {
                self.awaits = self.awaits.max(version.saturating_add(1));
                if self.version < self.awaits {
                    self.is_outrun = true;
                    self.retry.outrun(now_ms);
                }
            }
            Outcome::Refused(_) => self.retry.refused(now_ms),
            Outcome::Failed(_) => self.retry.failed(now_ms, chance),
        }
        if matches!(what, What::Admit | What::StartJob) {
            self.is_in_doubt |= matches!(outcome, Outcome::Failed(_));
        }
        if matches!(outcome, Outcome::Done(_)) {
            // It was what it was believed to be. Who was outrun will see it as it is.
            self.is_in_doubt = false;
        }
    }

    /// Until which second whoever was to be admitted is not looked at, because that was refused; and until the
    /// end of that second nothing else is written about it.
    pub(super) fn put_off_s(&mut self, what: What, outcome: &Outcome) -> Option<i64> {
        if what != What::Admit || !matches!(outcome, Outcome::Refused(_)) {
            return None;
        }
        let until_s = self.retry.at_ms.saturating_add(999).div_euclid(1000);
        self.retry.at_ms = until_s.saturating_mul(1000);
        Some(until_s)
    }
}
