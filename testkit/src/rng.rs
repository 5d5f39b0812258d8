//! A seeded random generator.

use std::fmt::Debug;

/// `SplitMix64` (Steele and others, 2014): the same numbers for the same seed, in every version of the dependencies.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose first number depends on the seed only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end`, without `end`; 0 if `end` is 0.
    pub fn below<N>(&mut self, end: N) -> N
    where
        N: TryInto<u64, Error: Debug> + TryFrom<u64, Error: Debug>,
    {
        let end: u64 = end.try_into().unwrap();
        N::try_from(self.next_u64() % end.max(1)).unwrap()
    }

    /// A number from `least` to `most`.
    pub fn range(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.next_u64() % span).unwrap()
    }

    /// True once in `times` calls on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// True in `chance` of 100 calls on average.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// A random item.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A random index, weighted; `None` if all weights are 0.
    pub fn pick_weighted(&mut self, weights: &[usize]) -> Option<usize> {
        let sum: usize = weights.iter().sum();
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

    /// Puts the items into a random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the reference implementation for seed 0.
    #[test]
    fn numbers_match_reference() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn weight_zero_is_never_picked() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.pick_weighted(&[0, 0]), None);
        assert!((0..100).all(|_| rng.pick_weighted(&[0, 3, 0]) == Some(1)));
    }
}
