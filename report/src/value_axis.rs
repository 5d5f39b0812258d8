//! The marks of value axes.

use crate::amount_text::is_in_bytes;

/// The number of marks of an axis above zero, at most.
const MARKS_MAX: i64 = 4;

/// Returns the marks of an axis from 0 to at least `peak`, in the unit of the resource. They are round numbers: 1, 2 or 5
/// times a power of ten, for bytes powers of two. There are at most five.
pub(crate) fn value_marks(resource: &str, peak: i64) -> Vec<i64> {
    // Both divisions round up.
    let rounded_up = |value: i64, by: i64| {
        let quotient = value.saturating_sub(1).checked_div(by);
        quotient.unwrap_or_default().saturating_add(1)
    };
    let least = rounded_up(peak.max(1), MARKS_MAX);
    let is_cpu = resource == "cpu";
    let step = if is_in_bytes(resource) {
        binary_step(least)
    } else {
        // Less than a tenth of a CPU is rarely requested.
        decimal_step(if is_cpu { least.max(100) } else { least })
    };
    let count = rounded_up(peak.max(1), step);
    (0..=count).map(|at| at.saturating_mul(step)).collect()
}

/// The power of two at least as large as a number.
fn binary_step(least: i64) -> i64 {
    let powers = std::iter::successors(Some(1_i64), |it| it.checked_mul(2));
    let mut powers = powers.filter(|it| *it >= least);
    powers.next().unwrap_or(least)
}

fn decimal_step(least: i64) -> i64 {
    let mut power = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            match power.checked_mul(factor) {
                Some(step) if step >= least => return step,
                Some(_) => {}
                None => return least,
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::value_marks;

    #[test]
    fn marks_are_round_and_reach_the_peak() {
        assert_eq!(value_marks("gpu", 13), [0, 5, 10, 15]);
        assert_eq!(value_marks("cpu", 4_000), [0, 1_000, 2_000, 3_000, 4_000]);
        assert_eq!(value_marks("gpu", 0), [0, 1]);
        for peak in [1, 2, 7, 1_000_000_007, i64::MAX / 2, i64::MAX] {
            for resource in ["cpu", "memory", "gpu"] {
                let marks = value_marks(resource, peak);
                assert!(marks.len() <= 5, "{resource} {peak}: {marks:?}");
                assert!(marks.last() >= Some(&peak), "{resource} {peak}: {marks:?}");
            }
        }
    }
}
