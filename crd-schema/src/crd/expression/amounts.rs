//! Quantities as Go represents them.

use lockkeeper_api::quantity::{BINARY_SI, DECIMAL_SI, Quantity, QuantityError, Unit};
use std::cmp::Ordering;

/// The most digits that Go parses into 64-bit integers.
const DIGITS_MAX: i64 = 18;

/// A quantity that the library has parsed or computed.
#[derive(Clone, Debug)]
pub(in super::super) struct Amount {
    quantity: Quantity,
    digits: Digits,
    /// Whether it is the result of a calculation.
    is_result: bool,
}

/// How Go represents a quantity.
#[derive(Clone, Copy, Debug)]
enum Digits {
    /// A 64-bit integer times a power of ten.
    Integer(i64, i32),
    /// A decimal: a big integer times a power of ten.
    Decimal(i128, i32),
}

impl Amount {
    /// Parses a quantity.
    pub(super) fn parse(text: &str) -> Result<Self, QuantityError> {
        let quantity = text.parse()?;
        Ok(Self {
            quantity,
            digits: digits(text, quantity),
            is_result: false,
        })
    }

    /// A number of whole units.
    pub(super) fn of_integer(number: i64) -> Self {
        Self {
            quantity: Quantity::from(number),
            digits: Digits::Integer(number, 0),
            is_result: false,
        }
    }

    /// Whether two quantities are equal; `None` if the library has no overload, as for a result on the right side.
    pub(super) fn equals(&self, other: &Self) -> Option<bool> {
        (!other.is_result).then(|| self.quantity == other.quantity)
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.quantity.cmp(&other.quantity)
    }

    /// -1, 0 or 1.
    pub(super) fn sign(&self) -> i64 {
        i64::try_from(self.quantity.nano().signum()).unwrap_or_default()
    }

    /// See [`Digits::as_integer`].
    pub(super) fn as_integer(&self) -> Option<i64> {
        self.digits.as_integer()
    }

    /// The nearest float, as Go computes it.
    pub(super) fn as_float(&self) -> f64 {
        self.digits.as_float()
    }

    /// The text of the quantity.
    pub(super) fn text(&self) -> String {
        self.quantity.to_string()
    }

    /// The sum or the difference; `None` if it is too large.
    pub(super) fn sum(&self, other: &Self, is_difference: bool) -> Option<Self> {
        let (quantity, digits) = if is_difference {
            let quantity = self.quantity.checked_sub(other.quantity)?;
            (quantity, other.digits.negated()?)
        } else {
            (self.quantity.checked_add(other.quantity)?, other.digits)
        };
        let digits = match self.digits.integer_sum(digits) {
            Some(sum) => sum,
            None => self.digits.decimal_sum(digits)?,
        };
        Some(Self {
            quantity,
            digits,
            is_result: true,
        })
    }
}

impl Digits {
    /// `AsInt64` of the quantity: `None` for one with a fraction, also if it is zero, and for a decimal.
    fn as_integer(self) -> Option<i64> {
        let Self::Integer(value, scale) = self else {
            return None;
        };
        // A negative scale is not reduced.
        value.checked_mul(10_i64.checked_pow(u32::try_from(scale).ok()?)?)
    }

    #[allow(clippy::cast_precision_loss, reason = "Go converts with the same loss")]
    fn as_float(self) -> f64 {
        let (base, scale) = match self {
            Self::Integer(value, scale) => (value as f64, scale),
            Self::Decimal(value, scale) => (value as f64, scale),
        };
        let factor: f64 = format!("1e{scale}").parse().unwrap_or(1.0);
        base * factor
    }

    fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Integer(value, scale) => Self::Integer(value.checked_neg()?, scale),
            Self::Decimal(value, scale) => Self::Decimal(value.checked_neg()?, scale),
        })
    }

    /// The sum of 64-bit integers; `None` if Go computes it with decimals.
    fn integer_sum(self, other: Self) -> Option<Self> {
        let (Self::Integer(left, left_scale), Self::Integer(right, right_scale)) = (self, other)
        else {
            return None;
        };
        if right == 0 {
            return Some(self);
        }
        if left == 0 {
            return Some(other);
        }
        let scale = left_scale.min(right_scale);
        let scaled = |value: i64, of: i32| {
            let factor = 10_i64.checked_pow(of.checked_sub(scale)?.cast_unsigned())?;
            value.checked_mul(factor)
        };
        let sum = scaled(left, left_scale)?.checked_add(scaled(right, right_scale)?)?;
        Some(Self::Integer(sum, scale))
    }

    fn decimal_sum(self, other: Self) -> Option<Self> {
        let decimal = |it: Self| match it {
            Self::Integer(value, scale) => (i128::from(value), scale),
            Self::Decimal(value, scale) => (value, scale),
        };
        let ((left, left_scale), (right, right_scale)) = (decimal(self), decimal(other));
        let scale = left_scale.min(right_scale);
        let scaled = |value: i128, of: i32| {
            let factor = 10_i128.checked_pow(of.checked_sub(scale)?.cast_unsigned())?;
            value.checked_mul(factor)
        };
        let sum = scaled(left, left_scale)?.checked_add(scaled(right, right_scale)?)?;
        Some(Self::Decimal(sum, scale))
    }
}

/// How Go represents the quantity of a text.
fn digits(text: &str, quantity: Quantity) -> Digits {
    /// The value in whole units that Go lowers larger binary quantities to.
    const WHOLE_MAX: i128 = i64::MAX as i128;
    if let Some((value, scale)) = integer_digits(text) {
        return Digits::Integer(value, scale);
    }
    let whole = quantity.nano() / 1_000_000_000;
    if text.ends_with('i') && whole.abs() == WHOLE_MAX {
        return Digits::Decimal(whole, 0);
    }
    Digits::Decimal(quantity.nano(), -9)
}

/// The integer and the power of ten of a text; `None` if Go parses it into a decimal (`ParseQuantity`).
fn integer_digits(text: &str) -> Option<(i64, i32)> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let after = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    let whole = rest.get(..rest.len().checked_sub(after.len())?)?;
    let whole = whole.trim_start_matches('0');
    let (fraction, suffix) = match after.strip_prefix('.') {
        Some(after) => {
            let suffix = after.trim_start_matches(|it: char| it.is_ascii_digit());
            (after.get(..after.len().checked_sub(suffix.len())?)?, suffix)
        }
        None => ("", after),
    };
    let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
    let count = i64::try_from(digits.len()).ok()?;
    let value: i64 = digits.parse().ok()?;
    let value = if is_negative {
        value.checked_neg()?
    } else {
        value
    };
    let is_meant = |unit: &&Unit| unit.0 == suffix;
    // Without a suffix a quantity is decimal.
    let mut binary = BINARY_SI.iter().filter(|it| !it.0.is_empty());
    if let Some((_, power)) = binary.find(is_meant) {
        let precision = 14_i64
            .checked_sub(count)?
            .checked_sub(i64::from(*power) * 3 / 10)?;
        if !fraction.is_empty() || precision < 0 {
            return None;
        }
        let value = value.checked_mul(1_i64.checked_shl(u32::try_from(*power).ok()?)?)?;
        return Some((value, 0));
    }
    let exponent = match DECIMAL_SI.iter().find(is_meant) {
        Some((_, exponent)) => i64::from(*exponent),
        None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    if count > DIGITS_MAX {
        return None;
    }
    let scale = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let scale = i32::try_from(scale).ok().filter(|it| *it >= -9)?;
    Some((value, scale))
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn as_integer_fraction_or_decimal_is_none() {
        for (text, expected) in [
            ("12", Some(12)),
            ("-5", Some(-5)),
            ("1k", Some(1000)),
            ("2Ki", Some(2048)),
            ("1.5k", Some(1500)),
            ("1e3", Some(1000)),
            ("1.5Gi", None),
            ("1000m", None),
            ("0.5", None),
            ("1e30", None),
            ("1Ei", None),
            ("9999999999999999999", None),
        ] {
            let quantity = text.parse().unwrap_or(super::Quantity::ZERO);
            assert_eq!(digits(text, quantity).as_integer(), expected, "{text}");
        }
    }
}
