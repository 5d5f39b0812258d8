//! Durations as text, and the marks of time axes.

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

/// The distances between marks of a time axis, in seconds.
const STEPS_S: &[i64] = &[
    1,
    2,
    5,
    10,
    30,
    MINUTE_S,
    2 * MINUTE_S,
    5 * MINUTE_S,
    10 * MINUTE_S,
    30 * MINUTE_S,
    HOUR_S,
    2 * HOUR_S,
    4 * HOUR_S,
    8 * HOUR_S,
    DAY_S,
    2 * DAY_S,
    5 * DAY_S,
    10 * DAY_S,
    20 * DAY_S,
    50 * DAY_S,
    100 * DAY_S,
];

/// The distances of [`STEPS_S`], from the smallest.
pub(crate) fn steps_s() -> impl DoubleEndedIterator<Item = i64> {
    STEPS_S.iter().copied()
}

/// Returns a duration with its two largest units, such as `2 h 5 min`.
pub(crate) fn duration_text(seconds: i64) -> String {
    let units = [(DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s")];
    let mut rest_s = seconds.max(0);
    let mut parts = Vec::new();
    for (unit_s, name) in units {
        let count = rest_s.checked_div(unit_s).unwrap_or_default();
        rest_s = rest_s.checked_rem(unit_s).unwrap_or_default();
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
        if !parts.is_empty() && (parts.len() == 2 || count == 0) {
            break;
        }
    }
    if parts.is_empty() {
        return "0 s".to_owned();
    }
    parts.join(" ")
}

/// Returns the marks of a time axis in seconds, from 0: about `count` of them.
pub(crate) fn time_marks(until_s: i64, count: i64) -> Vec<i64> {
    let least_s = until_s.checked_div(count.max(1)).unwrap_or_default();
    let step_s = steps_s().find(|it| *it >= least_s);
    // Beyond the longest step the marks are multiples of 100 days.
    let step_s = step_s.unwrap_or_else(|| {
        let hundreds = least_s.checked_div(100 * DAY_S).unwrap_or_default();
        hundreds.saturating_add(1).saturating_mul(100 * DAY_S)
    });
    let marks = (0_i64..).map_while(|at| at.checked_mul(step_s));
    marks.take_while(|at_s| *at_s <= until_s).collect()
}

#[cfg(test)]
mod tests {
    use super::{duration_text, time_marks};

    #[test]
    fn duration_text_has_two_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3_605, "1 h"),
            (7_500, "2 h 5 min"),
            (90_061, "1 d 1 h"),
            (-5, "0 s"),
        ] {
            assert_eq!(duration_text(seconds), expected);
        }
    }

    #[test]
    fn time_marks_are_few_and_round() {
        assert_eq!(time_marks(100, 5), [0, 30, 60, 90]);
        assert_eq!(time_marks(1, 8), [0, 1]);
        for until_s in [0, 1, 86_400, 1_000_000_000, 1 << 40, i64::MAX] {
            let marks = time_marks(until_s, 8);
            assert!((1..=10).contains(&marks.len()), "{until_s}: {marks:?}");
        }
    }
}
