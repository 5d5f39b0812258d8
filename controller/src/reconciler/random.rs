//! A seeded random generator, so that a run can be replayed bit for bit.

use lockkeeper_preemption::requeue::Jitter;

/// `SplitMix64`: the same numbers for the same seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Advances the generator.
    pub(super) fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The jitter of a requeue backoff. Reading it does not advance the generator: planning is repeatable,
    /// and the generator advances once an eviction is built from the plan.
    #[allow(clippy::cast_possible_truncation, reason = "the upper half fits")]
    pub(super) const fn jitter(self) -> Jitter {
        Jitter::new((self.state >> 32) as u32)
    }
}
