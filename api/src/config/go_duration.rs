//! Durations in Go's notation (`metav1.Duration`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The maximum, in nanoseconds: Go's int64, about 292 years.
const MAX_NS: u128 = i64::MAX.unsigned_abs() as u128;

/// The accepted units and their length in nanoseconds.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    // The micro sign and the Greek letter; Go accepts both.
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The units of the output, longest first.
const DISPLAY_UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The number of decimal places that are evaluated. An hour has 3.6e12 nanoseconds, so fewer would suffice.
const DIGITS_MAX: usize = 25;

/// A duration such as `5m`, `300s`, `1h30m` or `1.5s`: `metav1.Duration`, but never negative. It is exact to
/// the nanosecond; smaller fractions are truncated, as in Go.
///
/// kube's own `Duration` panics on a number that is too large, and accepts an empty text as 0.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct GoDuration(Duration);

/// A text that is not a valid duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError {
    /// The text is not a list of numbers with units.
    #[error("{0:?} is not a duration; give numbers with units h, m, s or ms, such as 5m or 1h30m")]
    Malformed(String),
    /// The duration is negative.
    #[error("{0:?} is negative; give 0s or more")]
    Negative(String),
    /// The duration exceeds Go's int64.
    #[error("{0:?} is longer than 292 years; give less")]
    TooLong(String),
}

impl GoDuration {
    /// A built-in default, in whole seconds.
    pub(super) const fn from_default(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The standard library's duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for GoDuration {
    type Err = GoDurationError;

    /// Follows Go's `time.ParseDuration`.
    fn from_str(text: &str) -> Result<Self, GoDurationError> {
        let malformed = || GoDurationError::Malformed(text.to_owned());
        let too_long = || GoDurationError::TooLong(text.to_owned());
        let (is_negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest.is_empty() {
            return Err(malformed());
        }
        // The only number without a unit that Go accepts.
        if rest == "0" {
            rest = "0s";
        }
        let mut total_ns: u128 = 0;
        while !rest.is_empty() {
            let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
            let (unit, after) = split(after, |c| !c.is_ascii_digit() && c != '.');
            let unit = UNITS.iter().find(|(name, _)| *name == unit);
            let (whole, part) = number.split_once('.').unwrap_or((number, ""));
            let (true, Some((_, unit_ns))) = (is_number(whole, part), unit) else {
                return Err(malformed());
            };
            let ns = whole_ns(whole, *unit_ns).ok_or_else(too_long)?;
            total_ns = total_ns
                .saturating_add(ns)
                .saturating_add(part_ns(part, *unit_ns));
            if total_ns > MAX_NS {
                return Err(too_long());
            }
            rest = after;
        }
        // Go accepts `-0s`.
        if is_negative && total_ns > 0 {
            return Err(GoDurationError::Negative(text.to_owned()));
        }
        let ns = u64::try_from(total_ns).map_err(|_| too_long())?;
        Ok(Self(Duration::from_nanos(ns)))
    }
}

/// Splits off the longest prefix of matching characters.
fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Whether the parts before and after the decimal point are digits, at least one in total.
fn is_number(whole: &str, part: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole) && is_digits(part) && (!whole.is_empty() || !part.is_empty())
}

/// The nanoseconds of a whole number of units; `None` on overflow.
fn whole_ns(digits: &str, unit_ns: u128) -> Option<u128> {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let count: u64 = digits.parse().ok()?;
    u128::from(count).checked_mul(unit_ns)
}

/// The nanoseconds of the decimal places.
fn part_ns(digits: &str, unit_ns: u128) -> u128 {
    let (count, scale) =
        digits
            .bytes()
            .take(DIGITS_MAX)
            .fold((0u128, 1u128), |(count, scale), digit| {
                let digit = u128::from(digit.saturating_sub(b'0'));
                // Fits: 25 digits, and 1e25 hours in nanoseconds.
                let count = count.saturating_mul(10).saturating_add(digit);
                (count, scale.saturating_mul(10))
            });
    let product = count.saturating_mul(unit_ns);
    product.checked_div(scale).unwrap_or_default()
}

impl TryFrom<String> for GoDuration {
    type Error = GoDurationError;

    fn try_from(text: String) -> Result<Self, GoDurationError> {
        text.parse()
    }
}

impl From<GoDuration> for String {
    fn from(duration: GoDuration) -> Self {
        duration.to_string()
    }
}

/// The shortest form: `5m`, not `5m0s`.
impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut remaining_ns = self.0.as_nanos();
        if remaining_ns == 0 {
            return f.write_str("0s");
        }
        for (name, unit_ns) in DISPLAY_UNITS {
            let count = remaining_ns.checked_div(unit_ns).unwrap_or_default();
            remaining_ns = remaining_ns.checked_rem(unit_ns).unwrap_or_default();
            if count > 0 {
                write!(f, "{count}{name}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn check(text: &str, expected_ns: u64, printed: &str) {
        let read: GoDuration = text.parse().unwrap();
        assert_eq!(read.get(), Duration::from_nanos(expected_ns), "{text}");
        assert_eq!(read.to_string(), printed);
        assert_eq!(printed.parse(), Ok(read), "{printed}");
    }

    /// From Go's own table, `parseDurationTests`.
    #[test]
    fn go_duration_parses_as_in_go() {
        const S: u64 = 1_000_000_000;
        let table = [
            ("0", 0, "0s"),
            ("-0", 0, "0s"),
            ("0s", 0, "0s"),
            ("5m", 300 * S, "5m"),
            ("300s", 300 * S, "5m"),
            ("+5s", 5 * S, "5s"),
            ("1478s", 1_478 * S, "24m38s"),
            ("1h30m", 5_400 * S, "1h30m"),
            ("5.s", 5 * S, "5s"),
            (".5s", S / 2, "500ms"),
            ("5.6s", 5_600_000_000, "5s600ms"),
            ("1.004s", 1_004_000_000, "1s4ms"),
            ("1.0040s", 1_004_000_000, "1s4ms"),
            ("100.00100s", 100_001_000_000, "1m40s1ms"),
            ("10ns", 10, "10ns"),
            ("11us", 11_000, "11us"),
            ("12\u{b5}s", 12_000, "12us"),
            ("12\u{3bc}s", 12_000, "12us"),
            ("13ms", 13_000_000, "13ms"),
            ("3h30m", 12_600 * S, "3h30m"),
            ("10.5s4m", 250 * S + S / 2, "4m10s500ms"),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006, "1h2m3s4ms5us6ns"),
            ("39h9m14.425s", 140_954_425_000_000, "39h9m14s425ms"),
            ("52763797000ns", 52_763_797_000, "52s763ms797us"),
            (
                "0.3333333333333333333h",
                1_200 * S - 1,
                "19m59s999ms999us999ns",
            ),
            ("0.100000000000000000000h", 360 * S, "6m"),
            (
                "0.9223372036854775807h",
                3_320_413_933_267,
                "55m20s413ms933us267ns",
            ),
            (
                "9007199254740993ns",
                9_007_199_254_740_993,
                "2501h59m59s254ms740us993ns",
            ),
            (
                "9223372036854775807ns",
                i64::MAX.unsigned_abs(),
                "2562047h47m16s854ms775us807ns",
            ),
        ];
        for (text, expected_ns, printed) in table {
            check(text, expected_ns, printed);
        }
    }

    #[test]
    fn go_duration_malformed_is_rejected() {
        for text in [
            "",
            "3",
            "-",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "5.",
            "--5s",
            "+-5s",
            " 5m",
            "5 m",
            "5m ",
            "1d",
            "5M",
            "1e3s",
            "1.2.3s",
            "s5",
            "5s3",
            "\u{ff15}s",
            "0x5s",
            "P5M",
        ] {
            let expected = Err(GoDurationError::Malformed(text.to_owned()));
            assert_eq!(text.parse::<GoDuration>(), expected);
        }
        for text in ["-5m", "-1ns", "-1h30m"] {
            let expected = Err(GoDurationError::Negative(text.to_owned()));
            assert_eq!(text.parse::<GoDuration>(), expected);
        }
        let many = format!("{}h", "9".repeat(60));
        let nines = format!("0.{}s", "9".repeat(60));
        for text in [
            "9223372036854775808ns",
            "2562047h47m16.854775808s",
            "2562048h",
            &many,
        ] {
            let expected = Err(GoDurationError::TooLong(text.to_owned()));
            assert_eq!(text.parse::<GoDuration>(), expected);
        }
        check(&nines, 999_999_999, "999ms999us999ns");
    }
}
