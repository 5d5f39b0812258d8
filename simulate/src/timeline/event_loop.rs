//! The events that repeat without end in a livelock or a loop.

use super::result::{Event, EventKind, Outcome, Timeline};

/// The most events at the end of a loop that are searched.
const LOOP_EVENTS_MAX: usize = 4_096;

/// Returns the shortest sequence of events at the end of a livelock that occurs twice in a row; empty if there is none.
/// For a loop, the times between its events are equal, too. Cycle numbers are not compared. Costs the square of the number
/// of events in the worst case: of the last instant, or `LOOP_EVENTS_MAX`.
#[must_use]
pub fn event_loop(timeline: &Timeline) -> &[Event] {
    let events = timeline.events.as_slice();
    let start = match timeline.outcome {
        Outcome::Livelock => {
            let last_s = events.last().map(|it| it.at_s);
            events.partition_point(|it| Some(it.at_s) < last_s)
        }
        Outcome::Loop => events.len().saturating_sub(LOOP_EVENTS_MAX),
        Outcome::Drained | Outcome::Stuck | Outcome::Recorded => return &[],
    };
    let events = events.get(start..).unwrap_or_default();
    let length = (1..=events.len() / 2).find(|length| {
        let tail = events.len().saturating_sub(*length);
        let before = tail.saturating_sub(*length);
        match (events.get(before..tail), events.get(tail..)) {
            (Some(first), Some(second)) => {
                let elapsed = |a: &Event, b: &Event| b.at_s.saturating_sub(a.at_s);
                let period = first.first().zip(second.first());
                let period = period.map(|(a, b)| elapsed(a, b));
                let mut pairs = first.iter().zip(second);
                pairs.all(|(a, b)| {
                    without_cycle(a.kind) == without_cycle(b.kind) && Some(elapsed(a, b)) == period
                })
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
