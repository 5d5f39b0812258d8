//! The values of a row as texts.

use csv::StringRecord;
use jiff::Timestamp;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

/// The form of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeText {
    /// Seconds since 1970, with three digits of a fraction.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Dates, such as `2026-11-29T08:00:00Z`.
    Rfc3339,
}

/// A column of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// The others are empty in each row.
    pub(crate) is_read: bool,
    /// How many units of a column of timestamps are a millisecond; `None` for other columns.
    units_in_millisecond: Option<i64>,
}

impl Column {
    pub(crate) fn new(field: &Type, is_read: bool) -> Self {
        let units_in_millisecond = match field.get_basic_info().logical_type_ref() {
            Some(LogicalType::Timestamp(time)) => Some(match time.unit {
                TimeUnit::MILLIS => 1,
                TimeUnit::MICROS => 1_000,
                TimeUnit::NANOS => 1_000_000,
            }),
            _ => None,
        };
        Self {
            is_read,
            units_in_millisecond,
        }
    }
}

/// All columns of a row that has the values of those that are read.
pub(crate) fn row_text(row: &Row, columns: &[Column], times: TimeText) -> StringRecord {
    let mut record = StringRecord::new();
    let mut fields = row.get_column_iter().map(|(_, field)| field);
    for column in columns {
        let field = if column.is_read { fields.next() } else { None };
        let text = field.map(|it| field_text(it, *column, times));
        record.push_field(&text.unwrap_or_default());
    }
    record
}

fn field_text(field: &Field, column: Column, times: TimeText) -> String {
    match field {
        Field::Null => String::new(),
        Field::TimestampMillis(ms) => time_text(*ms, times),
        Field::TimestampMicros(us) => time_text(us.div_euclid(1_000), times),
        Field::Long(number) => match column.units_in_millisecond {
            // The library returns nanoseconds as numbers.
            Some(units) => time_text(number.checked_div_euclid(units).unwrap_or_default(), times),
            None => number.to_string(),
        },
        // Without the fraction of a whole number.
        Field::Double(number) => number.to_string(),
        Field::Float(number) => number.to_string(),
        Field::Str(text) => text.trim().to_owned(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).trim().to_owned(),
        other => other.to_string(),
    }
}

fn time_text(ms: i64, times: TimeText) -> String {
    match times {
        TimeText::Seconds if ms >= 0 => {
            format!("{}.{:03}", ms.div_euclid(1_000), ms.rem_euclid(1_000))
        }
        TimeText::Rfc3339 => {
            Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |it| it.to_string())
        }
        // A time before 1970 is an error of its reader.
        TimeText::Seconds | TimeText::Milliseconds => ms.to_string(),
    }
}
