//! Declared quota.

use crate::amount::Amount;
use crate::ids::{FlavorId, ResourceId};

/// Quota of one flavor and resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The nominal quota.
    pub nominal: Amount,
    /// The most that may be used above the nominal quota; `None` is no limit, zero is nothing.
    pub borrowing_limit: Option<Amount>,
    /// The most that others may use of it; `None` is no limit, zero is nothing.
    pub lending_limit: Option<Amount>,
}

/// The quotas of one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorQuotas {
    /// The flavor.
    pub flavor: FlavorId,
    /// A quota for each resource of the group.
    pub quotas: Vec<(ResourceId, Quota)>,
}

/// Resources that are assigned the same flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// The resources.
    pub resources: Vec<ResourceId>,
    /// The flavors, in the order in which they are tried.
    pub flavors: Vec<FlavorQuotas>,
}
