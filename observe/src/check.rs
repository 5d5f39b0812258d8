//! Compares a decision of Kueue with those of the core.

use crate::candidate_states::{Known, TimedState, Timeline};
use crate::decision::{KueueDecision, What};
use crate::forecast::{CoreDecision, Forecast, forecast};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{Mode, Trace, WhatIf};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The most forecasts on one state, each without some workloads that may be out of their queues.
const RETRIES_MAX: usize = 16;

/// The most numbers of other decisions of the same second that are tried.
const SAME_SECOND_MAX: usize = 64;

/// The most forecasts for a decision and a second: half a second of work.
const FORECASTS_MAX: usize = 600;

/// A comparison.
struct Check<'a> {
    timeline: Timeline<'a>,
    decision: &'a KueueDecision,
    states: VecDeque<TimedState>,
    /// Whether a workload fits in a state, by its key and the position of the state.
    fits: BTreeMap<(Arc<str>, usize), bool>,
    /// Victims that the core preempts, too, on one of the states.
    confirmed_victims: BTreeSet<Arc<str>>,
    /// How many forecasts are left.
    forecasts: usize,
}

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
        let has_preempted = known.history.iter().any(|it| {
            let is_between = it
                .decided_s
                .is_some_and(|it| begun_s <= it && it <= decision.decided_s);
            is_between && it.decided_on != it.key && !decision.seqs.contains_key(&it.seq)
        });
        let begun = KueueDecision {
            decided_s: begun_s,
            ..decision.clone()
        };
        if has_preempted && check_at(known, &begun, queues).is_ok() {
            return Ok(());
        }
    }
    Err(core)
}

/// [`check`] for the second of the decision alone.
fn check_at(
    known: Known<'_>,
    decision: &KueueDecision,
    queues: &BTreeSet<Arc<str>>,
) -> Result<(), String> {
    let timeline = Timeline::new(known, decision, queues);
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
        forecasts: FORECASTS_MAX,
    };
    if check.agrees_on_any() {
        return Ok(());
    }
    // Kueue may have preempted for the workload in several cycles.
    if let Some(rest) = decision.without(&check.confirmed_victims) {
        return check_at(known, &rest, queues);
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
        // Decisions of the same second are mostly written in their order.
        let others = self.timeline.same_second.len();
        for applied in (0..=others).take(SAME_SECOND_MAX) {
            for position in &positions {
                if self.agrees_on(*position, applied) {
                    return true;
                }
                if self.forecasts == 0 {
                    return false;
                }
            }
            if applied == 0 && self.agrees_after_following() {
                return true;
            }
        }
        false
    }

    /// Whether the core decides as Kueue on a state, with the first `applied` of the other decisions of the same second.
    fn agrees_on(&mut self, position: usize, applied: usize) -> bool {
        let Some(state) = self.states.get(position) else {
            return false;
        };
        let cluster = self.timeline.with_same_second(state, applied);
        self.agrees_without_others(cluster, position).is_none()
    }

    /// Whether the core decides as Kueue after other decisions of the same second that it makes, too.
    fn agrees_after_following(&mut self) -> bool {
        let last = self.states.len().saturating_sub(1);
        let mut is_found = false;
        // A copy of the changes, since the check changes while it follows them.
        let timeline = self.timeline.clone();
        timeline.follow(|cluster| {
            let decided = self.agrees_without_others(cluster.clone(), last);
            is_found = decided.is_none();
            decided.filter(|_| self.forecasts > 0)
        });
        is_found
    }

    /// The workloads on which the core decides first; `None` if it then decides as Kueue, with or without workloads that may
    /// be out of their queues.
    fn agrees_without_others(
        &mut self,
        mut cluster: ClusterState,
        position: usize,
    ) -> Option<Vec<Arc<str>>> {
        let mut first = None;
        for _ in 0..RETRIES_MAX.min(self.forecasts) {
            self.forecasts = self.forecasts.saturating_sub(1);
            let mut result = forecast(&mut cluster.clone(), self.decision, false);
            match result.decision {
                CoreDecision::Same => return None,
                CoreDecision::PartOfVictims(victims) => {
                    self.confirmed_victims.extend(victims);
                    if self.are_all_victims_confirmed() {
                        return None;
                    }
                }
                CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
            }
            let mut has_changed = false;
            for key in &result.before {
                if self.may_be_out_of_queue(key, position) {
                    has_changed |= remove_class(&mut cluster, key, &self.decision.key);
                }
            }
            result.before.truncate(result.in_first_cycle);
            first
                .get_or_insert_with(Vec::new)
                .append(&mut result.before);
            if !has_changed {
                break;
            }
        }
        Some(first.unwrap_or_default())
    }

    fn are_all_victims_confirmed(&self) -> bool {
        match &self.decision.what {
            What::Preemption(victims) => {
                victims.keys().all(|it| self.confirmed_victims.contains(it))
            }
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

/// Removes a pending workload and the equivalent ones of its queue, which are out of the queue together. Returns false, and
/// removes none, if `kept` is one of them.
fn remove_class(cluster: &mut ClusterState, key: &str, kept: &str) -> bool {
    let state = cluster.state();
    let Some(id) = state.workload(key) else {
        return false;
    };
    let view = state.workload_view(id);
    let Some(queue) = view.queue() else {
        return false;
    };
    let pending = state.node_view(queue).pending().into_iter();
    let equivalent = pending.filter(|it| {
        let other = state.workload_view(*it);
        other.priority() == view.priority() && other.pod_sets() == view.pod_sets()
    });
    let keys: Vec<String> = equivalent
        .map(|it| state.workload_name(it).to_owned())
        .collect();
    if keys.iter().any(|it| it == kept) {
        return false;
    }
    for key in &keys {
        cluster.remove_workload(key);
    }
    !keys.is_empty()
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
