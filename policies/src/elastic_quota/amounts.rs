//! Arithmetic on amounts by resource; a resource that is missing counts as nothing.

use lockkeeper_api::foreign::koordinator::ResourceQuantities;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeSet;

/// The amount of a resource.
pub(super) fn amount_for(amounts: &ResourceQuantities, resource: &str) -> Quantity {
    amounts.get(resource).copied().unwrap_or(Quantity::ZERO)
}

/// All of them together. A sum that is too large to hold stays at what it was: far above any quota.
pub(super) fn total<'a>(
    parts: impl IntoIterator<Item = &'a ResourceQuantities>,
) -> ResourceQuantities {
    let mut out = ResourceQuantities::new();
    for (resource, amount) in parts.into_iter().flatten() {
        let sum = out.entry(resource.clone()).or_insert(Quantity::ZERO);
        *sum = sum.checked_add(*amount).unwrap_or(*sum);
    }
    out
}

/// The larger amount of each resource that one of them has.
pub(super) fn largest(left: &ResourceQuantities, right: &ResourceQuantities) -> ResourceQuantities {
    let mut out = left.clone();
    for (resource, amount) in right {
        let kept = out.entry(resource.clone()).or_insert(*amount);
        *kept = (*kept).max(*amount);
    }
    out
}

/// A resource of which there is more than allowed.
pub(super) struct Excess<'a> {
    pub(super) resource: &'a str,
    pub(super) amount: Quantity,
    pub(super) limit: Quantity,
}

/// The resources of which `amounts` has more than `limits`, by name.
pub(super) fn excesses<'a>(
    amounts: &'a ResourceQuantities,
    limits: &'a ResourceQuantities,
) -> Vec<Excess<'a>> {
    let resources: BTreeSet<&str> = amounts
        .keys()
        .chain(limits.keys())
        .map(|it| &**it)
        .collect();
    let all = resources.into_iter().map(|resource| Excess {
        resource,
        amount: amount_for(amounts, resource),
        limit: amount_for(limits, resource),
    });
    all.filter(|it| it.amount > it.limit).collect()
}
