//! The states before a decision: which workloads did not fit then, and which waited for victims.

use crate::decision::KueueDecision;
use crate::history::Entry;
use crate::known_state::{Known, apply, copies_max, mark_if_preemption};
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::{Mode, Trace, Victim, WhatIf};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most states, fewer if they are large; the oldest are dropped.
const STATES_MAX: usize = 512;

/// A state, and from when.
struct TimedState {
    from_ms: i64,
    cluster: ClusterState,
}

/// The states before a decision, by the time at which Kueue may have had them.
pub(crate) struct PastStates {
    states: Vec<TimedState>,
    inadmissible_ms: i64,
    /// Whether a workload fits in a state, by its key and the position of the state.
    fits: BTreeMap<(Arc<str>, usize), bool>,
}

impl PastStates {
    /// The states from `begin_ms`, the oldest on which Kueue may have decided, less the time that a workload may be out of
    /// its queue.
    pub(crate) fn new(
        known: Known<'_>,
        decision: &KueueDecision,
        queues: &BTreeSet<Arc<str>>,
        begin_ms: i64,
    ) -> Self {
        let inadmissible_ms = known.settings.inadmissible_ms;
        let begin_ms = begin_ms.saturating_sub(inadmissible_ms);
        let is_part = |it: &&Entry| {
            queues.contains(&it.queue)
                && it.seq < decision.first_seq
                && !decision.seqs.contains_key(&it.seq)
        };
        let mut changes: Vec<&Entry> = known.history().filter(is_part).collect();
        // Kueue decides before it sees another change of the same time, or after it. Before, more quota is used.
        changes.sort_by_key(|it| (it.effective_ms(), it.decided_s.is_none(), it.seq));
        let mut cluster = known.before_history(queues);
        cluster.set_now(decision.decided_s.saturating_mul(1000));
        let mut applied: BTreeMap<&str, u64> = BTreeMap::new();
        let mut states = Vec::new();
        let skipped = changes
            .len()
            .saturating_sub(STATES_MAX.min(copies_max(&cluster)));
        for (position, entry) in changes.into_iter().enumerate() {
            let at_ms = entry.effective_ms();
            if at_ms > begin_ms && position >= skipped && states.is_empty() {
                states.push(TimedState {
                    from_ms: begin_ms,
                    cluster: cluster.clone(),
                });
            }
            // A decision may be effective before an older change of the workload was delivered.
            let last = applied.entry(&entry.key).or_default();
            if *last > entry.seq {
                continue;
            }
            *last = entry.seq;
            apply(&mut cluster, &entry.key, entry.after.as_ref());
            mark_if_preemption(&mut cluster, entry);
            if !states.is_empty() {
                states.push(TimedState {
                    from_ms: at_ms,
                    cluster: cluster.clone(),
                });
            }
        }
        if states.is_empty() {
            states.push(TimedState {
                from_ms: begin_ms,
                cluster,
            });
        }
        Self {
            states,
            inadmissible_ms,
            fits: BTreeMap::new(),
        }
    }

    /// Whether a workload may wait for victims that were preempted for another.
    pub(crate) fn may_wait_for_victims(&mut self, key: &str) -> bool {
        let mut states = self.states.iter_mut();
        states.any(|it| waits_for_victims(&mut it.cluster, key))
    }

    /// Whether a workload may be out of its queue at a time: it did not fit shortly before.
    pub(crate) fn may_be_inadmissible(&mut self, key: &Arc<str>, at_ms: i64) -> bool {
        let begin_ms = at_ms.saturating_sub(self.inadmissible_ms);
        for position in (0..self.states.len()).rev() {
            let Some(state) = self.states.get_mut(position) else {
                return false;
            };
            if state.from_ms > at_ms {
                continue;
            }
            let fits = self.fits.entry((Arc::clone(key), position));
            let fits = *fits.or_insert_with(|| fits_or_is_absent(&mut state.cluster, key));
            if !fits {
                return true;
            }
            if state.from_ms <= begin_ms {
                return false;
            }
        }
        false
    }
}

/// Whether a workload does not fit until victims that are evicted already have left.
fn waits_for_victims(cluster: &mut ClusterState, key: &str) -> bool {
    let Some(id) = cluster.state().workload(key) else {
        return false;
    };
    let nomination = WhatIf::new(cluster.state_mut()).nominate(id, Trace::off());
    let victims = nomination.map(|it| it.victims).unwrap_or_default();
    let is_evicted = |victim: &Victim| {
        let victim = cluster.state().workload_view(victim.workload);
        victim.reservation().is_some_and(|it| it.is_evicted)
    };
    !victims.is_empty() && victims.iter().all(is_evicted)
}

/// Whether a workload is absent, fits, or fits after preemption.
fn fits_or_is_absent(cluster: &mut ClusterState, key: &str) -> bool {
    let Some(id) = cluster.state().workload(key) else {
        return true;
    };
    let nomination = WhatIf::new(cluster.state_mut()).nominate(id, Trace::off());
    nomination.is_none_or(|it| it.assignment.mode == Mode::Fit || !it.victims.is_empty())
}
