//! Dates, times and durations as Go parses them.

use jiff::civil::Date;

/// Nanoseconds of the units of `time.ParseDuration`.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];

pub(in super::super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Units of durations in Scala's syntax: the names, of which the last one is a prefix, and nanoseconds.
const LOOSE_UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], NANOS_PER_SECOND),
    (&["m", "min"], 60 * NANOS_PER_SECOND),
    (&["h", "hr", "hour"], 3600 * NANOS_PER_SECOND),
    (&["d", "day"], 24 * 3600 * NANOS_PER_SECOND),
    (&["w", "wk", "week"], 7 * 24 * 3600 * NANOS_PER_SECOND),
];

/// A point in time: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Instant {
    pub(in super::super) seconds: i64,
    pub(in super::super) nanos: i64,
}

fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let (head, tail) = text.split_at_checked(count)?;
    let is_number = head.bytes().all(|it| it.is_ascii_digit());
    Some((head.parse().ok().filter(|_| is_number)?, tail))
}

fn sign<'a>(text: &'a str, expected: &str) -> Option<&'a str> {
    text.strip_prefix(expected)
}

fn date_at_start(text: &str) -> Option<(Date, &str)> {
    let (year, text) = digits(text, 4)?;
    let (month, text) = digits(sign(text, "-")?, 2)?;
    let (day, text) = digits(sign(text, "-")?, 2)?;
    let date = Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    );
    Some((date.ok()?, text))
}

fn seconds_of(date: Date) -> i64 {
    date.duration_since(Date::constant(1970, 1, 1)).as_secs()
}

/// A date such as `2026-01-31`, at midnight.
pub(in super::super) fn parse_date(text: &str) -> Option<Instant> {
    let (date, rest) = date_at_start(text)?;
    rest.is_empty().then(|| Instant {
        seconds: seconds_of(date),
        nanos: 0,
    })
}

/// `strfmt.IsDateTime`.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    parse_date(date).is_some() && is_time_with_zone(time).is_some()
}

fn is_time_with_zone(text: &str) -> Option<()> {
    let (hour, text) = digits(text, 2)?;
    let (minute, text) = digits(sign(text, ":")?, 2)?;
    let (second, text) = digits(sign(text, ":")?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let is_zone = |text: &str| {
        let offset = text.strip_prefix(['+', '-']).and_then(|it| {
            let (_, rest) = digits(it, 2)?;
            let (_, rest) = digits(sign(rest, ":")?, 2)?;
            Some(rest.is_empty())
        });
        text == "z" || offset == Some(true)
    };
    // Any sign may separate the fraction.
    let mut rest = text.chars();
    rest.next().filter(|it| *it != '\n');
    let fraction = rest.as_str();
    let tail = fraction.trim_start_matches(|it: char| it.is_ascii_digit());
    (is_zone(text) || (tail.len() < fraction.len() && is_zone(tail))).then_some(())
}

/// `time.Parse` with RFC 3339: one digit for the hour is enough, and a fraction may follow the seconds.
pub(in super::super) fn parse_rfc3339(text: &str) -> Option<Instant> {
    let (local, rest) = local_time(text)?;
    if rest == "Z" {
        return Some(local);
    }
    let (is_negative, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('+')?),
    };
    let (hours, rest) = digits(rest, 2)?;
    let (minutes, rest) = digits(sign(rest, ":")?, 2)?;
    if !rest.is_empty() || hours > 24 || minutes > 60 {
        return None;
    }
    let offset = hours
        .checked_mul(3600)?
        .checked_add(minutes.checked_mul(60)?)?;
    let offset = if is_negative {
        offset
    } else {
        offset.checked_neg()?
    };
    Some(Instant {
        seconds: local.seconds.checked_add(offset)?,
        ..local
    })
}

/// `strfmt.ParseDateTime`: RFC 3339, a time without a zone, or nothing.
pub(in super::super) fn parse_date_time(text: &str) -> Option<Instant> {
    if text.is_empty() {
        return Some(Instant {
            seconds: 0,
            nanos: 0,
        });
    }
    let local = || {
        local_time(text)
            .filter(|(_, rest)| rest.is_empty())
            .map(|it| it.0)
    };
    parse_rfc3339(text).or_else(local)
}

fn local_time(text: &str) -> Option<(Instant, &str)> {
    let (date, text) = date_at_start(text)?;
    let text = sign(text, "T")?;
    let (hour, text) = digits(text, 2).or_else(|| digits(text, 1))?;
    let (minute, text) = digits(sign(text, ":")?, 2)?;
    let (second, mut text) = digits(sign(text, ":")?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut nanos: i64 = 0;
    if let Some(fraction) = text.strip_prefix(['.', ',']) {
        let tail = fraction.trim_start_matches(|it: char| it.is_ascii_digit());
        let count = fraction
            .len()
            .checked_sub(tail.len())
            .filter(|it| *it > 0)?;
        for position in 0..9 {
            let digit = fraction
                .as_bytes()
                .get(position)
                .filter(|_| position < count);
            let digit = digit.map_or(0, |it| i64::from(it.saturating_sub(b'0')));
            nanos = nanos.saturating_mul(10).saturating_add(digit);
        }
        text = tail;
    }
    let seconds = seconds_of(date)
        .checked_add(hour.checked_mul(3600)?)?
        .checked_add(minute.checked_mul(60)?)?
        .checked_add(second)?;
    Some((Instant { seconds, nanos }, text))
}

/// `time.ParseDuration`, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let tail = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        let whole = rest.get(..rest.len().checked_sub(tail.len())?)?;
        let mut fraction = "";
        let mut after = tail;
        if let Some(digits) = tail.strip_prefix('.') {
            after = digits.trim_start_matches(|it: char| it.is_ascii_digit());
            fraction = digits.get(..digits.len().checked_sub(after.len())?)?;
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after
            .find(|it: char| it == '.' || it.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(end)?;
        let scale = i128::from(UNITS.iter().find(|it| it.0 == unit)?.1);
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        total = total.checked_add(whole.checked_mul(scale)?)?;
        total = total.checked_add(fraction_of(fraction, scale)?)?;
        rest = next;
    }
    i64::try_from(if is_negative {
        total.checked_neg()?
    } else {
        total
    })
    .ok()
}

/// A decimal fraction of a unit.
fn fraction_of(digits: &str, scale: i128) -> Option<i128> {
    let digits = digits.get(..digits.len().min(18))?;
    if digits.is_empty() {
        return Some(0);
    }
    let divisor = 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
    digits
        .parse::<i128>()
        .ok()?
        .checked_mul(scale)?
        .checked_div(divisor)
}

/// `strfmt.ParseDuration`: Go's syntax, or numbers with units among any text.
pub(in super::super) fn parse_loose_duration(text: &str) -> Option<i64> {
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    let mut total: Option<i64> = None;
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        rest = rest.get(at..)?;
        let tail = rest.trim_start_matches(|it: char| it.is_ascii_digit());
        let number = rest.get(..rest.len().checked_sub(tail.len())?)?;
        let after = tail.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let next = after.trim_start_matches(|it: char| it.is_ascii_alphabetic() || it == 'µ');
        let unit = after
            .get(..after.len().checked_sub(next.len())?)?
            .to_lowercase();
        rest = next;
        if unit.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        for (names, nanos) in LOOSE_UNITS {
            for (position, name) in names.iter().enumerate() {
                let is_last = position.saturating_add(1) == names.len();
                if unit == *name || (is_last && unit.starts_with(name)) {
                    let product = number.wrapping_mul(nanos);
                    total = Some(total.unwrap_or_default().wrapping_add(product));
                }
            }
        }
    }
    total
}
