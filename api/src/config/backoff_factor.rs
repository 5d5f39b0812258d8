//! The backoff factor, an exact decimal number.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The maximum number of decimal places.
const DECIMALS: usize = 8;

/// 1.0, in hundred-millionths.
const ONE: u64 = 100_000_000;

/// The largest factor. With a base of one minute the second backoff is then two months.
const MOST: u64 = 100_000;

/// A decimal number of at least 1 with up to eight decimal places, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackoffFactor(u64);

/// A number that is not a valid factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackoffFactorError {
    /// The number is below 1, too large, or not a number.
    #[error("{0} is not in the range from 1 to {MOST}")]
    OutOfRange(String),
    /// The number has too many decimal places.
    #[error("{0} has more than {DECIMALS} decimal places")]
    TooManyDigits(String),
}

impl BackoffFactor {
    /// A built-in default.
    pub(super) const fn from_default(whole: u64) -> Self {
        assert!(1 <= whole && whole <= MOST, "a default is out of range");
        Self(whole.saturating_mul(ONE))
    }

    /// The factor in hundred-millionths.
    #[must_use]
    pub const fn hundred_millionths(self) -> u64 {
        self.0
    }
}

impl FromStr for BackoffFactor {
    type Err = BackoffFactorError;

    fn from_str(text: &str) -> Result<Self, BackoffFactorError> {
        let range = || BackoffFactorError::OutOfRange(text.to_owned());
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) {
            return Err(range());
        }
        if part.len() > DECIMALS {
            return Err(BackoffFactorError::TooManyDigits(text.to_owned()));
        }
        let whole: u64 = whole.parse().map_err(|_| range())?;
        // Padded to eight places, the digits are hundred-millionths.
        let part: u64 = format!("{part:0<DECIMALS$}").parse().map_err(|_| range())?;
        let sum = whole.saturating_mul(ONE).saturating_add(part);
        if !(ONE..=MOST.saturating_mul(ONE)).contains(&sum) {
            return Err(range());
        }
        Ok(Self(sum))
    }
}

/// The shortest form: `2`, `1.5`.
impl fmt::Display for BackoffFactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / ONE, self.0 % ONE);
        let text = format!("{whole}.{part:0DECIMALS$}");
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for BackoffFactor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        if let Ok(whole) = text.parse::<u64>() {
            return serializer.serialize_u64(whole);
        }
        // The nearest float prints the same digits again: there are fewer than 15.
        match text.parse::<f64>() {
            Ok(number) => serializer.serialize_f64(number),
            Err(_) => serializer.serialize_str(&text),
        }
    }
}

impl<'de> Deserialize<'de> for BackoffFactor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BackoffFactorVisitor)
    }
}

struct BackoffFactorVisitor;

impl Visitor<'_> for BackoffFactorVisitor {
    type Value = BackoffFactor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from 1 to {MOST}")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<BackoffFactor, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<BackoffFactor, E> {
        number.to_string().parse().map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<BackoffFactor, E> {
        // The shortest digits of the float are those in the file.
        number.to_string().parse().map_err(E::custom)
    }
}

impl JsonSchema for BackoffFactor {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BackoffFactor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 1, "maximum": MOST})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Result<u64, &str>) {
        let read = serde_json::from_str::<BackoffFactor>(json);
        match (read, expected) {
            (Ok(factor), Ok(expected)) => {
                assert_eq!(factor.hundred_millionths(), expected, "{json}");
                let written = serde_json::to_string(&factor).unwrap_or_default();
                assert_eq!(serde_json::from_str(&written).ok(), Some(factor));
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (read, _) => assert_eq!(read.err().map(|it| it.to_string()), None, "{json}"),
        }
    }

    #[test]
    fn backoff_factor_keeps_eight_decimals() {
        check("1", Ok(100_000_000));
        check("1.0", Ok(100_000_000));
        check("1.00000001", Ok(100_000_001));
        check("1.41284738", Ok(141_284_738));
        check("2", Ok(200_000_000));
        check("2.5", Ok(250_000_000));
        check("15e-1", Ok(150_000_000));
        check("100000", Ok(10_000_000_000_000));
        check("99999.99999999", Ok(9_999_999_999_999));
        for number in ["0", "0.99999999", "-2", "100000.00000001", "1e300", "-0.5"] {
            check(number, Err("is not in the range from 1 to 100000"));
        }
        check("1.123456789", Err("more than 8 decimal places"));
        check("\"2\"", Err("a number from 1 to 100000"));
    }

    #[test]
    fn backoff_factor_prints_shortest_form() {
        for text in ["1", "2", "10", "1.5", "1.41284738", "100000"] {
            let printed = text.parse().map(|it: BackoffFactor| it.to_string());
            assert_eq!(printed.as_deref(), Ok(text));
        }
    }
}
