//! Schedules and time zones of `CronJob`s, as `github.com/robfig/cron/v3` parses them.

use jiff::tz::TimeZone;

/// A field of a schedule: the least and greatest value, and the names of values.
struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    Field {
        min: 0,
        max: 59,
        names: &[],
    },
    Field {
        min: 0,
        max: 23,
        names: &[],
    },
    Field {
        min: 1,
        max: 31,
        names: &[],
    },
    Field {
        min: 1,
        max: 12,
        names: MONTHS,
    },
    Field {
        min: 0,
        max: 6,
        names: DAYS,
    },
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

impl Field {
    fn number(&self, text: &str) -> Option<u32> {
        let name = text.to_lowercase();
        let named = self.names.iter().position(|it| *it == name);
        if let Some(position) = named {
            return u32::try_from(position).ok()?.checked_add(self.min);
        }
        // Go's `Atoi` accepts a sign.
        let number = text.parse::<i64>().ok()?;
        u32::try_from(number).ok()
    }

    fn accepts(&self, text: &str) -> bool {
        // Empty items are skipped.
        text.split(',')
            .filter(|it| !it.is_empty())
            .all(|it| self.accepts_range(it))
    }

    fn accepts_range(&self, text: &str) -> bool {
        let mut parts = text.split('/');
        let (range, step) = (parts.next().unwrap_or_default(), parts.next());
        if parts.next().is_some() {
            return false;
        }
        let mut limits = range.split('-');
        let (first, last) = (limits.next().unwrap_or_default(), limits.next());
        let (start, end) = if matches!(first, "*" | "?") {
            (Some(self.min), Some(self.max))
        } else {
            let start = self.number(first);
            match last {
                Some(_) if limits.next().is_some() => return false,
                Some(last) => (start, self.number(last)),
                None if step.is_some() => (start, Some(self.max)),
                None => (start, start),
            }
        };
        let step = match step {
            None => Some(1),
            Some(step) => step
                .parse::<i64>()
                .ok()
                .and_then(|it| u32::try_from(it).ok()),
        };
        match (start, end, step) {
            (Some(start), Some(end), Some(step)) => {
                start >= self.min && end <= self.max && start <= end && step > 0
            }
            _ => false,
        }
    }
}

/// Reasons why a text is no schedule.
pub(super) fn schedule_reasons(text: &str) -> Vec<String> {
    let invalid = |reason: &str| vec![reason.to_owned()];
    let mut rest = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        let (zone, after) = text.split_once(' ').unwrap_or((text, ""));
        let name = zone.split_once('=').map_or("", |it| it.1);
        if !matches!(name, "" | "UTC" | "Local") && TimeZone::get(name).is_err() {
            return invalid("provided bad location");
        }
        rest = after.trim();
    }
    if rest.starts_with('@') {
        let is_known = DESCRIPTORS.contains(&rest)
            || rest
                .strip_prefix("@every ")
                .and_then(crate::crd::formats::time::parse_duration)
                .is_some();
        return if is_known {
            Vec::new()
        } else {
            invalid("unrecognized descriptor")
        };
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return invalid("expected exactly 5 fields");
    }
    let is_valid = FIELDS
        .iter()
        .zip(&fields)
        .all(|(field, text)| field.accepts(text));
    if is_valid {
        Vec::new()
    } else {
        invalid("a field has a value that is not accepted")
    }
}

/// Reasons why a text is no time zone.
pub(super) fn time_zone_reasons(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let is_sign = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_' | '+');
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(is_sign)
    };
    let is_known =
        zone == "UTC" || TimeZone::get(zone).is_ok_and(|it| it.iana_name() == Some(zone));
    if !zone.split('/').all(is_part) || zone.eq_ignore_ascii_case("local") || !is_known {
        return vec![format!("unknown time zone {zone}")];
    }
    Vec::new()
}
