//! Compares a decision of Kueue with those of the core.

use crate::decision::KueueDecision;
use crate::forecast::{CoreDecision, Forecast, forecast};
use crate::known_state::Known;
use crate::search::Search;
use crate::timeline::Timeline;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whether the core decides as Kueue on one of the states that Kueue may have had; `Err` is its decision on the latest of
/// them, as text.
pub(crate) fn check(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
) -> Result<(), String> {
    let Err(core) = check_at(known, decision, queues) else {
        return Ok(());
    };
    // A cycle waits for the writes of each preemption before it goes on: the later decisions of the cycle are as much newer
    // than their state.
    for earlier_s in 1..=known.settings.slow_cycle_s {
        let begun_s = decision.decided_s.saturating_sub(earlier_s);
        if !is_preemption_written_across(known, decision, begun_s.saturating_add(1)) {
            break;
        }
        let begun = KueueDecision {
            decided_s: begun_s,
            ..decision.clone()
        };
        if check_at(known, &begun, queues).is_ok() {
            return Ok(());
        }
    }
    Err(core)
}

/// Whether another preemption was decided before a second and written in it or later.
fn is_preemption_written_across(known: Known<'_>, decision: &KueueDecision, second: i64) -> bool {
    known.history.iter().any(|it| {
        it.decided_on != it.key
            && it.decided_s.is_some_and(|it| it < second)
            && it.at_ms >= second.saturating_mul(1000)
            && !decision.seqs.contains_key(&it.seq)
    })
}

/// [`check`] for the second of the decision alone.
fn check_at(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
) -> Result<(), String> {
    let timeline = Timeline::new(known, decision, queues, 0);
    // Nearly all decisions agree here.
    let mut latest = timeline.state(timeline.last_prefix());
    if forecast(&mut latest.cluster, decision, false).decision == CoreDecision::Same {
        return Ok(());
    }
    let mut search = Search::new(&timeline, known, decision, queues);
    if search.finds_agreement() {
        return Ok(());
    }
    // Kueue may have preempted for the workload in several cycles.
    if let Some(rest) = decision.without(search.confirmed_victims()) {
        return check_at(known, &rest, queues);
    }
    let mut latest = timeline.state(timeline.last_prefix());
    let forecast = forecast(&mut latest.cluster, decision, true);
    Err(core_text(forecast))
}

fn core_text(forecast: Forecast) -> String {
    let text = match forecast.decision {
        CoreDecision::Same => "decides the same".to_owned(),
        CoreDecision::PartOfVictims(victims) => {
            let victims: Vec<&str> = victims.iter().map(AsRef::as_ref).collect();
            format!("preempts only {}", victims.join(", "))
        }
        CoreDecision::Other(text) => text,
        CoreDecision::NotConsidered => "does not consider it: others are ahead".to_owned(),
    };
    match forecast.before.len() {
        0 => text,
        1 => format!("{text}; one other workload comes first"),
        count => format!("{text}; {count} other workloads come first"),
    }
}
