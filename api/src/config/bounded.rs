//! Whole numbers within a range.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A whole number from `LEAST` to `MOST`, inclusive. Deserializing a value outside of the range fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BoundedInt<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> BoundedInt<LEAST, MOST> {
    /// A built-in default. In a `const` block a value out of range does not compile.
    pub(super) const fn from_default(number: u64) -> Self {
        assert!(
            LEAST <= number && number <= MOST,
            "a default is out of range"
        );
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as a `usize`, saturating.
    #[must_use]
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number as a `u32`, saturating.
    #[must_use]
    pub fn count_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The number as seconds.
    #[must_use]
    pub const fn seconds(self) -> Duration {
        Duration::from_secs(self.0)
    }

    /// The number as milliseconds.
    #[must_use]
    pub const fn milliseconds(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for BoundedInt<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_in_range(&(LEAST..=MOST), deserializer).map(Self)
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for BoundedInt<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("WholeNumberFrom{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// Deserializes a number within a range.
pub(super) fn deserialize_in_range<'de, D: Deserializer<'de>>(
    range: &RangeInclusive<u64>,
    deserializer: D,
) -> Result<u64, D::Error> {
    let number = u64::deserialize(deserializer)?;
    if range.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (range.start(), range.end());
    // A custom error: the YAML parser adds the position only to those.
    Err(D::Error::custom(format!(
        "{number} is not in the range from {least} to {most}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<u64, &str>) {
        let read = serde_json::from_str::<BoundedInt<2, 4>>(text);
        let read = read.map(BoundedInt::get).map_err(|error| error.to_string());
        match (read, expected) {
            (Ok(number), Ok(expected)) => assert_eq!(number, expected),
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (read, expected) => assert_eq!(read, expected.map_err(str::to_owned), "{text}"),
        }
    }

    #[test]
    fn bounded_int_accepts_both_ends() {
        for number in 2..=4 {
            check(&number.to_string(), Ok(number));
        }
        for number in ["0", "1", "5", "18446744073709551615"] {
            let message = format!("{number} is not in the range from 2 to 4");
            check(number, Err(&message));
        }
        check("-3", Err("invalid value"));
        check("2.5", Err("invalid type"));
    }

    #[test]
    fn bounded_int_converts_to_units() {
        let number = BoundedInt::<0, { u64::MAX }>::from_default(1_501);
        assert_eq!(number.milliseconds(), Duration::from_millis(1_501));
        assert_eq!(number.seconds(), Duration::from_secs(1_501));
        assert_eq!((number.count(), number.count_u32()), (1_501, 1_501));
        let huge = BoundedInt::<0, { u64::MAX }>::from_default(u64::MAX);
        assert_eq!(huge.count_u32(), u32::MAX);
    }
}
