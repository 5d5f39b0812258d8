//! The amounts worth trying: those at which a different set of workloads fits.

use crate::queue_tree::SimulatedCluster;
use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeSet;

/// If a tree has at most this many units, every number of units is tried.
const UNITS_MAX: i64 = 12;

/// With fewer units, a unit is divided, so that each of two equal queues can have several workloads.
const UNITS_MIN: i64 = 6;

/// The maximum number of amounts tried for each resource.
const AMOUNTS_MAX: usize = 48;

/// The amounts to try for a resource, ascending. None exceeds the total quota.
pub(super) fn candidate_amounts(cluster: &SimulatedCluster, resource: ResourceId) -> Vec<i64> {
    let total = cluster.total(resource);
    let quotas = cluster.quotas_of(resource);
    let limits: BTreeSet<i64> = quotas
        .flat_map(|it| [Some(it.nominal), it.borrowing_limit, it.lending_limit])
        .flatten()
        .map(Amount::get)
        // `i64::MAX` means unlimited.
        .filter(|it| *it > 0 && *it < i64::MAX)
        .collect();
    let mut unit = limits.iter().copied().fold(0, common_divisor);
    // Without a finite limit the unit is 0, and no amount is worth trying.
    let Some(mut units) = total.checked_div(unit) else {
        return Vec::new();
    };
    if units < UNITS_MIN
        && let Some(part) = round_fraction(unit, units)
    {
        unit = part;
        units = total.checked_div(unit).unwrap_or(units);
    }
    if units <= UNITS_MAX {
        return (1..=units).map(|it| it.saturating_mul(unit)).collect();
    }
    // The limits, the total without them, their sums and differences, and one step around each.
    let step = total.checked_div(UNITS_MAX).unwrap_or(unit).max(unit);
    let mut edges: BTreeSet<i64> = BTreeSet::from([total]);
    for amount in &limits {
        edges.extend([*amount, total.saturating_sub(*amount)]);
        for other in &limits {
            edges.extend([amount.saturating_add(*other), amount.saturating_sub(*other)]);
        }
    }
    let near = edges
        .iter()
        .flat_map(|it| [it.saturating_sub(step), *it, it.saturating_add(step)]);
    let all: BTreeSet<i64> = near.filter(|it| (1..=total).contains(it)).collect();
    let every = all.len().div_ceil(AMOUNTS_MAX).max(1);
    all.into_iter().step_by(every).collect()
}

/// A fraction of a unit with a round value, and with at most `UNITS_MAX` parts in total.
fn round_fraction(unit: i64, units: i64) -> Option<i64> {
    let parts = [10, 8, 5, 4, 3, 2].into_iter();
    let mut few = parts.filter(|it| units.saturating_mul(*it) <= UNITS_MAX);
    let found = few.find(|it| unit.checked_rem(*it) == Some(0))?;
    unit.checked_div(found)
}

/// The greatest common divisor.
fn common_divisor(mut a: i64, mut b: i64) -> i64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
