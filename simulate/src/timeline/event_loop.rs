//! The events that repeat without end in a livelock.

use super::result::{Event, EventKind, Outcome, Timeline};

/// Returns the shortest sequence of events at the end of a livelock that occurs twice in a row; empty if there is none.
/// Cycle numbers are not compared. Costs the square of the number of events of the last instant in the worst case.
#[must_use]
pub fn event_loop(timeline: &Timeline) -> &[Event] {
    if timeline.outcome != Outcome::Livelock {
        return &[];
    }
    let events = timeline.events.as_slice();
    let last_s = events.last().map(|it| it.at_s);
    let start = events.partition_point(|it| Some(it.at_s) < last_s);
    let events = events.get(start..).unwrap_or_default();
    let length = (1..=events.len() / 2).find(|length| {
        let tail = events.len().saturating_sub(*length);
        let before = tail.saturating_sub(*length);
        match (events.get(before..tail), events.get(tail..)) {
            (Some(first), Some(second)) => {
                let mut pairs = first.iter().zip(second);
                pairs.all(|(a, b)| without_cycle(a.kind) == without_cycle(b.kind))
            }
            _ => false,
        }
    });
    let tail = length.map(|length| events.len().saturating_sub(length));
    tail.and_then(|tail| events.get(tail..)).unwrap_or_default()
}

fn without_cycle(kind: EventKind) -> EventKind {
    match kind {
        EventKind::Admitted { job, .. } => EventKind::Admitted { job, cycle: 0 },
        EventKind::Preempted { job, by, .. } => EventKind::Preempted { job, by, cycle: 0 },
        other => other,
    }
}
