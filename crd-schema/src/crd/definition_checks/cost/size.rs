//! Ranges of sizes, and arithmetic that ends at the largest number.

/// The smallest and the largest size of a value: characters, bytes, items or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };

    pub(super) fn fixed(size: u64) -> Self {
        Self {
            min: size,
            max: size,
        }
    }

    pub(super) fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn multiply(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// The range that contains both.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// The largest cost at a cost per unit.
    pub(super) fn cost(self, per_unit: f64) -> u64 {
        multiplied(self.max, per_unit)
    }
}

/// A number times a factor, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cel-go computes with the same loss; a conversion to an integer saturates"
)]
pub(super) fn multiplied(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}

/// A quotient, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cel-go computes with the same loss; a conversion to an integer saturates"
)]
pub(super) fn divided(number: u64, divisor: u64) -> u64 {
    (number as f64 / divisor as f64).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplied_rounds_up_and_saturates() {
        for (number, factor, expected) in [
            (0, 0.1, 0),
            (1, 0.1, 1),
            (10, 0.1, 1),
            (11, 0.1, 2),
            (u64::MAX, 0.1, 1_844_674_407_370_955_264),
            (u64::MAX, 2.0, u64::MAX),
        ] {
            assert_eq!(multiplied(number, factor), expected, "{number} * {factor}");
        }
    }
}
