//! Amounts as scenario files write them.

use lockkeeper_api::quantity::Quantity;
use lockkeeper_cluster_state::in_core_units;
use serde::de::{Error, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A whole number in the unit of the core (milli-CPU for cpu, else bytes or counts), or a quantity as
/// Kubernetes writes it, in quotes: `"1500m"`, `"4Gi"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AmountText {
    /// A number in the unit of the core.
    Number(i64),
    /// A quantity with a unit.
    Quantity(Quantity),
}

impl AmountText {
    /// The amount in the unit of the core, rounded up; `None` if it does not fit into 64 bits.
    #[must_use]
    pub fn in_core_units(self, resource: &str) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Quantity(quantity) => in_core_units(resource, quantity),
        }
    }
}

impl<'de> Deserialize<'de> for AmountText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = AmountText;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an amount: a whole number, or a quantity such as \"1500m\" or \"4Gi\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<AmountText, E> {
        Ok(AmountText::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<AmountText, E> {
        match i64::try_from(number) {
            Ok(number) => Ok(AmountText::Number(number)),
            Err(_) => Quantity::deserialize(number.into_deserializer()).map(AmountText::Quantity),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<AmountText, E> {
        Quantity::deserialize(number.into_deserializer()).map(AmountText::Quantity)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<AmountText, E> {
        let quantity = text.parse();
        let quantity = quantity.map_err(|_| {
            E::custom(format_args!(
                "{text:?} is no amount; write a whole number, or a quantity such as \"1500m\" or \"4Gi\""
            ))
        });
        Ok(AmountText::Quantity(quantity?))
    }
}
