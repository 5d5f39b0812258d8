//! Quota as Kueue decodes it: missing fields are empty, and a missing amount is 0.

use crate::quantity::Quantity;
use crate::quota::{FlavorQuotas, ResourceGroup, ResourceQuota};
use serde::{Deserialize, Deserializer};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupEntry {
    covered_resources: Option<Vec<String>>,
    flavors: Option<Vec<FlavorEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FlavorEntry {
    name: String,
    resources: Option<Vec<ResourceEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourceEntry {
    name: String,
    #[serde(rename = "nominalQuota")]
    nominal: Option<Quantity>,
    #[serde(rename = "borrowingLimit")]
    borrowing: Option<Quantity>,
    #[serde(rename = "lendingLimit")]
    lending: Option<Quantity>,
}

pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ResourceGroup>, D::Error> {
    let groups = Option::<Vec<GroupEntry>>::deserialize(from)?;
    Ok(groups
        .into_iter()
        .flatten()
        .map(ResourceGroup::from)
        .collect())
}

impl From<GroupEntry> for ResourceGroup {
    fn from(entry: GroupEntry) -> Self {
        let flavors = entry.flavors.into_iter().flatten();
        Self {
            covered_resources: entry.covered_resources.unwrap_or_default(),
            flavors: flavors.map(FlavorQuotas::from).collect(),
        }
    }
}

impl From<FlavorEntry> for FlavorQuotas {
    fn from(entry: FlavorEntry) -> Self {
        let resources = entry.resources.into_iter().flatten();
        Self {
            name: entry.name,
            resources: resources.map(ResourceQuota::from).collect(),
        }
    }
}

impl From<ResourceEntry> for ResourceQuota {
    fn from(entry: ResourceEntry) -> Self {
        Self {
            name: entry.name,
            nominal_quota: entry.nominal.unwrap_or(Quantity::ZERO),
            borrowing_limit: entry.borrowing,
            lending_limit: entry.lending,
        }
    }
}
