//! Whether Go represents a quantity as an integer.

use lockkeeper_api::quantity::{BINARY_SI, DECIMAL_SI, Unit};

/// The most digits that Go parses into 64-bit integers.
const DIGITS_MAX: i64 = 18;

/// `AsInt64` of a parsed quantity: `None` for a quantity with a fraction, also if it is zero, and for one that Go parses
/// into a decimal.
pub(super) fn as_integer(text: &str) -> Option<i64> {
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
        return value.checked_mul(1_i64.checked_shl(u32::try_from(*power).ok()?)?);
    }
    let exponent = match DECIMAL_SI.iter().find(is_meant) {
        Some((_, exponent)) => i64::from(*exponent),
        None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    if count > DIGITS_MAX {
        return None;
    }
    let scale = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    // A negative scale is not reduced.
    value.checked_mul(10_i64.checked_pow(u32::try_from(scale).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::as_integer;

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
            assert_eq!(as_integer(text), expected, "{text}");
        }
    }
}
