//! Times in CSV files.

use crate::import_error::ImportError;
use crate::mapping::TimeFormat;
use k8s_openapi::jiff::Timestamp;

/// The largest time in milliseconds: 2^50, about 35,000 years.
const TIME_MAX_MS: i64 = 1 << 50;

/// Parses a time or, for numbers, a duration. Returns milliseconds, zero or more for numbers.
pub(crate) fn parse_time_ms(
    text: &str,
    format: TimeFormat,
    field: &str,
    line: u64,
) -> Result<i64, ImportError> {
    let error = |expected| ImportError::value(line, field, text, expected);
    let (scale, expected) = match format {
        TimeFormat::Rfc3339 => {
            let time: Timestamp = text.parse().map_err(|_| {
                error("no time; write a date with a time zone, such as 2026-11-29T08:00:00Z")
            })?;
            return Ok(time.as_millisecond());
        }
        TimeFormat::Seconds => (1_000, "no number of seconds"),
        TimeFormat::Milliseconds => (1, "no number of milliseconds"),
    };
    let ms = parse_decimal(text, scale).ok_or_else(|| error(expected))?;
    // Also -0.5, whose whole part is zero.
    if text.starts_with('-') {
        return Err(error("negative; times must be zero or more"));
    }
    if ms > TIME_MAX_MS {
        return Err(error("too large for a time"));
    }
    Ok(ms)
}

/// Parses a decimal number times 1 or 1000, rounded down. Digits only: no exponent, no infinity.
fn parse_decimal(text: &str, scale: i64) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.bytes().any(|it| !it.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let mut ms = whole.checked_mul(scale)?;
    let mut digit_value = scale;
    for digit in fraction.bytes() {
        digit_value = digit_value.checked_div(10)?;
        let digit = i64::from(digit.checked_sub(b'0')?);
        ms = ms.checked_add(digit.checked_mul(digit_value)?)?;
    }
    Some(ms)
}

#[cfg(test)]
mod tests {
    use super::parse_time_ms;
    use crate::mapping::TimeFormat::{Milliseconds, Rfc3339, Seconds};

    #[test]
    fn times_are_milliseconds() {
        for (text, format, expected) in [
            ("0", Seconds, Some(0)),
            ("12", Seconds, Some(12_000)),
            ("12.5", Seconds, Some(12_500)),
            ("12.0009", Seconds, Some(12_000)),
            ("12", Milliseconds, Some(12)),
            ("1970-01-01T00:01:00Z", Rfc3339, Some(60_000)),
            ("1970-01-01T01:01:00+01:00", Rfc3339, Some(60_000)),
            ("-1", Seconds, None),
            ("-0.5", Seconds, None),
            ("1e3", Seconds, None),
            ("nan", Seconds, None),
            ("1.-5", Seconds, None),
            ("9223372036854775807", Seconds, None),
            ("2026-11-29 08:00", Rfc3339, None),
        ] {
            let parsed = parse_time_ms(text, format, "arrival", 1);
            assert_eq!(parsed.ok(), expected, "{text}");
        }
    }
}
