//! Accessors of times and durations.

use super::value::{self, Outcome, Value, error, no_overload};
use crate::crd::formats::time::{Instant, NANOS_PER_SECOND};
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp};
use std::sync::LazyLock;

/// The day from which seconds count.
const EPOCH: Date = Date::constant(1970, 1, 1);

/// Calls an accessor; `None` if the name is none.
pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    if !name.starts_with("get") {
        return None;
    }
    Some(match args {
        [Value::Duration(duration)] => of_duration(name, *duration)?,
        [Value::Time(time)] => of_time(name, *time, &TimeZone::UTC)?,
        [Value::Time(time), Value::Text(zone)] => match zone_of(zone) {
            Some(zone) => of_time(name, *time, &zone)?,
            None => error(format!("unknown time zone {zone}")),
        },
        [Value::Time(_), _] => no_overload(),
        _ => return None,
    })
}

/// The value of a message `google.protobuf.Timestamp` or `google.protobuf.Duration`.
pub(super) fn message<'a>(kind: &str, seconds: i64, nanos: i64) -> Outcome<'a> {
    let whole = seconds.checked_add(nanos.div_euclid(NANOS_PER_SECOND));
    match kind {
        "google.protobuf.Timestamp" => match whole {
            Some(seconds) => value::time(Instant {
                seconds,
                nanos: nanos.rem_euclid(NANOS_PER_SECOND),
            }),
            None => error("timestamp overflow"),
        },
        "google.protobuf.Duration" => {
            let total = seconds.checked_mul(NANOS_PER_SECOND);
            match total.and_then(|it| it.checked_add(nanos)) {
                Some(total) => Ok(Value::Duration(total)),
                None => error("duration overflow"),
            }
        }
        _ => error("unsupported expression"),
    }
}

fn of_duration<'a>(name: &str, duration: i64) -> Option<Outcome<'a>> {
    let seconds = duration / NANOS_PER_SECOND;
    Some(Ok(Value::Int(match name {
        "getHours" => seconds / 3600,
        "getMinutes" => seconds / 60,
        "getSeconds" => seconds,
        "getMilliseconds" => duration / 1_000_000,
        _ => return None,
    })))
}

/// Compiled in: the result of a rule does not depend on the files of the machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A zone by its offset, such as `+02:00`, or by its name.
fn zone_of(name: &str) -> Option<TimeZone> {
    let (sign, rest) = match name.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, name.strip_prefix('+').unwrap_or(name)),
    };
    if let Some((hours, minutes)) = rest.split_once(':') {
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = hours
            .checked_mul(3600)?
            .checked_add(minutes.checked_mul(60)?)?;
        let offset = Offset::from_seconds(seconds.checked_mul(sign)?).ok()?;
        return Some(TimeZone::fixed(offset));
    }
    if matches!(name, "" | "UTC") {
        return Some(TimeZone::UTC);
    }
    ZONES.get(name).ok()
}

fn of_time<'a>(name: &str, time: Instant, zone: &TimeZone) -> Option<Outcome<'a>> {
    /// The seconds of a day.
    const DAY: i64 = 86_400;
    // Offsets of the last hours of year 9999 are out of range.
    let offset = Timestamp::from_second(time.seconds).map(|it| zone.to_offset(it));
    let offset = offset.or_else(|_| zone.to_fixed_offset());
    let offset = offset.map_or(0, |it| i64::from(it.seconds()));
    let local = time.seconds.checked_add(offset)?;
    let (days, seconds) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let date = Span::new()
        .try_days(days)
        .and_then(|it| EPOCH.checked_add(it));
    let Ok(date) = date else {
        return Some(error("timestamp overflow"));
    };
    Some(Ok(Value::Int(match name {
        "getFullYear" => date.year().into(),
        "getMonth" => i64::from(date.month()).saturating_sub(1),
        "getDayOfMonth" => i64::from(date.day()).saturating_sub(1),
        "getDate" => date.day().into(),
        "getDayOfWeek" => date.weekday().to_sunday_zero_offset().into(),
        "getDayOfYear" => i64::from(date.day_of_year()).saturating_sub(1),
        "getHours" => seconds / 3600,
        "getMinutes" => seconds / 60 % 60,
        "getSeconds" => seconds % 60,
        "getMilliseconds" => time.nanos / 1_000_000,
        _ => return None,
    })))
}

/// A time in RFC 3339.
pub(super) fn time_text(time: Instant) -> String {
    let nanos = i32::try_from(time.nanos).unwrap_or_default();
    Timestamp::new(time.seconds, nanos).map_or_else(|_| String::new(), |it| it.to_string())
}

/// A duration in seconds, as cel-go prints it.
pub(super) fn duration_text(duration: i64) -> String {
    let (seconds, nanos) = (
        duration / NANOS_PER_SECOND,
        (duration % NANOS_PER_SECOND).unsigned_abs(),
    );
    if nanos == 0 {
        return format!("{seconds}s");
    }
    let sign = if duration < 0 && seconds == 0 {
        "-"
    } else {
        ""
    };
    let fraction = format!("{nanos:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}
