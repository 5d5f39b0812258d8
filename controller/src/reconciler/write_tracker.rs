//! Tracks the writes of one object: the version seen, the version written, the backoff.

use super::backoff::Backoff;
use super::output::{WriteId, WritePurpose, WriteResult};

/// Tracks the writes of one object.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteTracker {
    /// The newest resource version that a watch has shown.
    pub(super) version: u64,
    /// The version that a watch has to show before the next write is planned.
    pub(super) min_version: u64,
    /// A write conflicted with a version that no watch has shown yet.
    pub(super) conflicted: bool,
    /// The in-flight write.
    pub(super) in_flight: Option<WriteId>,
    pub(super) backoff: Backoff,
    /// A write that allows the job to run has an unknown outcome: the version that the watch shows may be
    /// behind it.
    pub(super) outcome_unknown: bool,
}

impl WriteTracker {
    /// Records a version from the watch; false if it is not new, because watches may be behind.
    pub(super) fn observe(&mut self, version: u64) -> bool {
        if version < self.version {
            return false;
        }
        // Version 0: the metadata has no readable version, so every event counts as newer.
        let is_newer = version > self.version || version == 0;
        if is_newer {
            self.backoff.succeeded();
            self.outcome_unknown = false;
            self.conflicted = false;
        }
        self.version = version;
        is_newer
    }

    /// Forgets the versions that were seen and written: the next version from the watch is new.
    pub(super) fn forget_versions(&mut self) {
        self.version = 0;
        self.min_version = 0;
        self.conflicted = false;
    }

    /// Whether the watch has shown all that was written.
    pub(super) fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.version >= self.min_version
    }

    /// Records the result of a write that was planned on `version`.
    pub(super) fn handle_result(
        &mut self,
        purpose: WritePurpose,
        version: u64,
        result: &WriteResult,
        now_ms: i64,
        random: u64,
    ) {
        self.in_flight = None;
        let is_create = purpose == WritePurpose::CreateWorkload;
        match result {
            // The workload of a job has its own versions.
            WriteResult::Done(_) | WriteResult::DryRun if is_create => {}
            WriteResult::Read(_) => self.backoff.succeeded(),
            WriteResult::Done(version) => self.min_version = self.min_version.max(*version),
            // The watch will show the workload; if it was deleted since, it is created again.
            WriteResult::AlreadyExists if is_create => self.backoff.failed(now_ms, random),
            // The watch will show no result: the object is planned again when it changes.
            WriteResult::DryRun => {
                self.min_version = self.min_version.max(version.saturating_add(1));
            }
            // The version it conflicted with may have been shown already, or may never be: an API server may
            // report a conflict without one.
            WriteResult::Conflict | WriteResult::AlreadyExists | WriteResult::NotFound => {
                self.min_version = self.min_version.max(version.saturating_add(1));
                if self.version < self.min_version {
                    self.conflicted = true;
                    self.backoff.conflict(now_ms);
                }
            }
            WriteResult::Rejected(_) => self.backoff.rejected(now_ms),
            WriteResult::Failed(_) => self.backoff.failed(now_ms, random),
            WriteResult::ServerError(_) => self.backoff.server_error(now_ms, random),
        }
        if matches!(purpose, WritePurpose::Admit | WritePurpose::StartJob) {
            self.outcome_unknown |=
                matches!(result, WriteResult::Failed(_) | WriteResult::ServerError(_));
        }
        if matches!(result, WriteResult::Done(_)) {
            // The object had the planned version: no earlier write was executed unnoticed.
            self.outcome_unknown = false;
        }
    }

    /// The second until which a workload with a rejected admission is held back. The backoff of its writes is
    /// extended to the end of that second.
    pub(super) fn hold_until_s(
        &mut self,
        purpose: WritePurpose,
        result: &WriteResult,
    ) -> Option<i64> {
        if purpose != WritePurpose::Admit || !matches!(result, WriteResult::Rejected(_)) {
            return None;
        }
        // Rounded up: the core counts seconds, and a cycle must not admit before a write may begin.
        let until_s = self
            .backoff
            .retry_at_ms
            .saturating_add(999)
            .div_euclid(1000);
        self.backoff.retry_at_ms = until_s.saturating_mul(1000);
        Some(until_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_version_answers_unknown_outcome() {
        let mut tracker = WriteTracker::default();
        assert!(tracker.observe(5));
        tracker.outcome_unknown = true;
        tracker.conflicted = true;
        for late in [5, 4] {
            assert!(!tracker.observe(late));
            assert_eq!(tracker.version, 5);
            assert!(tracker.outcome_unknown && tracker.conflicted);
        }
        assert!(tracker.observe(6));
        assert_eq!(tracker.version, 6);
        assert!(!tracker.outcome_unknown && !tracker.conflicted);
    }

    #[test]
    fn event_without_version_is_newer() {
        let mut tracker = WriteTracker::default();
        for _ in 0..2 {
            tracker.outcome_unknown = true;
            assert!(tracker.observe(0));
            assert!(!tracker.outcome_unknown);
        }
    }

    #[test]
    fn start_without_result_has_unknown_outcome_until_next_success() {
        for purpose in [WritePurpose::Admit, WritePurpose::StartJob] {
            for failure in [
                WriteResult::Failed(String::new()),
                WriteResult::ServerError(String::new()),
            ] {
                let mut tracker = WriteTracker::default();
                tracker.handle_result(purpose, 1, &failure, 0, 0);
                assert!(tracker.outcome_unknown, "{purpose:?} {failure:?}");
                tracker.handle_result(purpose, 1, &WriteResult::Conflict, 0, 0);
                assert!(tracker.outcome_unknown, "{purpose:?} {failure:?}");
                tracker.handle_result(purpose, 1, &WriteResult::Done(2), 0, 0);
                assert!(!tracker.outcome_unknown, "{purpose:?} {failure:?}");
            }
        }
        let mut tracker = WriteTracker::default();
        let failure = WriteResult::Failed(String::new());
        tracker.handle_result(WritePurpose::Evict, 1, &failure, 0, 0);
        assert!(!tracker.outcome_unknown);
    }

    #[test]
    fn conflict_waits_for_version_that_watch_has_not_shown() {
        let mut tracker = WriteTracker::default();
        tracker.observe(5);
        tracker.handle_result(WritePurpose::Evict, 5, &WriteResult::Conflict, 0, 0);
        assert!(tracker.conflicted && !tracker.is_settled());
        tracker.observe(6);
        assert!(!tracker.conflicted && tracker.is_settled());
        // The watch has shown the other write before the conflict was answered.
        tracker.handle_result(WritePurpose::Evict, 5, &WriteResult::Conflict, 0, 0);
        assert!(!tracker.conflicted && tracker.is_settled());
    }

    #[test]
    fn forgotten_versions_may_be_older() {
        let mut tracker = WriteTracker::default();
        tracker.observe(5);
        tracker.handle_result(WritePurpose::Evict, 5, &WriteResult::Done(7), 0, 0);
        assert!(!tracker.is_settled());
        tracker.forget_versions();
        assert!(tracker.is_settled());
        assert!(tracker.observe(3) && tracker.is_settled());
    }

    /// The version of the created workload is none of its job.
    #[test]
    fn created_workload_is_not_waited_for() {
        let mut tracker = WriteTracker::default();
        tracker.observe(5);
        let create = WritePurpose::CreateWorkload;
        tracker.handle_result(create, 5, &WriteResult::Done(7), 0, 0);
        assert!(tracker.is_settled() && tracker.backoff.retry_at_ms == 0);
        tracker.handle_result(create, 5, &WriteResult::AlreadyExists, 0, 0);
        assert!(tracker.is_settled() && !tracker.conflicted);
        assert!(tracker.backoff.retry_at_ms > 0);
    }
}
