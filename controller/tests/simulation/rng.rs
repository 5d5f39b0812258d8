//! A seeded random generator (`SplitMix64`).

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next_u64() % end).unwrap()
    }

    /// From `least` to `most`.
    pub fn range(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.next_u64() % span).unwrap()
    }

    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len());
        &of[at]
    }

    /// A weighted random index; `None` if all weights are 0.
    pub fn pick_weighted(&mut self, weights: &[usize]) -> Option<usize> {
        let sum = weights.iter().sum();
        if sum == 0 {
            return None;
        }
        let mut left = self.below(sum);
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return Some(at);
            }
            left -= weight;
        }
        None
    }
}
