//! Compares a decision of Kueue with those of the core.

use crate::candidate_states::{Assumptions, CandidateStates, WaitingPreemptors};
use crate::core_cycles::{CoreDecision, Decided, decide};
use crate::decision::KueueDecision;
use crate::known_state::Known;
use crate::past_states::PastStates;
use crate::report::DecisionKind;
use crate::search::{Search, SearchResult};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The result of a comparison. The text is the decision of the core on the latest of the states that Kueue may have had.
pub(crate) enum CheckResult {
    /// The core decides as Kueue on one of the states.
    Agreed,
    /// The core decides otherwise on each of them.
    Different(String),
    /// The core decides otherwise on all that were compared, and there are more than the bounds allow.
    Ambiguous(String),
}

/// Compares a decision of Kueue with those of the core on the states that Kueue may have had. `effort` is the number of cycles and of
/// decisions on states.
pub(crate) fn check(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
    mut effort: usize,
) -> CheckResult {
    let mut is_cut_off = false;
    let mut agrees = |decision: &KueueDecision| {
        let result = search(known, decision, queues, &mut effort);
        is_cut_off |= result == SearchResult::CutOff;
        result == SearchResult::Found
    };
    if agrees(decision) {
        return CheckResult::Agreed;
    }
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
        if agrees(&begun) {
            return CheckResult::Agreed;
        }
    }
    let states = CandidateStates::new(known, decision, queues, 0, Assumptions::LIKELY);
    let mut latest = states.state(states.last_prefix());
    let core = core_text(decide(&mut latest.cluster, decision, true));
    if is_cut_off {
        CheckResult::Ambiguous(core)
    } else {
        CheckResult::Different(core)
    }
}

/// Whether another preemption was decided before a second and written in it or later.
fn is_preemption_written_across(known: Known<'_>, decision: &KueueDecision, second: i64) -> bool {
    known.history().any(|it| {
        it.decided_on != it.key
            && it.decided_s.is_some_and(|it| it < second)
            && it.at_ms >= second.saturating_mul(1000)
            && !decision.seqs.contains_key(&it.seq)
    })
}

/// Searches for a state of the second of the decision on which the core decides as Kueue.
fn search(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
    effort: &mut usize,
) -> SearchResult {
    let states = CandidateStates::new(known, decision, queues, 0, Assumptions::LIKELY);
    // Nearly all decisions agree here.
    let mut latest = states.state(states.last_prefix());
    if states.has_preceding_part(&latest)
        && decide(&mut latest.cluster, decision, false).decision == CoreDecision::Same
    {
        return SearchResult::Found;
    }
    let mut result = search_states(known, decision, queues, &states, effort);
    if result == SearchResult::Found {
        return result;
    }
    for assumptions in other_assumptions(known, decision, queues, &states) {
        if result != SearchResult::Found {
            let states = CandidateStates::new(known, decision, queues, 0, assumptions);
            result = either(
                search_states(known, decision, queues, &states, effort),
                result,
            );
        }
    }
    result
}

/// What may be true of the states of Kueue, too.
fn other_assumptions(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
    states: &CandidateStates<'_>,
) -> Vec<Assumptions> {
    let mut others = Vec::new();
    if decision.kind() == DecisionKind::Preemption {
        others.push(Assumptions {
            are_victims_newest: true,
            ..Assumptions::LIKELY
        });
    }
    if states.has_preemption()
        && PastStates::new(known, decision, queues, i64::MIN).may_wait_for_victims(&decision.key)
    {
        others.push(Assumptions {
            waiting: WaitingPreemptors::Decided,
            ..Assumptions::LIKELY
        });
    }
    if states.has_waiting_preemptor() {
        others.push(Assumptions {
            waiting: WaitingPreemptors::None,
            ..Assumptions::LIKELY
        });
    }
    others
}

fn search_states(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
    states: &CandidateStates<'_>,
    effort: &mut usize,
) -> SearchResult {
    let mut whole = Search::new(states, known, decision, queues, effort);
    let mut result = whole.run();
    // Kueue may have preempted for the workload in several cycles.
    for part in whole.into_parts() {
        if result == SearchResult::Found {
            break;
        }
        if let Some(rest) = decision.after_part(&part) {
            result = either(search(known, &rest, queues, effort), result);
        }
    }
    result
}

/// The result of two searches of which both may find a state.
fn either(one: SearchResult, other: SearchResult) -> SearchResult {
    match (one, other) {
        (SearchResult::Found, _) | (_, SearchResult::Found) => SearchResult::Found,
        (SearchResult::CutOff, _) | (_, SearchResult::CutOff) => SearchResult::CutOff,
        (SearchResult::NotFound, SearchResult::NotFound) => SearchResult::NotFound,
    }
}

fn core_text(decided: Decided) -> String {
    let text = match decided.decision {
        CoreDecision::Same => "decides the same".to_owned(),
        CoreDecision::PartOfVictims(victims) => {
            let victims: Vec<&str> = victims.iter().map(AsRef::as_ref).collect();
            format!("preempts only {}", victims.join(", "))
        }
        CoreDecision::Other(text) => text,
        CoreDecision::NotConsidered => "does not consider it: others are ahead".to_owned(),
    };
    match decided.before.len() {
        0 => text,
        1 => format!("{text}; one other workload comes first"),
        count => format!("{text}; {count} other workloads come first"),
    }
}
