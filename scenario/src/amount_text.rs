//! Amounts as scenario files write them.

use lockkeeper_api::quantity::Quantity;
use lockkeeper_cluster_state::in_core_units;
use serde::Deserialize;

/// A whole number in the unit of the core (milli-CPU for cpu, else bytes or counts), or a quantity as
/// Kubernetes writes it, in quotes: `"1500m"`, `"4Gi"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
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
