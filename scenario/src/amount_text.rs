//! Amounts as they are written.

use lockkeeper_api::quantity::Quantity;
use lockkeeper_cluster_state::in_core_units;
use serde::Deserialize;

/// A whole number in the unit of the core (milli-CPU for cpu, else bytes or counts), or a quantity as
/// Kubernetes writes it, in quotes: `"1500m"`, `"4Gi"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum AmountText {
    /// In the unit of the core.
    Number(i64),
    /// With a unit of its own.
    Quantity(Quantity),
}

impl AmountText {
    /// In the unit of the core, rounded up; `None` if that is no 64-bit number.
    #[must_use]
    pub fn in_core_units(self, resource: &str) -> Option<i64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Quantity(quantity) => in_core_units(resource, quantity),
        }
    }
}
