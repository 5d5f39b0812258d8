//! Parses quantities: `ParseQuantity` of apimachinery, without its big integers.

use std::num::IntErrorKind;

use super::{
    BINARY_SI, DECIMAL_SI, Format, NANO_PER_MILLI, NANO_PER_WHOLE, Quantity, QuantityError,
};

/// The power of ten of a nano unit.
const NANO_EXPONENT: i32 = -9;

/// Nano units in one, unsigned.
const NANO_PER_WHOLE_UNSIGNED: u128 = NANO_PER_WHOLE.unsigned_abs();

/// The maximum of a quantity with a binary suffix, in nano units: 2^63-1 whole units.
/// Kubernetes lowers larger values to it.
pub(super) const BINARY_NANO_MAX: u128 = 9_223_372_036_854_775_807_000_000_000;

/// How many digits after the point decide the nano value of a number with a binary suffix. Of
/// further digits it matters only whether one is not 0. A multiple of a nano unit divided by 1Ei
/// has at most this many digits: it is a whole number over 2^60 * 10^9, that is over 10^69.
const BINARY_FRACTION_DIGITS_MAX: usize = 69;

/// The largest power of two for which a text without digits is read as 0: that of `Ti`.
const NO_DIGITS_BITS_MAX: u32 = 40;

/// The parts of a text; only their characters are checked.
struct Parts<'a> {
    negative: bool,
    /// ASCII digits, maybe none.
    integer: &'a str,
    /// ASCII digits, maybe none.
    fraction: &'a str,
    suffix: &'a str,
}

/// The multiplier of a suffix.
#[derive(Clone, Copy)]
enum Multiplier {
    /// A power of ten.
    Ten(i32, Format),
    /// A power of two, at most 2^60.
    Two(u32),
}

/// The most digits that [`parse_usual`] reads: their number fits 64 bits.
const USUAL_DIGITS_MAX: usize = 18;

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    match parse_usual(text) {
        Some(quantity) => Ok(quantity),
        None => parse_any(text),
    }
}

/// Parses digits with a common suffix or none, as most quantities are written, in a fraction of the time of
/// [`parse_any`]. `None` for any other text.
pub(super) fn parse_usual(text: &str) -> Option<Quantity> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = text.split_at_checked(length)?;
    if digits.is_empty() || length > USUAL_DIGITS_MAX {
        return None;
    }
    // Numbers of so few digits do not wrap.
    let number = digits.bytes().fold(0_u64, |sum, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        sum.wrapping_mul(10).wrapping_add(digit)
    });
    let (nano_per_unit, format) = match suffix {
        "" => (NANO_PER_WHOLE, Format::DecimalSi),
        "m" => (NANO_PER_MILLI, Format::DecimalSi),
        "k" => (1_000_000_000_000, Format::DecimalSi),
        "M" => (1_000_000_000_000_000, Format::DecimalSi),
        "G" => (1_000_000_000_000_000_000, Format::DecimalSi),
        "Ki" => (1_024_000_000_000, Format::BinarySi),
        "Mi" => (1_048_576_000_000_000, Format::BinarySi),
        "Gi" => (1_073_741_824_000_000_000, Format::BinarySi),
        "Ti" => (1_099_511_627_776_000_000_000, Format::BinarySi),
        _ => return None,
    };
    let nano = i128::from(number).checked_mul(nano_per_unit)?;
    let is_lowered = format == Format::BinarySi && nano.unsigned_abs() > BINARY_NANO_MAX;
    (!is_lowered).then_some(Quantity { nano, format })
}

/// Parses any text.
pub(super) fn parse_any(text: &str) -> Result<Quantity, QuantityError> {
    let parts = split(text).ok_or(QuantityError::Malformed)?;
    let multiplier = interpret(parts.suffix)?;
    let no_digits = parts.integer.is_empty() && parts.fraction.is_empty();
    if no_digits && !allows_no_digits(multiplier) {
        return Err(QuantityError::NoDigits);
    }
    let (magnitude_nano, format) = match multiplier {
        Multiplier::Ten(exponent, format) => {
            let nano = decimal_nano(parts.integer, parts.fraction, exponent);
            (nano.ok_or(QuantityError::OutOfRange)?, format)
        }
        Multiplier::Two(bits) => {
            let nano = binary_nano(parts.integer, parts.fraction, bits);
            // Kubernetes drops the binary suffix of a value between 0 and 1.
            let format = if nano > 0 && nano < NANO_PER_WHOLE_UNSIGNED {
                Format::DecimalSi
            } else {
                Format::BinarySi
            };
            (nano, format)
        }
    };
    let nano = if parts.negative {
        0_i128.checked_sub_unsigned(magnitude_nano)
    } else {
        0_i128.checked_add_unsigned(magnitude_nano)
    };
    let nano = nano.ok_or(QuantityError::OutOfRange)?;
    Ok(Quantity { nano, format })
}

/// Splits a text into sign, digits, point, digits, and a suffix of characters that occur in
/// suffixes. `None` if other characters follow.
fn split(text: &str) -> Option<Parts<'_>> {
    if text.is_empty() {
        return None;
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (integer, rest) = split_digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    // The suffix may be an exponent, which ends with a sign and digits.
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (_, left_over) = split_digits(exponent);
    left_over.is_empty().then_some(Parts {
        negative,
        integer,
        fraction,
        suffix,
    })
}

/// The ASCII digits that a text starts with, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn interpret(suffix: &str) -> Result<Multiplier, QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SI.iter().find(|(name, _)| *name == suffix) {
        return Ok(Multiplier::Ten(*exponent, Format::DecimalSi));
    }
    if let Some((_, bits)) = BINARY_SI.iter().find(|(name, _)| *name == suffix) {
        return Ok(Multiplier::Two(bits.unsigned_abs()));
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::UnknownSuffix)?;
    match exponent.parse() {
        Ok(exponent) => Ok(Multiplier::Ten(exponent, Format::DecimalExponent)),
        Err(error) => match error.kind() {
            // Kubernetes rejects these from 64 bits on, and between 32 and 64 drops the upper bits: 1e4294967299 is
            // 1000 there.
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => Err(QuantityError::OutOfRange),
            _ => Err(QuantityError::UnknownSuffix),
        },
    }
}

/// Whether a text without a digit is 0, as in Kubernetes.
fn allows_no_digits(multiplier: Multiplier) -> bool {
    match multiplier {
        // Kubernetes reads it as 0 on its path for 64 bits, and rejects it on the other.
        Multiplier::Ten(exponent, _) => exponent >= NANO_EXPONENT,
        Multiplier::Two(bits) => bits <= NO_DIGITS_BITS_MAX,
    }
}

/// `integer.fraction` times ten to the `exponent`, in nano units, rounded up. `None` when it does
/// not fit 128 bits.
fn decimal_nano(integer: &str, fraction: &str, exponent: i32) -> Option<u128> {
    let fraction_len = i64::try_from(fraction.len()).ok()?;
    let last_digit_exponent = i64::from(exponent).checked_sub(fraction_len)?;
    // Kubernetes keeps this number, and its negative, in 32 bits, and wraps around.
    if last_digit_exponent.unsigned_abs() > u64::from(i32::MAX.unsigned_abs()) {
        return None;
    }
    let shift = last_digit_exponent.checked_sub(NANO_EXPONENT.into())?;
    let too_fine_digits = usize::try_from(shift.min(0).unsigned_abs()).ok()?;
    let kept_digits = integer
        .len()
        .checked_add(fraction.len())?
        .saturating_sub(too_fine_digits); // None is kept when all are too fine.
    let mut digits = integer.bytes().chain(fraction.bytes());
    let mantissa = number(digits.by_ref().take(kept_digits))?;
    // `take` has consumed the kept digits: the rest is finer than a nano unit.
    let rounding = u128::from(digits.any(|digit| digit != b'0'));
    if mantissa == 0 {
        return Some(rounding); // 0e1000 is 0, though 10^1000 does not fit.
    }
    let power = 10_u128.checked_pow(u32::try_from(shift.max(0)).ok()?)?;
    mantissa.checked_mul(power)?.checked_add(rounding)
}

/// `integer.fraction` times two to the `bits`, in nano units, rounded up, then lowered to
/// [`BINARY_NANO_MAX`].
fn binary_nano(integer: &str, fraction: &str, bits: u32) -> u128 {
    // At most 2^60 * 10^9, which is below 2^90.
    let unit_nano = 2_u128
        .saturating_pow(bits)
        .saturating_mul(NANO_PER_WHOLE_UNSIGNED);
    // Saturating, as anything that large is lowered below.
    number(integer.bytes())
        .unwrap_or(u128::MAX)
        .saturating_mul(unit_nano)
        .saturating_add(fraction_of(unit_nano, fraction))
        .min(BINARY_NANO_MAX)
}

/// `0.fraction` times `unit_nano`, rounded up.
fn fraction_of(unit_nano: u128, fraction: &str) -> u128 {
    let decisive_len = fraction.len().min(BINARY_FRACTION_DIGITS_MAX);
    let (decisive, rest) = fraction.split_at(decisive_len);
    let mut inexact = rest.bytes().any(|digit| digit != b'0');
    // From the last digit to the first, so that each step divides by ten. The sum stays below the
    // unit between steps and below ten units (2^94) within one: nothing saturates.
    let mut sum: u128 = 0;
    for digit in decisive.bytes().rev() {
        let tenfold = unit_nano
            .saturating_mul(digit_value(digit))
            .saturating_add(sum);
        inexact |= tenfold.checked_rem(10) != Some(0);
        sum = tenfold.wrapping_div(10);
    }
    sum.saturating_add(u128::from(inexact))
}

/// The number of a text of ASCII digits, 0 if it is empty. `None` when it does not fit.
fn number(mut digits: impl Iterator<Item = u8>) -> Option<u128> {
    digits.try_fold(0, |sum: u128, digit| {
        sum.checked_mul(10)?.checked_add(digit_value(digit))
    })
}

/// The value of an ASCII digit; the callers have no other bytes.
fn digit_value(digit: u8) -> u128 {
    u128::from(digit.wrapping_sub(b'0'))
}
