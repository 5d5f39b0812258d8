//! The states of a workload by column of a terminal.

use super::time_scale::TimeScale;
use crate::workload_states::{Interval, IntervalState};

/// Returns for each column the state that the workload has for most of its time; the later one of equals.
///
/// Costs the columns, the visible intervals, and the logarithm of all.
pub(crate) fn column_states(
    intervals: &[Interval],
    scale: TimeScale,
) -> Vec<Option<IntervalState>> {
    let first = intervals.partition_point(|it| it.to_s <= scale.from_s);
    let mut rest = intervals.get(first..).unwrap_or_default();
    let columns = (0..scale.width).map(|column| {
        let from_s = scale.at_s(column);
        // A column may be shorter than a second.
        let next_s = scale.at_s(column.saturating_add(1));
        let to_s = next_s.max(from_s.saturating_add(1));
        let mut longest = (0_i64, None);
        while let Some((interval, later)) = rest.split_first() {
            if interval.from_s >= to_s {
                break;
            }
            let part_s = interval.to_s.min(to_s);
            let part_s = part_s.saturating_sub(interval.from_s.max(from_s));
            if part_s > 0 && part_s >= longest.0 {
                longest = (part_s, Some(interval.state));
            }
            // Also the next column may have it.
            if interval.to_s > next_s {
                break;
            }
            rest = later;
        }
        longest.1
    });
    columns.collect()
}

#[cfg(test)]
mod tests {
    use super::column_states;
    use crate::terminal::time_scale::TimeScale;
    use crate::workload_states::{Interval, IntervalState};

    fn states(width: u16, from_s: i64, length_s: i64) -> String {
        use IntervalState::{Pending, Running, Terminating};
        let intervals = [(Pending, 2, 4), (Running, 4, 8), (Terminating, 8, 9)];
        let intervals = intervals.map(|(state, from_s, to_s)| Interval {
            state,
            from_s,
            to_s,
        });
        let scale = TimeScale {
            from_s,
            length_s,
            width,
        };
        let states = column_states(&intervals, scale).into_iter();
        let letters = states.map(|it| match it {
            None => '.',
            Some(Pending) => 'p',
            Some(Running) => 'r',
            Some(_) => 't',
        });
        letters.collect()
    }

    #[test]
    fn columns_have_the_longest_state() {
        assert_eq!(states(10, 0, 10), "..pprrrrt.");
        assert_eq!(states(20, 0, 10), "....pppprrrrrrrrtt..");
        assert_eq!(states(5, 0, 10), ".prrt");
        assert_eq!(states(2, 0, 10), "pr");
        assert_eq!(states(4, 6, 4), "rrt.");
        assert_eq!(states(0, 0, 10), "");
    }
}
