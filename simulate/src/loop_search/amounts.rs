//! The amounts that matter: where they differ, something else fits.

use crate::queue_tree::SimulatedCluster;
use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeSet;

/// As many units as a tree may have for every number of them to be tried.
const UNITS_MAX: i64 = 12;

/// With fewer units, they are divided: of two equal queues each has more than one workload.
const UNITS_MIN: i64 = 6;

/// As many amounts of a resource as are tried.
const AMOUNTS_MAX: usize = 48;

/// Amounts of a resource, ascending: nothing that is more than all quota.
pub(super) fn candidate_amounts(field: &SimulatedCluster, resource: ResourceId) -> Vec<i64> {
    let total = field.total(resource);
    let quotas = field.quotas_of(resource);
    let said: BTreeSet<i64> = quotas
        .flat_map(|it| [Some(it.nominal), it.borrowing_limit, it.lending_limit])
        .flatten()
        .map(Amount::get)
        .filter(|it| *it > 0 && *it < i64::MAX)
        .collect();
    let mut unit = said.iter().copied().fold(0, common_divisor);
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
    // What is there, what is left without it, and a little more or less than that.
    let step = total.checked_div(UNITS_MAX).unwrap_or(unit).max(unit);
    let mut edges: BTreeSet<i64> = BTreeSet::from([total]);
    for amount in &said {
        edges.extend([*amount, total.saturating_sub(*amount)]);
        for other in &said {
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

/// A part of a unit that a person would write, and of which there are not too many.
fn round_fraction(unit: i64, units: i64) -> Option<i64> {
    let parts = [10, 8, 5, 4, 3, 2].into_iter();
    let mut few = parts.filter(|it| units.saturating_mul(*it) <= UNITS_MAX);
    let found = few.find(|it| unit.checked_rem(*it) == Some(0))?;
    unit.checked_div(found)
}

/// The greatest number that divides both.
fn common_divisor(mut a: i64, mut b: i64) -> i64 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}
