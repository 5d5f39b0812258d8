//! What is known of an object beside what stands in it.

use super::backoff::Backoff;
use super::output::{WriteId, WritePurpose, WriteResult};

/// What is known of an object beside what stands in it.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteTracker {
    /// The resource version that was seen.
    pub(super) version: u64,
    /// The version that has to be seen before anything more is decided.
    pub(super) min_version: u64,
    /// It awaits what outran a write, until the next try.
    pub(super) conflicted: bool,
    /// The write that is under way.
    pub(super) in_flight: Option<WriteId>,
    pub(super) backoff: Backoff,
    /// A write of which nobody knows whether it was done said that it may run: what is seen of it may be
    /// behind that.
    pub(super) outcome_unknown: bool,
}

impl WriteTracker {
    /// A version was seen. Whether it is news: watches may be behind.
    pub(super) fn observe(&mut self, version: u64) -> bool {
        if version < self.version {
            return false;
        }
        let is_news = version > self.version || version == 0;
        if is_news {
            self.backoff.succeeded();
            self.outcome_unknown = false;
            self.conflicted = false;
        }
        self.version = version;
        is_news
    }

    /// Whether what is seen of it is all that was written.
    pub(super) fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.version >= self.min_version
    }

    /// What became of a write that was decided on a version.
    pub(super) fn handle_result(
        &mut self,
        what: WritePurpose,
        version: u64,
        outcome: &WriteResult,
        now_ms: i64,
        chance: u64,
    ) {
        self.in_flight = None;
        let is_of_another = what == WritePurpose::CreateWorkload;
        match outcome {
            // What a job is the owner of has versions of its own.
            WriteResult::Done(_) | WriteResult::DryRun if is_of_another => {}
            WriteResult::Done(version) => self.min_version = self.min_version.max(*version),
            // Where its watch has not shown it yet it will; if it was deleted since, it is made again.
            WriteResult::AlreadyExists if is_of_another => self.backoff.failed(now_ms, chance),
            WriteResult::DryRun => {
                self.min_version = self.min_version.max(version.saturating_add(1))
            }
            // What outran it may have been seen already, or may never be: an API server may say so of its
            // own.
            WriteResult::Conflict | WriteResult::AlreadyExists | WriteResult::NotFound => {
                self.min_version = self.min_version.max(version.saturating_add(1));
                if self.version < self.min_version {
                    self.conflicted = true;
                    self.backoff.conflict(now_ms);
                }
            }
            WriteResult::Rejected(_) => self.backoff.rejected(now_ms),
            WriteResult::Failed(_) => self.backoff.failed(now_ms, chance),
        }
        if matches!(what, WritePurpose::Admit | WritePurpose::StartJob) {
            self.outcome_unknown |= matches!(outcome, WriteResult::Failed(_));
        }
        if matches!(outcome, WriteResult::Done(_)) {
            // It was what it was believed to be. Who was outrun will see it as it is.
            self.outcome_unknown = false;
        }
    }

    /// Until which second whoever was to be admitted is not looked at, because that was refused; and until the
    /// end of that second nothing else is written about it.
    pub(super) fn hold_until_s(
        &mut self,
        what: WritePurpose,
        outcome: &WriteResult,
    ) -> Option<i64> {
        if what != WritePurpose::Admit || !matches!(outcome, WriteResult::Rejected(_)) {
            return None;
        }
        let until_s = self
            .backoff
            .retry_at_ms
            .saturating_add(999)
            .div_euclid(1000);
        self.backoff.retry_at_ms = until_s.saturating_mul(1000);
        Some(until_s)
    }
}
