//! Koordinator's runtime quota: idle resources by share. Off by default; jobs use idle quota greedily.
//!
//! Source: Koordinator `elasticquota/core/runtime_quota_calculator.go` (`redistribution`,
//! `iterationForRedistribution`) and `scale_minquota_when_over_root_res.go`; the proposal, "Quota
//! Assignment", gives the reason why jobs do not use it. Each resource is shared separately, in whole units.
//!
//! Differences: products are exact in 128 bits, also for scaled mins (Koordinator uses floating point there), and sums
//! saturate.

/// The figures of a child quota for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildQuota {
    /// Its min, after scaling.
    pub min: i64,
    /// Its guarantee, which counts if it is above min.
    pub guarantee: i64,
    /// Its request, capped by its max.
    pub limited_request: i64,
    /// Its weight in sharing idle quota. Zero or less gets none.
    pub shared_weight: i64,
    /// Whether siblings may use the part that it does not request.
    pub may_lend: bool,
}

/// The runtime quota of each child, in their order. Children must be sorted by name, which decides between equal
/// remainders.
///
/// A child that requests no more than its guarantee gets its request, or its whole guarantee if it does not lend. Other
/// children get their guarantee and share the rest by weight; the largest remainders are rounded up. No child gets more
/// than its request; the surplus is shared again among the remaining children. If the guarantees exceed the total,
/// nothing is shared, and the sum of the runtime quotas exceeds the total too.
///
/// Costs the square of the number of children at most.
#[must_use]
pub fn runtime_quotas(total: i64, children: &[ChildQuota]) -> Vec<i64> {
    let mut runtimes = Vec::with_capacity(children.len());
    let mut short = Vec::new();
    let mut rest = i128::from(total);
    for (at, child) in children.iter().enumerate() {
        let least = child.min.max(child.guarantee);
        let runtime = if child.limited_request > least {
            short.push(at);
            least
        } else if child.may_lend {
            child.limited_request
        } else {
            least
        };
        rest = rest.saturating_sub(i128::from(runtime));
        runtimes.push(runtime);
    }
    // Each pass satisfies a child or uses the rest up: at most one pass for each child.
    while rest > 0 && !short.is_empty() {
        let Some(parts) = proportional_shares(rest, &short, children) else {
            break;
        };
        rest = 0;
        let mut still_short = Vec::new();
        for (at, part) in short.into_iter().zip(parts) {
            let (Some(runtime), Some(child)) = (runtimes.get_mut(at), children.get(at)) else {
                continue;
            };
            let raised = i128::from(*runtime).saturating_add(part);
            let most = i128::from(child.limited_request);
            if raised < most {
                still_short.push(at);
            } else {
                // The surplus over the request goes to the children that are still short.
                rest = rest.saturating_add(raised.saturating_sub(most));
            }
            *runtime = i64::try_from(raised.min(most)).unwrap_or(i64::MAX);
        }
        short = still_short;
    }
    runtimes
}

/// Divides an amount by weight: each part is rounded down, and the rest goes one by one to the largest remainders, the
/// first of equals first. `None` if all weights are zero.
fn proportional_shares(amount: i128, of: &[usize], children: &[ChildQuota]) -> Option<Vec<i128>> {
    let weight = |at: &usize| children.get(*at).map_or(0, |it| it.shared_weight.max(0));
    let weights: Vec<i128> = of.iter().map(|at| i128::from(weight(at))).collect();
    let total = weights
        .iter()
        .fold(0_i128, |sum, it| sum.saturating_add(*it));
    let mut parts = Vec::with_capacity(of.len());
    let mut remainders = Vec::with_capacity(of.len());
    let mut undivided = amount;
    for (at, weight) in weights.iter().enumerate() {
        let product = weight.saturating_mul(amount);
        // `None` if the total weight is zero: nothing is shared then.
        let part = product.checked_div(total)?;
        // Koordinator gives nothing to weight 0, not even a remainder.
        if *weight > 0 {
            let remainder = product.checked_rem(total)?;
            remainders.push((std::cmp::Reverse(remainder), at));
        }
        undivided = undivided.saturating_sub(part);
        parts.push(part);
    }
    remainders.sort_unstable();
    let extra = usize::try_from(undivided.max(0)).unwrap_or(usize::MAX);
    for (_, at) in remainders.into_iter().take(extra) {
        if let Some(part) = parts.get_mut(at) {
            *part = part.saturating_add(1);
        }
    }
    Some(parts)
}

/// The mins of children after scaling, if their sum exceeds the total of the parent: children that are not scaled keep
/// their min, the others share the rest in proportion, rounded down. `children` are pairs of min and whether it is
/// scaled.
#[must_use]
pub fn scaled_mins(total: i64, children: &[(i64, bool)]) -> Vec<i64> {
    let sum = |is_scaled: bool| {
        let of = children.iter().filter(|(_, it)| *it == is_scaled);
        of.fold(0_i128, |sum, (min, _)| sum.saturating_add(i128::from(*min)))
    };
    let (fixed, scaled) = (sum(false), sum(true));
    let total = i128::from(total);
    let is_enough = fixed.saturating_add(scaled) <= total;
    // Mins that are not scaled may exceed the total alone; the others are zero then.
    let left = total.saturating_sub(fixed).max(0);
    let min = |(min, is_scaled): &(i64, bool)| {
        if is_enough || !is_scaled {
            return *min;
        }
        let part = left.saturating_mul(i128::from(*min)).checked_div(scaled);
        i64::try_from(part.unwrap_or(0)).unwrap_or(i64::MAX)
    };
    children.iter().map(min).collect()
}

/// The request of a quota to its parent: that of its children, and at least its min if it does not lend
/// (`core/quota_info.go`, `getLimitRequestNoLock`, and `recursiveUpdateGroupTreeWithDeltaRequest`).
#[must_use]
pub fn request_to_parent(below: i64, min: i64, may_lend: bool) -> i64 {
    if may_lend { below } else { below.max(min) }
}

#[cfg(test)]
mod tests {
    use super::{ChildQuota, request_to_parent, runtime_quotas, scaled_mins};

    const fn child(
        min: i64,
        limited_request: i64,
        shared_weight: i64,
        may_lend: bool,
    ) -> ChildQuota {
        ChildQuota {
            min,
            guarantee: 0,
            limited_request,
            shared_weight,
            may_lend,
        }
    }

    #[test]
    fn idle_quota_is_shared_by_weight() {
        for (total, children, expected) in [
            // The remainder goes to the larger fraction, and of equal ones to the first.
            (
                10,
                vec![child(0, 99, 1, true), child(0, 99, 2, true)],
                vec![3, 7],
            ),
            (
                5,
                vec![child(0, 99, 1, true), child(0, 99, 1, true)],
                vec![3, 2],
            ),
            // A surplus over the request goes to the others.
            (
                10,
                vec![child(0, 2, 1, true), child(0, 99, 1, true)],
                vec![2, 8],
            ),
            // Without weight nothing is shared.
            (10, vec![child(1, 9, 0, true)], vec![1]),
            (
                10,
                vec![child(1, 9, 0, true), child(0, 9, 1, true)],
                vec![1, 9],
            ),
            // A child that does not lend keeps its min.
            (
                10,
                vec![child(6, 1, 1, false), child(0, 99, 1, true)],
                vec![6, 4],
            ),
            (
                10,
                vec![child(6, 1, 1, true), child(0, 99, 1, true)],
                vec![1, 9],
            ),
            // The guarantees exceed the total.
            (
                3,
                vec![child(5, 9, 1, true), child(5, 9, 1, true)],
                vec![5, 5],
            ),
        ] {
            assert_eq!(
                runtime_quotas(total, &children),
                expected,
                "{total} {children:?}"
            );
        }
    }

    #[test]
    fn runtime_quotas_large_numbers_are_exact() {
        let children = [
            child(0, i64::MAX, i64::MAX, true),
            child(0, i64::MAX, i64::MAX, true),
        ];
        let half = i64::MAX / 2;
        assert_eq!(runtime_quotas(i64::MAX, &children), [half + 1, half]);
    }

    #[test]
    fn mins_above_total_are_scaled() {
        for (total, children, expected) in [
            (10, vec![(4, true), (6, true)], vec![4, 6]),
            (5, vec![(4, true), (6, true)], vec![2, 3]),
            (5, vec![(4, false), (6, true)], vec![4, 1]),
            (3, vec![(4, false), (6, true)], vec![4, 0]),
        ] {
            assert_eq!(scaled_mins(total, &children), expected, "{children:?}");
        }
    }

    #[test]
    fn request_to_parent_without_lending_is_min() {
        assert_eq!(
            [
                request_to_parent(3, 5, true),
                request_to_parent(3, 5, false)
            ],
            [3, 5]
        );
    }
}
