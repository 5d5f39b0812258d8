//! Amounts of resources, as Kubernetes parses and prints them.
//!
//! The rules are those of `resource.Quantity` in k8s.io/apimachinery v0.37.1 (`pkg/api/resource`).
//! `tests/data/quantities.jsonl` contains the results of that code, and a test compares ours with them.
//!
//! There are three deliberate differences:
//! - A value is at most 2^127-1 nano (about 1.7e29) in magnitude; Kubernetes supports larger ones.
//! - An exponent that does not fit 32 bits is rejected; Kubernetes drops its upper bits.
//! - Values of 1000E and more keep their suffix when printed; Kubernetes prints `1000E` as `1`.
//!
//! The arithmetic is checked where a value can be too large, and wrapping or saturating only where
//! the comment beside it says why that cannot happen.

mod parse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

/// Nano units in one.
const NANO_PER_WHOLE: i128 = 1_000_000_000;

/// Nano units in a thousandth.
const NANO_PER_MILLI: i128 = 1_000_000;

/// A suffix and its power of ten or of two.
pub type Unit = (&'static str, i32);

/// The decimal suffixes, each 1000 times the one before, from nano.
pub const DECIMAL_SI: [Unit; 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// The canonical exponents of [`Format::DecimalExponent`], from nano to the most that fits.
const DECIMAL_EXPONENT: [Unit; 13] = [
    ("e-9", -9),
    ("e-6", -6),
    ("e-3", -3),
    ("", 0),
    ("e3", 3),
    ("e6", 6),
    ("e9", 9),
    ("e12", 12),
    ("e15", 15),
    ("e18", 18),
    ("e21", 21),
    ("e24", 24),
    ("e27", 27),
];

/// The binary suffixes, each 1024 times the one before, from one.
pub const BINARY_SI: [Unit; 7] = [
    ("", 0),
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The pattern in the CRDs of Kubernetes for a quantity that is a string. It is narrower than [`Quantity::from_str`] in
/// some places (`Ki`) and wider in others (`1e1.5`).
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// An exact amount of a resource, such as `500m` (cpu) or `16Gi` (bytes).
///
/// This is apimachinery's `resource.Quantity`. The value is a whole number of nano units (1e-9);
/// anything finer was rounded away from zero when it was parsed.
///
/// Two quantities are equal, and hash alike, when their values are: `4` is `4000m`, and `1Gi` is
/// `1073741824`. The kind of suffix is remembered for printing only.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

/// The kind of suffix that a quantity was written with, and is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Powers of 1000: `12M`.
    DecimalSi,
    /// Powers of 1024: `12Mi`.
    BinarySi,
    /// A power of ten: `12e6`.
    DecimalExponent,
}

/// The reason why a text or number is not a [`Quantity`]. The messages do not repeat the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text is empty, or is not a number with an optional suffix after it: `abc`, `1 Gi`,
    /// `1.5.5`, `1GB`. Kubernetes calls it `ErrFormatWrong`.
    #[error("not a quantity; accepted is a number with an optional suffix, as in 500m, 4 or 16Gi")]
    Malformed,

    /// The text has a suffix and no digit before it: `Pi`, `.Ei`, `e-10`. The other suffixes are
    /// accepted without a digit and mean 0, as in Kubernetes, where this one is `ErrNumeric`.
    #[error("no digits; accepted is a number with an optional suffix, as in 500m, 4 or 16Gi")]
    NoDigits,

    /// The text after the number is not a suffix: `1mi`, `1K`, `1e`. Kubernetes calls it
    /// `ErrSuffix`.
    #[error(
        "unknown suffix; accepted are n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an \
         exponent such as e3"
    )]
    UnknownSuffix,

    /// The value is well formed and does not fit 128 bits in nano units, or its exponent does not
    /// fit 32 bits: `1e400`, `1000000000000E`, `0e9999999999`.
    #[error(
        "out of range; accepted are values of at most 1.7e29 in magnitude, with an exponent that \
         fits 32 bits"
    )]
    OutOfRange,
}

impl Quantity {
    /// Zero; prints as `0`.
    pub const ZERO: Self = Self {
        nano: 0,
        format: Format::DecimalSi,
    };

    /// A number of thousandths.
    #[must_use]
    pub fn from_milli(milli: i64) -> Self {
        // 2^63 thousandths are 2^83 nano.
        let nano = i128::from(milli).wrapping_mul(NANO_PER_MILLI);
        Self {
            nano,
            format: Format::DecimalSi,
        }
    }

    /// A number of bytes, printed with a binary suffix where that is exact.
    #[must_use]
    pub fn from_bytes(bytes: i64) -> Self {
        Self {
            format: Format::BinarySi,
            ..Self::from(bytes)
        }
    }

    /// The sum, with the suffix of the first that is not zero. `None` when it is too large.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        let nano = self.nano.checked_add(other.nano)?;
        Some(Self { nano, format })
    }

    /// The difference, with the suffix of the first that is not zero. `None` when it is too large.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let nano = other.nano.checked_neg()?;
        self.checked_add(Self { nano, ..other })
    }

    /// The exact value in nano units (1e-9).
    #[must_use]
    pub const fn nano(self) -> i128 {
        self.nano
    }

    /// Whether the value is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.nano.is_negative()
    }

    /// Whether the value is zero, whatever its sign or suffix was.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// The value in milli units (1e-3), rounded away from zero: `0.1m` is 1, `-0.1m` is -1. `None`
    /// when that does not fit 64 bits.
    ///
    /// This is `MilliValue` of Kubernetes, without its bugs: it overflows silently, and negative values that it does
    /// not hold in 64 bits come out rounded towards zero or worse.
    #[must_use]
    pub fn milli_ceil(self) -> Option<i64> {
        self.away_from_zero(NANO_PER_MILLI)
    }

    /// The value in whole units, rounded away from zero: `1500m` is 2, `-1500m` is -2. `None` when
    /// that does not fit 64 bits.
    ///
    /// This is `Value` of Kubernetes; see [`Quantity::milli_ceil`] for where it differs.
    #[must_use]
    pub fn whole_ceil(self) -> Option<i64> {
        self.away_from_zero(NANO_PER_WHOLE)
    }

    /// The value in units of `nano_per_unit`, rounded away from zero.
    fn away_from_zero(self, nano_per_unit: i128) -> Option<i64> {
        let towards_zero = self.nano.checked_div(nano_per_unit)?;
        // Rust divides towards zero; the sign of the remainder leads one step away from it.
        let remainder = self.nano.checked_rem(nano_per_unit)?;
        i64::try_from(towards_zero.checked_add(remainder.signum())?).ok()
    }

    fn from_whole(whole: i128) -> Result<Self, QuantityError> {
        let nano = whole
            .checked_mul(NANO_PER_WHOLE)
            .ok_or(QuantityError::OutOfRange)?;
        Ok(Self {
            nano,
            format: Format::DecimalSi,
        })
    }

    /// Reads the shortest decimal number that is this float, as Kubernetes does by writing it as
    /// JSON and parsing that: 0.1 is exactly 100m.
    fn from_float(value: f64) -> Result<Self, QuantityError> {
        // Go writes an exponent at the same magnitudes, and it decides how the value is printed.
        if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
            format!("{value}").parse()
        } else {
            format!("{value:e}").parse()
        }
    }

    /// The whole number that can be printed with a binary suffix. `None` when the value has a
    /// fraction or is below 1Ki in magnitude; Kubernetes then prints a decimal suffix.
    fn binary_whole(self) -> Option<i128> {
        let whole = divide(self.nano, NANO_PER_WHOLE);
        let exact = whole.wrapping_mul(NANO_PER_WHOLE) == self.nano;
        (exact && whole.unsigned_abs() >= 1024).then_some(whole)
    }
}

/// A number of whole units.
impl From<i64> for Quantity {
    fn from(whole: i64) -> Self {
        // 2^63 units are 2^93 nano.
        let nano = i128::from(whole).wrapping_mul(NANO_PER_WHOLE);
        Self {
            nano,
            format: Format::DecimalSi,
        }
    }
}

/// The canonical form: the largest suffix of its kind that leaves a whole number.
///
/// This is what `Quantity.String` of Kubernetes computes. For some texts, such as `+5` or `1.123`,
/// Kubernetes keeps and prints the parsed text; this type always prints the canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let (mantissa, suffix) = match (self.format, self.binary_whole()) {
            (Format::BinarySi, Some(whole)) => scale(whole, 1024, &BINARY_SI),
            (Format::BinarySi | Format::DecimalSi, _) => scale(self.nano, 1000, &DECIMAL_SI),
            (Format::DecimalExponent, _) => scale(self.nano, 1000, &DECIMAL_EXPONENT),
        };
        f.write_str(itoa::Buffer::new().format(mantissa))?;
        f.write_str(suffix)
    }
}

/// Divides `value`, which is in the first of `units`, while it stays whole and there is a next unit.
fn scale(value: i128, base: i128, units: &[Unit]) -> (i128, &'static str) {
    let mut units = units.iter().map(|(suffix, _)| *suffix);
    let mut mantissa = value;
    let mut current = units.next().unwrap_or_default();
    for suffix in units {
        let quotient = divide(mantissa, base);
        // One division instead of two: they are what printing costs. The product cannot be too large.
        if quotient.wrapping_mul(base) != mantissa {
            break;
        }
        mantissa = quotient;
        current = suffix;
    }
    (mantissa, current)
}

/// Most values fit into 64 bits, whose division is much faster.
fn divide(value: i128, divisor: i128) -> i128 {
    if let (Ok(value), Ok(divisor)) = (i64::try_from(value), i64::try_from(divisor)) {
        value.checked_div(divisor).unwrap_or_default().into()
    } else {
        value.checked_div(divisor).unwrap_or_default()
    }
}

/// Parses a quantity as `resource.ParseQuantity` does; spaces around it are not accepted.
///
/// The work is linear in the length of the text, and nothing is allocated.
impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

/// Writes the canonical form as a string.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads a string, with spaces around it or not, or a number. Null is an error; an optional field
/// is an `Option<Quantity>`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a string such as \"500m\" or \"16Gi\", or a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        if let Some(quantity) = parse::parse_usual(text) {
            return Ok(quantity);
        }
        // Kubernetes trims the raw text between the quotes. ASCII control characters can only be written as escapes
        // there, which it does not decode, so it rejects them.
        text.trim_matches(|c: char| c.is_whitespace() && c >= ' ')
            .parse()
            .map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Quantity, E> {
        Quantity::from_whole(whole.into()).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Quantity, E> {
        Quantity::from_whole(whole.into()).map_err(E::custom)
    }

    fn visit_i128<E: de::Error>(self, whole: i128) -> Result<Quantity, E> {
        Quantity::from_whole(whole).map_err(E::custom)
    }

    fn visit_u128<E: de::Error>(self, whole: u128) -> Result<Quantity, E> {
        i128::try_from(whole)
            .map_err(|_| QuantityError::OutOfRange)
            .and_then(Quantity::from_whole)
            .map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        Quantity::from_float(value).map_err(E::custom)
    }
}

/// The schema that controller-gen writes for a `resource.Quantity`, as in the CRDs of Kueue.
impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Quantity").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}
