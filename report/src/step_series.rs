//! Values that change in steps over time.

/// Times in seconds and the values from then on; the times ascend. Before the first time the value is zero.
pub(crate) type Steps = Vec<(i64, i64)>;

/// Returns the sum of several series. Costs the logarithm of the number of steps for each step.
pub(crate) fn sum_steps<'a>(series: impl IntoIterator<Item = &'a Steps>) -> Steps {
    let mut changes = Vec::new();
    for steps in series {
        let mut before = 0_i64;
        for (at_s, value) in steps {
            changes.push((*at_s, value.saturating_sub(before)));
            before = *value;
        }
    }
    steps_from_changes(changes)
}

/// Returns the values that result from changes in any order.
pub(crate) fn steps_from_changes(mut changes: Vec<(i64, i64)>) -> Steps {
    changes.sort_unstable_by_key(|(at_s, _)| *at_s);
    let mut steps = Steps::new();
    let mut value = 0_i64;
    for instant in changes.chunk_by(|a, b| a.0 == b.0) {
        let change = instant
            .iter()
            .fold(0_i64, |sum, (_, it)| sum.saturating_add(*it));
        if let Some((at_s, _)) = instant.first().filter(|_| change != 0) {
            value = value.saturating_add(change);
            steps.push((*at_s, value));
        }
    }
    steps
}

/// Returns the largest value.
pub(crate) fn peak(steps: &Steps) -> i64 {
    let values = steps.iter().map(|(_, value)| *value);
    values.max().unwrap_or_default().max(0)
}

/// Returns the value times seconds until a time.
pub(crate) fn integral(steps: &Steps, until_s: i64) -> i128 {
    let ends_s = steps.iter().skip(1).map(|(at_s, _)| *at_s);
    let ends_s = ends_s.chain(std::iter::once(until_s));
    let parts = steps.iter().zip(ends_s).map(|((from_s, value), to_s)| {
        let seconds = to_s.min(until_s).saturating_sub(*from_s).max(0);
        i128::from(*value).saturating_mul(i128::from(seconds))
    });
    parts.fold(0, i128::saturating_add)
}

/// The values of several series at the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Samples {
    /// In seconds, from 0.
    pub(crate) times_s: Vec<i64>,
    /// By series, the value from each time to the next.
    pub(crate) values: Vec<Vec<i64>>,
    /// The seconds over which each value is a mean; `None` if the values are exact.
    pub(crate) mean_over_s: Option<i64>,
}

impl Samples {
    /// Returns the values at all times of changes if there are at most `exact_max`, otherwise means of equal intervals.
    pub(crate) fn new(series: &[&Steps], until_s: i64, exact_max: usize, intervals: i64) -> Self {
        let times_s = series.iter().flat_map(|it| it.iter());
        let times_s = times_s.map(|(at_s, _)| *at_s);
        let mut times_s: Vec<i64> = times_s.filter(|it| (0..until_s).contains(it)).collect();
        times_s.push(0);
        times_s.sort_unstable();
        times_s.dedup();
        if times_s.len() > exact_max {
            return Self::means(series, until_s, intervals);
        }
        let values = series.iter().map(|steps| {
            let mut steps = steps.iter().peekable();
            let mut value = 0;
            let values = times_s.iter().map(|at_s| {
                while let Some((_, next)) = steps.next_if(|it| it.0 <= *at_s) {
                    value = *next;
                }
                value
            });
            values.collect()
        });
        Self {
            values: values.collect(),
            times_s,
            mean_over_s: None,
        }
    }

    /// Returns the means of equal intervals, which are whole seconds.
    pub(crate) fn means(series: &[&Steps], until_s: i64, intervals: i64) -> Self {
        let intervals = intervals.max(1);
        let length_s = until_s
            .saturating_add(intervals.saturating_sub(1))
            .checked_div(intervals);
        let length_s = length_s.unwrap_or(1).max(1);
        let times_s = (0..intervals).map(|at| at.saturating_mul(length_s));
        let times_s: Vec<i64> = times_s.take_while(|it| *it < until_s).collect();
        let values = series
            .iter()
            .map(|steps| interval_means(steps, &times_s, length_s, until_s));
        Self {
            values: values.collect(),
            times_s,
            mean_over_s: Some(length_s),
        }
    }
}

fn interval_means(steps: &Steps, times_s: &[i64], length_s: i64, until_s: i64) -> Vec<i64> {
    let mut steps = steps.iter().peekable();
    let mut value = 0_i64;
    let means = times_s.iter().map(|from_s| {
        let to_s = from_s.saturating_add(length_s).min(until_s);
        let mut at_s = *from_s;
        let mut sum = 0_i128;
        while let Some((next_s, next)) = steps.next_if(|it| it.0 < to_s) {
            let seconds = next_s.saturating_sub(at_s).max(0);
            sum = sum.saturating_add(i128::from(value).saturating_mul(i128::from(seconds)));
            at_s = at_s.max(*next_s);
            value = *next;
        }
        let seconds = to_s.saturating_sub(at_s).max(0);
        sum = sum.saturating_add(i128::from(value).saturating_mul(i128::from(seconds)));
        let length_s = i128::from(to_s.saturating_sub(*from_s).max(1));
        let mean = sum.checked_div(length_s).unwrap_or_default();
        i64::try_from(mean).unwrap_or(i64::MAX)
    });
    means.collect()
}

#[cfg(test)]
mod tests {
    use super::{Samples, integral, peak, steps_from_changes, sum_steps};

    #[test]
    fn sum_steps_merges_equal_times() {
        let (a, b) = (vec![(0, 2), (5, 0)], vec![(5, 2), (7, 0)]);
        let sum = sum_steps([&a, &b]);
        assert_eq!(sum, [(0, 2), (7, 0)]);
        assert_eq!((integral(&sum, 10), peak(&sum)), (14, 2));
        assert_eq!(steps_from_changes(vec![(3, -1), (1, 1)]), [(1, 1), (3, 0)]);
    }

    #[test]
    fn samples_are_exact_or_means() {
        let (a, b) = (vec![(2, 4)], vec![(0, 1), (2, 0)]);
        let exact = Samples::new(&[&a, &b], 8, 2, 2);
        assert_eq!(exact.times_s, [0, 2]);
        assert_eq!(exact.values, [[0, 4], [1, 0]]);
        let means = Samples::new(&[&a, &b], 8, 1, 2);
        assert_eq!(means.times_s, [0, 4]);
        assert_eq!(means.values, [[2, 4], [0, 0]]);
        assert_eq!(means.mean_over_s, Some(4));
    }
}
