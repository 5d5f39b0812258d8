//! How long pending workloads can delay another one, whatever the order in which they start.

/// What a workload may use of one flavor and resource, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// In units of the core, positive.
    pub(crate) amount: i64,
    /// Its maximum execution time in seconds; `None` is no limit.
    pub(crate) max_s: Option<i64>,
}

/// The longest result, in seconds: about thirty years.
const WAIT_S_MAX: i64 = 1_000_000_000;

/// The most seconds, not necessarily in a row, during which the sum of the demands that run is at least `threshold`, if each
/// runs once at most; `None` without a limit. Costs thirty passes over the demands.
///
/// During each of `w` such seconds, the sum of `min(amount, threshold)` over the demands that run is at least `threshold`. A
/// demand runs during at most `min(max_s, w)` of them. So `threshold * w` is at most the sum of
/// `min(amount, threshold) * min(max_s, w)`, whose growth in `w` never increases: a `w` that exceeds it exceeds it for ever.
pub(crate) fn longest_wait_s(demands: &[Demand], threshold: i64) -> Option<i64> {
    if threshold <= 0 {
        return None;
    }
    let surplus = |wait_s: i64| {
        let sum = demands.iter().fold(0_i128, |sum, demand| {
            let amount = i128::from(demand.amount.clamp(0, threshold));
            let runs_s = i128::from(demand.max_s.unwrap_or(i64::MAX).clamp(0, wait_s));
            sum.saturating_add(amount.saturating_mul(runs_s))
        });
        sum.saturating_sub(i128::from(threshold).saturating_mul(i128::from(wait_s)))
    };
    if surplus(WAIT_S_MAX) >= 0 {
        return None;
    }
    // The last second at which the inequality holds.
    let (mut holds, mut fails) = (0_i64, WAIT_S_MAX);
    while fails.saturating_sub(holds) > 1 {
        let middle = holds.midpoint(fails);
        if surplus(middle) >= 0 {
            holds = middle;
        } else {
            fails = middle;
        }
    }
    // Within a second both sides are linear, so it may hold up to a part of the next one.
    Some(if surplus(holds) == 0 {
        holds
    } else {
        holds.saturating_add(1)
    })
}

#[cfg(test)]
mod tests {
    use super::{Demand, longest_wait_s};

    fn demand(amount: i64, max_s: i64) -> Demand {
        Demand {
            amount,
            max_s: (max_s > 0).then_some(max_s),
        }
    }

    #[test]
    fn waits_are_the_times_above_the_threshold() {
        for (demands, threshold, wait_s) in [
            (vec![], 1, Some(0)),
            // Each alone is sufficient, so they may run one after the other.
            (vec![demand(8, 10), demand(8, 20)], 1, Some(30)),
            // Only both together are sufficient.
            (vec![demand(4, 10), demand(4, 20)], 8, Some(10)),
            (vec![demand(4, 10), demand(3, 20)], 8, Some(0)),
            // Two of three at a time, at most for half of the sum.
            (vec![demand(1, 10); 3], 2, Some(15)),
            // The end is within a second.
            (vec![demand(4, 10); 2], 5, Some(16)),
            (vec![demand(4, 5); 2], 7, Some(6)),
            (vec![demand(1, 0)], 1, None),
            (vec![demand(1, 0), demand(1, 7)], 2, Some(7)),
            (vec![demand(1, 5)], 0, None),
        ] {
            let found = longest_wait_s(&demands, threshold);
            assert_eq!(found, wait_s, "{demands:?} {threshold}");
        }
    }
}
