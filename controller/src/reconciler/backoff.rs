//! When something that failed is tried again.

/// The first pause, in milliseconds.
const INITIAL_MS: i64 = 100;

/// The longest pause after a failure, in milliseconds.
const MAX_MS: i64 = 30_000;

/// The first pause after a refusal, in milliseconds. An API server that has just started may refuse what it
/// will soon allow.
const REJECTED_INITIAL_MS: i64 = 1_000;

/// The longest pause after a refusal, in milliseconds: only a person changes that.
const REJECTED_MAX_MS: i64 = 60_000;

/// The first pause after a conflict with nobody who has been seen, in milliseconds. Watches are faster.
const CONFLICT_INITIAL_MS: i64 = 1_000;

/// The failures of one object in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    pub(super) retry_at_ms: i64,
}

impl Backoff {
    /// It failed: twice the pause of before, and a share of it more or less, so that those who failed
    /// together come apart. `chance` is any number.
    pub(super) fn failed(&mut self, now_ms: i64, chance: u64) {
        let doubled = INITIAL_MS
            .checked_shl(self.failures.min(16))
            .unwrap_or(MAX_MS);
        let pause = doubled.min(MAX_MS);
        let share = i64::try_from(chance % 256).unwrap_or(0);
        let spread = pause.saturating_mul(share).div_euclid(512);
        self.failures = self.failures.saturating_add(1);
        self.retry_at_ms = now_ms.saturating_add(pause).saturating_add(spread);
    }

    /// It was refused: twice the pause of before.
    pub(super) fn rejected(&mut self, now_ms: i64) {
        self.back_off(now_ms, REJECTED_INITIAL_MS, REJECTED_MAX_MS);
    }

    /// It was outrun: twice the pause of before.
    pub(super) fn conflict(&mut self, now_ms: i64) {
        self.back_off(now_ms, CONFLICT_INITIAL_MS, MAX_MS);
    }

    fn back_off(&mut self, now_ms: i64, first_ms: i64, most_ms: i64) {
        let doubled = first_ms
            .checked_shl(self.failures.min(16))
            .unwrap_or(most_ms);
        self.failures = self.failures.saturating_add(1);
        self.retry_at_ms = now_ms.saturating_add(doubled.min(most_ms));
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }
}
