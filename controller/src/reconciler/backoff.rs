//! Backoff of failed writes.

/// The first pause after a failure, in milliseconds.
const INITIAL_MS: i64 = 100;

/// The longest pause after a failure, in milliseconds.
const MAX_MS: i64 = 30_000;

/// The longest pause after an error that may concern only one object, in milliseconds: such an object must not take
/// writes from the others for ever.
const SERVER_ERROR_MAX_MS: i64 = 300_000;

/// The first pause after a rejection, in milliseconds. An API server that has just started may reject what it
/// will soon allow.
const REJECTED_INITIAL_MS: i64 = 1_000;

/// The longest pause after a rejection, in milliseconds: usually a user has to change something first.
const REJECTED_MAX_MS: i64 = 60_000;

/// The first pause after a conflict with a version that no watch has shown, in milliseconds. Watches are
/// usually faster.
const CONFLICT_INITIAL_MS: i64 = 1_000;

/// The consecutive failures of one object's writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    pub(super) retry_at_ms: i64,
}

impl Backoff {
    /// A write failed: doubles the pause and adds up to half of it, so that objects that failed together are
    /// not retried together. `random` is any number.
    pub(super) fn failed(&mut self, now_ms: i64, random: u64) {
        self.back_off_spread(now_ms, MAX_MS, random);
    }

    /// The server reported an error that may concern only this object: like [`Self::failed`], with longer pauses in
    /// the end.
    pub(super) fn server_error(&mut self, now_ms: i64, random: u64) {
        self.back_off_spread(now_ms, SERVER_ERROR_MAX_MS, random);
    }

    fn back_off_spread(&mut self, now_ms: i64, max_ms: i64, random: u64) {
        let doubled = INITIAL_MS
            .checked_shl(self.failures.min(16))
            .unwrap_or(max_ms);
        let pause = doubled.min(max_ms);
        let share = i64::try_from(random % 256).unwrap_or(0);
        let spread = pause.saturating_mul(share).div_euclid(512);
        self.failures = self.failures.saturating_add(1);
        self.retry_at_ms = now_ms.saturating_add(pause).saturating_add(spread);
    }

    /// A write was rejected: doubles the pause.
    pub(super) fn rejected(&mut self, now_ms: i64) {
        self.back_off(now_ms, REJECTED_INITIAL_MS, REJECTED_MAX_MS);
    }

    /// A write conflicted: doubles the pause.
    pub(super) fn conflict(&mut self, now_ms: i64) {
        self.back_off(now_ms, CONFLICT_INITIAL_MS, MAX_MS);
    }

    fn back_off(&mut self, now_ms: i64, first_ms: i64, max_ms: i64) {
        // More than 16 doublings exceed every maximum, and would overflow in the end.
        let doubled = first_ms
            .checked_shl(self.failures.min(16))
            .unwrap_or(max_ms);
        self.failures = self.failures.saturating_add(1);
        self.retry_at_ms = now_ms.saturating_add(doubled.min(max_ms));
    }

    /// Whether the last write failed.
    pub(super) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }
}
