//! Values that a mapping compares with fields of a record.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// The text of a field; in YAML a number may stand without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelVisitor)
    }
}

struct LabelVisitor;

impl Visitor<'_> for LabelVisitor {
    type Value = Label;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text or a whole number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Label, E> {
        Ok(Label(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Label, E> {
        Ok(Label(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Label, E> {
        Ok(Label(number.to_string()))
    }
}
