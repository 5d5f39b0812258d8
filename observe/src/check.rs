//! Compares a decision of Kueue with those of the core.

use crate::candidate_states::{TimedState, Timeline};
use crate::decision::{KueueDecision, What};
use crate::forecast::{CoreDecision, Forecast, forecast};
use lockkeeper_preemption::{Mode, Trace, WhatIf};
use lockkeeper_cluster_state::ClusterState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The most forecasts on one state, each without some workloads that may be out of their queues.
const RETRIES_MAX: usize = 16;

/// Which other decisions of the same second are part of a state.
const SAME_SECOND: [SameSecond; 3] = [SameSecond::None, SameSecond::WrittenBefore, SameSecond::All];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SameSecond {
    None,
    WrittenBefore,
    All,
}

/// A comparison.
struct Check<'a> {
    timeline: Timeline<'a>,
    decision: &'a KueueDecision,
    states: VecDeque<TimedState>,
    /// Whether a workload fits in a state, by its key and the position of the state.
    fits: BTreeMap<(Arc<str>, usize), bool>,
    /// Victims that the core preempts, too, on one of the states.
    confirmed_victims: BTreeSet<Arc<str>>,
}

/// Whether the core decides as Kueue on one of the states that Kueue may have had; `Err` is its decision on the latest of
/// them, as text.
pub(crate) fn check(timeline: Timeline<'_>, decision: &KueueDecision) -> Result<(), String> {
    // Nearly all decisions agree here.
    let mut latest = timeline.latest();
    if forecast(&mut latest, decision, false).decision == CoreDecision::Same {
        return Ok(());
    }
    let states = timeline.states();
    let mut check = Check {
        timeline,
        decision,
        states,
        fits: BTreeMap::new(),
        confirmed_victims: BTreeSet::new(),
    };
    if check.agrees_on_any() {
        return Ok(());
    }
    let mut latest = check.timeline.latest();
    let forecast = forecast(&mut latest, decision, true);
    Err(core_text(forecast))
}

impl Check<'_> {
    fn agrees_on_any(&mut self) -> bool {
        let first_ms = self.timeline.first_candidate_ms();
        // A state is in force until the next one.
        let mut next_ms = i64::MAX;
        let mut positions = Vec::new();
        for (position, state) in self.states.iter().enumerate().rev() {
            if next_ms < first_ms {
                break;
            }
            next_ms = state.from_ms;
            positions.push(position);
        }
        for same_second in SAME_SECOND {
            if same_second != SameSecond::None && self.timeline.same_second.is_empty() {
                break;
            }
            for position in &positions {
                if self.agrees_on(*position, same_second) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether the core decides as Kueue on a state, without workloads that may be out of their queues.
    fn agrees_on(&mut self, position: usize, same_second: SameSecond) -> bool {
        let Some(state) = self.states.get(position) else {
            return false;
        };
        let mut cluster = state.cluster.clone();
        match same_second {
            SameSecond::None => {}
            SameSecond::WrittenBefore => {
                let until = self.decision.first_seq;
                self.timeline.apply_same_second(&mut cluster, until);
            }
            SameSecond::All => self.timeline.apply_same_second(&mut cluster, u64::MAX),
        }
        for _ in 0..RETRIES_MAX {
            let result = forecast(&mut cluster.clone(), self.decision, false);
            match result.decision {
                CoreDecision::Same => return true,
                CoreDecision::PartOfVictims(victims) => {
                    self.confirmed_victims.extend(victims);
                    if self.are_all_victims_confirmed() {
                        return true;
                    }
                }
                CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
            }
            let mut has_changed = false;
            for key in &result.before {
                if self.may_be_out_of_queue(key, position) {
                    cluster.remove_workload(key);
                    has_changed = true;
                }
            }
            if !has_changed {
                return false;
            }
        }
        false
    }

    fn are_all_victims_confirmed(&self) -> bool {
        match &self.decision.what {
            What::Preemption(victims) => victims
                .keys()
                .all(|it| self.confirmed_victims.contains(it)),
            What::Admission(_) => false,
        }
    }

    /// Whether a workload did not fit within `requeue_ms` before the end of a state.
    fn may_be_out_of_queue(&mut self, key: &Arc<str>, position: usize) -> bool {
        let Some(at_ms) = self.states.get(position).map(|it| it.from_ms) else {
            return false;
        };
        let begin_ms = at_ms.saturating_sub(self.timeline.requeue_ms());
        for earlier in (0..=position).rev() {
            let Some(state) = self.states.get_mut(earlier) else {
                return false;
            };
            let from_ms = state.from_ms;
            let fits = self.fits.entry((Arc::clone(key), earlier));
            let fits = *fits.or_insert_with(|| fits_or_is_absent(&mut state.cluster, key));
            if !fits {
                return true;
            }
            if from_ms <= begin_ms {
                return false;
            }
        }
        false
    }
}

/// Whether a workload is absent, fits, or fits after preemption.
fn fits_or_is_absent(cluster: &mut ClusterState, key: &str) -> bool {
    let Some(id) = cluster.state().workload(key) else {
        return true;
    };
    let nomination = WhatIf::new(cluster.state_mut()).nominate(id, Trace::off());
    nomination.is_none_or(|it| it.assignment.mode == Mode::Fit || !it.victims.is_empty())
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
