//! The backoff after each eviction: base · factor^(n−1), up to a cap, plus jitter.

use crate::policy::Compatibility;
use std::time::Duration;

/// The maximum delay, even without a cap: 2^62 ns, about 146 years. Kueue has the same.
const DELAY_MAX_NS: u128 = 1 << 62;

/// The delay stops growing after this many evictions. Only a factor very close to 1 reaches it.
const GROWTH_STEPS_MAX: u32 = 4_096;

const ONE_HUNDRED_MILLIONTHS: u128 = 100_000_000;
const NS_PER_S: u128 = 1_000_000_000;
const PARTS_PER_MILLION: u128 = 1_000_000;

/// The ratio of a delay to the one before, in hundred-millionths. It is never below 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u64);

impl Factor {
    /// 1: every delay is the same.
    pub const ONE: Self = Self(100_000_000);

    /// 2: every delay is twice the one before, as in current Kueue.
    pub const TWO: Self = Self(200_000_000);

    /// 1.41284738, the number in KEP-1282. With it, thirty retries with a timeout of 300 s take a day.
    pub const KEP_1282: Self = Self(141_284_738);

    /// A factor in hundred-millionths. A smaller factor than [`Self::ONE`] is raised to it: delays do not shrink.
    #[must_use]
    pub const fn new(hundred_millionths: u64) -> Self {
        if hundred_millionths < Self::ONE.0 {
            return Self::ONE;
        }
        Self(hundred_millionths)
    }

    /// The factor in hundred-millionths.
    #[must_use]
    pub const fn hundred_millionths(self) -> u64 {
        self.0
    }
}

/// A random number from 0 up to, but not including, 1. The caller supplies it, so that delays are reproducible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jitter(u32);

impl Jitter {
    /// 0.
    pub const NONE: Self = Self(0);

    /// From 32 random bits: the number is this many 2^32-ths.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self(bits)
    }
}

/// The settings of the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first delay (`backoffBaseSeconds`). Zero disables all delays.
    pub base: Duration,
    /// The ratio of each delay to the one before (`backoffFactor`).
    pub factor: Factor,
    /// The maximum delay without jitter (`backoffMaxSeconds`); `None` means no limit, zero no delay.
    pub cap: Option<Duration>,
    /// The maximum that jitter adds, in millionths of the delay.
    pub jitter_ppm: u32,
}

impl Default for Backoff {
    /// Kueue's current delays: 60 s, 120 s, 240 s, up to one hour, plus at most 0.01 % jitter.
    fn default() -> Self {
        Self {
            base: Duration::from_mins(1),
            factor: Factor::TWO,
            cap: Some(Duration::from_hours(1)),
            jitter_ppm: 100,
        }
    }
}

impl Backoff {
    /// The delays of KEP-1282: 1.41284738^(n−1) seconds without a cap.
    #[must_use]
    pub fn kep_1282() -> Self {
        Self {
            base: Duration::from_secs(1),
            factor: Factor::KEP_1282,
            cap: None,
            ..Self::default()
        }
    }

    /// The delay after the `count`-th eviction. The first has count 1; 0 is treated as 1.
    ///
    /// The delay is deterministic, does not decrease with more evictions or more jitter, and never exceeds the cap plus
    /// its jitter. Costs one multiplication for each eviction until the cap is reached, at most 4,096.
    ///
    /// Kueue does not cap the first delay (`wait.Backoff.Step` in apimachinery): a base of 60 s and a cap of 30 s give
    /// 60 s, 30 s, 30 s. [`Compatibility::Kueue`] reproduces that; otherwise all three are 30 s.
    #[must_use]
    pub fn delay(&self, count: u32, jitter: Jitter, compatibility: Compatibility) -> Duration {
        let delay_ns = self.without_jitter_ns(count, compatibility);
        // Fits: 2^62 · 2^32 · 2^32.
        let product = delay_ns
            .saturating_mul(u128::from(self.jitter_ppm))
            .saturating_mul(u128::from(jitter.0));
        // The jitter is a number of 2^32-ths.
        let added_ns = (product >> u32::BITS) / PARTS_PER_MILLION;
        duration(delay_ns.saturating_add(added_ns))
    }

    fn without_jitter_ns(&self, count: u32, compatibility: Compatibility) -> u128 {
        let cap_ns = self.cap.map_or(DELAY_MAX_NS, |cap| cap.as_nanos());
        let cap_ns = cap_ns.min(DELAY_MAX_NS);
        // Kueue does not cap the first delay: `wait.Backoff.Step` returns the base unchanged.
        let first_max_ns = match compatibility {
            Compatibility::Lockkeeper => cap_ns,
            Compatibility::Kueue => DELAY_MAX_NS,
        };
        let mut delay_ns = self.base.as_nanos().min(first_max_ns);
        for _ in 1..count.min(GROWTH_STEPS_MAX) {
            // Fits: 2^62 · 2^64.
            let product = delay_ns.saturating_mul(u128::from(self.factor.0));
            let next_ns = product / ONE_HUNDRED_MILLIONTHS;
            if next_ns > cap_ns {
                return cap_ns;
            }
            // The base is zero or the factor is 1: the delay does not grow any more.
            if next_ns == delay_ns {
                break;
            }
            delay_ns = next_ns;
        }
        delay_ns
    }
}

fn duration(ns: u128) -> Duration {
    let seconds = u64::try_from(ns / NS_PER_S).unwrap_or(u64::MAX);
    let rest = u32::try_from(ns % NS_PER_S).unwrap_or_default();
    Duration::new(seconds, rest)
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Factor, Jitter};
    use crate::policy::Compatibility;
    use std::time::Duration;

    const MOST: Jitter = Jitter::new(u32::MAX);

    fn seconds(backoff: &Backoff, compatibility: Compatibility) -> Vec<u64> {
        (1..=8)
            .map(|count| {
                let delay = backoff.delay(count, Jitter::NONE, compatibility);
                assert_eq!(delay.subsec_nanos(), 0);
                delay.as_secs()
            })
            .collect()
    }

    #[test]
    fn default_backoff_doubles_up_to_one_hour() {
        let delays = seconds(&Backoff::default(), Compatibility::Lockkeeper);
        assert_eq!(delays, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    }

    #[test]
    fn first_delay_is_capped_except_like_kueue() {
        let backoff = Backoff {
            cap: Some(Duration::from_secs(30)),
            ..Backoff::default()
        };
        let ours = seconds(&backoff, Compatibility::Lockkeeper);
        assert_eq!(ours, [30; 8]);
        let kueues = seconds(&backoff, Compatibility::Kueue);
        assert_eq!(kueues, [60, 30, 30, 30, 30, 30, 30, 30]);
    }

    #[test]
    fn zero_base_gives_zero_delay() {
        let backoff = Backoff {
            base: Duration::ZERO,
            ..Backoff::default()
        };
        let delay = backoff.delay(u32::MAX, MOST, Compatibility::Lockkeeper);
        assert_eq!(delay, Duration::ZERO);
    }

    #[test]
    fn jitter_is_added_above_the_cap() {
        let delay = Backoff::default().delay(9, MOST, Compatibility::Lockkeeper);
        assert!(delay > Duration::from_millis(3_600_359));
        assert!(delay < Duration::from_millis(3_600_360));
    }

    /// The table in KEP-1282: until a workload that is never ready is deactivated, with a timeout of
    /// 300 s, it takes 300·(n+1) s and all the delays.
    #[test]
    fn kep_1282_preset_matches_kep_table() {
        let table = [
            (1, 601),
            (2, 902),
            (5, 1_811),
            (10, 3_374),
            (20, 8_730),
            (30, 86_400),
        ];
        for (limit, expected_s) in table {
            let delays: Duration = (1..=limit)
                .map(|n| Backoff::kep_1282().delay(n, Jitter::NONE, Compatibility::Lockkeeper))
                .sum();
            let total = delays + Duration::from_mins(5) * (limit + 1);
            let total_s = (total.as_millis() + 500) / 1_000;
            assert_eq!(total_s, expected_s, "{limit} retries");
        }
    }

    /// 1.41284738^(n−1) seconds in milliseconds, computed with 60 digits.
    #[test]
    fn kep_1282_delays_are_exact_to_the_millisecond() {
        let table = [(2, 1_412), (10, 22_431), (20, 710_902), (30, 22_530_055)];
        for (count, expected_ms) in table {
            let delay = Backoff::kep_1282().delay(count, Jitter::NONE, Compatibility::Lockkeeper);
            assert_eq!(delay.as_millis(), expected_ms, "the {count}th");
        }
    }

    #[test]
    fn uncapped_delay_stops_at_delay_max() {
        let delay = Backoff::kep_1282().delay(u32::MAX, MOST, Compatibility::Lockkeeper);
        assert!(delay > Duration::from_secs(4_611_686_018));
    }

    #[test]
    fn factor_below_one_counts_as_one() {
        assert_eq!(Factor::new(0), Factor::ONE);
        assert_eq!(Factor::new(250_000_000).hundred_millionths(), 250_000_000);
    }
}
