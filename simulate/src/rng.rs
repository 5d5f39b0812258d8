//! Pseudo-random numbers of searches.

/// A pseudo-random generator with a fixed seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Default for Rng {
    fn default() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }
}

impl Rng {
    /// A number below `count`; 0 if there is none. Source: xorshift64*, Vigna 2016.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(number.checked_rem(count).unwrap_or(0)).unwrap_or(0)
    }

    /// One of a list at random; `None` if it is empty.
    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}
