//! Arithmetic on amounts by resource; a missing resource counts as 0.

use lockkeeper_api::foreign::koordinator::ResourceQuantities;
use lockkeeper_api::quantity::Quantity;
use std::collections::BTreeSet;

/// The amount of a resource.
pub(super) fn amount_for(amounts: &ResourceQuantities, resource: &str) -> Quantity {
    amounts.get(resource).copied().unwrap_or(Quantity::ZERO)
}

/// The sum of several amounts. An addition that overflows is skipped: the sum is far above any quota already.
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

/// The larger amount of each resource that is in either list.
pub(super) fn largest(left: &ResourceQuantities, right: &ResourceQuantities) -> ResourceQuantities {
    let mut out = left.clone();
    for (resource, amount) in right {
        let kept = out.entry(resource.clone()).or_insert(*amount);
        *kept = (*kept).max(*amount);
    }
    out
}

/// A resource whose amount exceeds its limit.
pub(super) struct Excess<'a> {
    pub(super) resource: &'a str,
    pub(super) amount: Quantity,
    pub(super) limit: Quantity,
}

/// The resources whose amount exceeds the limit, sorted by name.
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
