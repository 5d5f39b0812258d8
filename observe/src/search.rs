//! The search for a state on which the core decides as Kueue.

use crate::decision::{KueueDecision, What};
use crate::fit_history::FitHistory;
use crate::forecast::{CoreDecision, OtherDecision, forecast};
use crate::known_state::Known;
use crate::timeline::{Hypothesis, Timeline};
use crate::trajectory::TrajectorySearch;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::QueueingStrategy;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most forecasts on one state, each without some workloads that may be out of their queues.
const RETRIES_MAX: usize = 16;

/// The most states with the same prefix.
const HYPOTHESES_MAX: usize = 64;

/// The most numbers of other decisions of the same second that are tried in the order of their writes.
const SAME_SECOND_MAX: usize = 64;

/// The most forecasts of each part of a search for a decision and a second.
const FORECASTS_MAX: usize = 400;

/// How many seconds before the decision trajectories begin at most.
const WINDOW_MAX_S: i64 = 1;

/// A search.
pub(crate) struct Search<'a> {
    timeline: &'a Timeline<'a>,
    known: Known<'a>,
    queues: &'a BTreeSet<Arc<str>>,
    decision: &'a KueueDecision,
    fit_history: FitHistory,
    /// Victims that the core preempts, too, on one of the states.
    confirmed_victims: BTreeSet<Arc<str>>,
    /// How many forecasts are left.
    forecasts: usize,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        timeline: &'a Timeline<'a>,
        known: Known<'a>,
        decision: &'a KueueDecision,
        queues: &'a BTreeSet<Arc<str>>,
    ) -> Self {
        let begin_ms = timeline.first_candidate_ms();
        Self {
            timeline,
            known,
            queues,
            decision,
            fit_history: FitHistory::new(known, decision, queues, begin_ms),
            confirmed_victims: BTreeSet::new(),
            forecasts: 0,
        }
    }

    /// Victims that the core preempts, too, on one of the states.
    pub(crate) const fn confirmed_victims(&self) -> &BTreeSet<Arc<str>> {
        &self.confirmed_victims
    }

    /// Whether the core decides as Kueue on one of the states.
    pub(crate) fn finds_agreement(&mut self) -> bool {
        self.agrees_on_trajectory(0)
            || self.agrees_after_cycles()
            || self.agrees_on_trajectory(WINDOW_MAX_S)
            || self.agrees_after_writes()
    }

    /// Follows the cycles of the second: on each state that Kueue may have seen, the core decides. If Kueue has made one of
    /// its decisions in the second, too, that may have been before.
    fn agrees_after_cycles(&mut self) -> bool {
        self.forecasts = FORECASTS_MAX;
        let first = self.timeline.first_prefix();
        let mut hypotheses = vec![self.timeline.state(first)];
        for prefix in first..=self.timeline.last_prefix() {
            let mut known = BTreeSet::new();
            hypotheses.retain(|it| known.insert(it.applied.clone()));
            let mut waiting = hypotheses.clone();
            while let Some(state) = waiting.pop() {
                let Err(cycles) = self.agrees_without_others(&state.cluster, prefix) else {
                    return true;
                };
                if self.forecasts == 0 {
                    return false;
                }
                for cycle in cycles {
                    let next = self.after_cycle(&state, &cycle);
                    if hypotheses.len() < HYPOTHESES_MAX && known.insert(next.applied.clone()) {
                        hypotheses.push(next.clone());
                        waiting.push(next);
                    }
                }
            }
            for state in &mut hypotheses {
                self.timeline.advance(state, prefix);
            }
        }
        false
    }

    /// Whether the core decides as Kueue after the first of the other decisions of the same second in the order of their
    /// writes, which is mostly that of the decisions. The core may differ on them.
    fn agrees_after_writes(&mut self) -> bool {
        self.forecasts = FORECASTS_MAX;
        let timeline = self.timeline;
        let count = timeline.window.len().min(SAME_SECOND_MAX);
        for prefix in (timeline.first_prefix()..=timeline.last_prefix()).rev() {
            let mut state = timeline.state(prefix);
            for entry in timeline.window.iter().take(count) {
                if state.applied.contains(&entry.seq) {
                    continue;
                }
                timeline.assume(&mut state, entry);
                if self.agrees_without_others(&state.cluster, prefix).is_ok() {
                    return true;
                }
                if self.forecasts == 0 {
                    return false;
                }
            }
        }
        false
    }

    /// Whether the core decides as Kueue on a trajectory that begins some seconds before the decision.
    fn agrees_on_trajectory(&mut self, window_s: i64) -> bool {
        let timeline = Timeline::new(self.known, self.decision, self.queues, window_s);
        let outcome = TrajectorySearch::new(&timeline, self.decision).run();
        self.confirmed_victims.extend(outcome.confirmed_victims);
        outcome.is_agreed || self.are_all_victims_confirmed()
    }

    /// A state after the decisions of a cycle that Kueue has made in the same second, too.
    fn after_cycle(&self, state: &Hypothesis, cycle: &[OtherDecision]) -> Hypothesis {
        let mut next = state.clone();
        for own in cycle {
            for entry in &self.timeline.window {
                if entry.is_decision(own) {
                    self.timeline.assume(&mut next, entry);
                }
            }
        }
        next
    }

    /// `Err` with the decisions of the first cycle if the core does not decide as Kueue, with or without workloads that may
    /// be out of their queues.
    fn agrees_without_others(
        &mut self,
        cluster: &ClusterState,
        prefix: usize,
    ) -> Result<(), Vec<Vec<OtherDecision>>> {
        let mut cluster = cluster.clone();
        let at_ms = self.timeline.prefix_ms(prefix);
        let mut cycles = Vec::new();
        let mut without_unfit = None;
        for _ in 0..RETRIES_MAX.min(self.forecasts) {
            self.forecasts = self.forecasts.saturating_sub(1);
            let mut result = forecast(&mut cluster.clone(), self.decision, false);
            match result.decision {
                CoreDecision::Same => return Ok(()),
                CoreDecision::PartOfVictims(victims) => {
                    self.confirmed_victims.extend(victims);
                    if self.are_all_victims_confirmed() {
                        return Ok(());
                    }
                }
                CoreDecision::Other(_) | CoreDecision::NotConsidered => {}
            }
            let mut has_changed = false;
            let unfit = without_unfit.get_or_insert_with(|| {
                has_changed = true;
                std::mem::take(&mut result.unfit)
            });
            if has_changed {
                for key in &*unfit {
                    has_changed |= remove_class(&mut cluster, key, &self.decision.key);
                }
            }
            for other in &result.before {
                if self.fit_history.may_be_out_of_queue(&other.key, at_ms) {
                    has_changed |= remove_class(&mut cluster, &other.key, &self.decision.key);
                }
            }
            result.before.truncate(result.in_first_cycle);
            cycles.push(result.before);
            if !has_changed {
                break;
            }
        }
        Err(cycles)
    }

    fn are_all_victims_confirmed(&self) -> bool {
        match &self.decision.what {
            What::Preemption(victims) => {
                victims.keys().all(|it| self.confirmed_victims.contains(it))
            }
            What::Admission(_) => false,
        }
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
    // A StrictFIFO queue keeps its head.
    if state.node_view(queue).strategy() != QueueingStrategy::BestEffortFifo {
        return false;
    }
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
