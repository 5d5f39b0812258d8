//! The time until the pods of a run are ready, and its format in traces.

use serde::de::{Error, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::sync::Arc;

/// The text of a time that does not come.
const NEVER: &str = "never";

/// When all pods of a run are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyTime {
    /// So many seconds after its admission.
    After(i64),
    /// Never.
    Never,
}

/// When the pods of each run of a job are ready. The last time applies to all further runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyTimes(Arc<[ReadyTime]>);

impl ReadyTimes {
    /// The time of a run; the first has number 0.
    #[must_use]
    pub fn of_run(&self, run: usize) -> ReadyTime {
        let time = self.0.get(run).or_else(|| self.0.last());
        time.copied().unwrap_or(ReadyTime::After(0))
    }

    /// Whether all further runs have the time of this one.
    pub(super) fn is_final(&self, run: usize) -> bool {
        run.saturating_add(1) >= self.0.len()
    }

    /// All times.
    pub(super) fn times(&self) -> &[ReadyTime] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ReadyTimes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimesVisitor)
    }
}

impl<'de> Deserialize<'de> for ReadyTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

/// One time.
struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = ReadyTime;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number of whole seconds, or the text \"never\"")
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<ReadyTime, E> {
        Ok(ReadyTime::After(seconds))
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<ReadyTime, E> {
        // The check of the trace rejects all numbers above its largest time.
        Ok(ReadyTime::After(i64::try_from(seconds).unwrap_or(i64::MAX)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ReadyTime, E> {
        if text == NEVER {
            return Ok(ReadyTime::Never);
        }
        Err(E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// One time, or a list.
struct TimesVisitor;

impl<'de> Visitor<'de> for TimesVisitor {
    type Value = ReadyTimes;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        TimeVisitor.expecting(out)?;
        out.write_str(", or a list with one of these for each run")
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<ReadyTimes, E> {
        TimeVisitor.visit_i64(seconds).map(single)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<ReadyTimes, E> {
        TimeVisitor.visit_u64(seconds).map(single)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ReadyTimes, E> {
        if text == NEVER {
            return Ok(single(ReadyTime::Never));
        }
        Err(E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ReadyTimes, A::Error> {
        let mut times = Vec::new();
        while let Some(time) = list.next_element::<ReadyTime>()? {
            times.push(time);
        }
        if times.is_empty() {
            return Err(A::Error::invalid_length(0, &self));
        }
        Ok(ReadyTimes(times.into()))
    }
}

fn single(time: ReadyTime) -> ReadyTimes {
    ReadyTimes([time].into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::{ReadyTime, ReadyTimes};
    use serde_json::{Value, from_value, json};

    #[test]
    fn ready_times_last_one_applies_to_further_runs() {
        let (after, never) = (ReadyTime::After, ReadyTime::Never);
        let of = |value: Value| {
            let times: ReadyTimes = from_value(value).unwrap();
            [0, 1, 2].map(|run| (times.of_run(run), times.is_final(run)))
        };
        assert_eq!(of(json!(9)), [(after(9), true); 3]);
        assert_eq!(of(json!("never")), [(never, true); 3]);
        assert_eq!(of(json!(["never"])), [(never, true); 3]);
        let expected = [(never, false), (after(0), true), (after(0), true)];
        assert_eq!(of(json!(["never", 0])), expected);
        // Out of range, which the check of the trace reports with the field.
        assert_eq!(of(json!(-1))[0].0, after(-1));
        assert_eq!(of(json!(u64::MAX))[0].0, after(i64::MAX));
    }

    #[test]
    fn ready_times_reject_other_values() {
        let expected = "a number of whole seconds, or the text \"never\", or a list with one of these for each run";
        for (value, found) in [
            (json!("Never"), "invalid value: string \"Never\""),
            (json!("9"), "invalid value: string \"9\""),
            (json!(1.5), "invalid type: floating point `1.5`"),
            (json!(true), "invalid type: boolean `true`"),
            (json!([]), "invalid length 0"),
        ] {
            let message = from_value::<ReadyTimes>(value).unwrap_err().to_string();
            assert_eq!(message, format!("{found}, expected {expected}"));
        }
        let message = from_value::<ReadyTimes>(json!([1, "soon"])).unwrap_err();
        assert_eq!(
            message.to_string(),
            "invalid value: string \"soon\", expected a number of whole seconds, or the text \"never\""
        );
    }
}
