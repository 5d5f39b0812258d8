//! Amounts of a resource.

use std::fmt;

/// An amount of one resource: milli for cpu, whole units (bytes, counts) for the rest.
///
/// [`Amount::UNLIMITED`] is larger than every other amount, and stays unlimited under addition and
/// subtraction. A sum that overflows becomes unlimited as usage, and so fits nowhere; `cluster-state` rejects
/// objects for which that could happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Larger than any number.
    pub const UNLIMITED: Self = Self(i64::MAX);

    /// Creates an amount in the resource's unit; `i64::MAX` is [`Self::UNLIMITED`].
    #[must_use]
    pub const fn new(amount: i64) -> Self {
        Self(amount)
    }

    /// Returns the number; `i64::MAX` if unlimited.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns whether the amount is unlimited.
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.0 == i64::MAX
    }

    /// Returns the sum, unlimited on overflow.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        if self.is_unlimited() || other.is_unlimited() {
            return Self::UNLIMITED;
        }
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, which may be negative. A number less unlimited is the smallest number, and unlimited less unlimited is
    /// zero, as in Kueue (`resources.Amount.Sub`): an unlimited quota lends what its lending limit permits.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        match (self.is_unlimited(), other.is_unlimited()) {
            (true, true) => return Self::ZERO,
            (true, false) => return Self::UNLIMITED,
            (false, true) => return Self(i64::MIN),
            (false, false) => {}
        }
        let difference = self.0.saturating_sub(other.0);
        // A difference of two numbers is never unlimited.
        if difference == i64::MAX {
            return Self(i64::MAX.saturating_sub(1));
        }
        Self(difference)
    }

    /// Returns the amount, or zero if it is negative.
    #[must_use]
    pub fn or_zero(self) -> Self {
        self.max(Self::ZERO)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("unlimited");
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn amount_unlimited_absorbs_additions() {
        let one = Amount::new(1);
        assert_eq!(Amount::UNLIMITED.plus(one), Amount::UNLIMITED);
        assert_eq!(one.plus(Amount::UNLIMITED), Amount::UNLIMITED);
        assert_eq!(Amount::UNLIMITED.minus(one), Amount::UNLIMITED);
        assert_eq!(Amount::UNLIMITED.minus(Amount::UNLIMITED), Amount::ZERO);
        assert!(one.minus(Amount::UNLIMITED) < Amount::ZERO);
    }

    #[test]
    fn amount_sums_beyond_range_become_unlimited() {
        let most = Amount::new(i64::MAX - 1);
        assert_eq!(most.plus(Amount::new(1)), Amount::UNLIMITED);
        let least = Amount::new(i64::MIN);
        assert!(!most.minus(least).is_unlimited());
        assert_eq!(least.plus(least), least);
    }
}
