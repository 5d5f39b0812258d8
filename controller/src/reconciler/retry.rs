//! When something that failed is tried again.

/// The first pause, in milliseconds.
const FIRST_MS: i64 = 100;

/// The longest pause after a failure, in milliseconds.
const MOST_MS: i64 = 30_000;

/// The first pause after a refusal, in milliseconds. An API server that has just started may refuse what it
/// will soon allow.
const REFUSED_FIRST_MS: i64 = 1_000;

/// The longest pause after a refusal, in milliseconds: only a person changes that.
const REFUSED_MOST_MS: i64 = 60_000;

/// The first pause after a conflict with nobody who has been seen, in milliseconds. Watches are faster.
const OUTRUN_FIRST_MS: i64 = 1_000;

/// The failures of one object in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    fails: u32,
    pub(super) at_ms: i64,
}

impl Retry {
    /// It failed: twice the pause of before, and a share of it more or less, so that those who failed
    /// together come apart. `chance` is any number.
    pub(super) fn failed(&mut self, now_ms: i64, chance: u64) {
        let doubled = FIRST_MS.checked_shl(self.fails.min(16)).unwrap_or(MOST_MS);
        let pause = doubled.min(MOST_MS);
        let share = i64::try_from(chance % 256).unwrap_or(0);
        let spread = pause.saturating_mul(share).div_euclid(512);
        self.fails = self.fails.saturating_add(1);
        self.at_ms = now_ms.saturating_add(pause).saturating_add(spread);
    }

    /// It was refused: twice the pause of before.
    pub(super) fn refused(&mut self, now_ms: i64) {
        self.paused(now_ms, REFUSED_FIRST_MS, REFUSED_MOST_MS);
    }

    /// It was outrun: twice the pause of before.
    pub(super) fn outrun(&mut self, now_ms: i64) {
        self.paused(now_ms, OUTRUN_FIRST_MS, MOST_MS);
    }

    fn paused(&mut self, now_ms: i64, first_ms: i64, most_ms: i64) {
        let doubled = first_ms.checked_shl(self.fails.min(16)).unwrap_or(most_ms);
        self.fails = self.fails.saturating_add(1);
        self.at_ms = now_ms.saturating_add(doubled.min(most_ms));
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }
}
