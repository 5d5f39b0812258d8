//! Held quota in a cycle: it counts as used, except for its preemptor and for workloads that displace it.

use super::entry::{Cycle, Decision, Entry};
use super::entry_usage::{entry_cells, remove_usage};
use super::nominate::{NominatedEntry, NominationContext};

use crate::assignment::Assignment;
use crate::damping::{Damping, Hold, Holds};
use crate::ids::{NodeId, WorkloadId};
use crate::policy::{QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue};
use crate::queue::{EquivalenceClass, QueueKey};
use crate::quota::View;
use crate::state::{State, apply_hold, release_hold};
use crate::trace::{Step, Trace};
use crate::victim::Victim;
use crate::workload_table::WorkloadTable;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The options of a nomination.
pub(crate) struct NominationOptions<'a> {
    /// Workloads that count as removed.
    pub(crate) removed: &'a BTreeSet<WorkloadId>,
    /// If set, only the flavors of this assignment are tried.
    pub(crate) allowed_flavors: Option<&'a Assignment>,
    /// Preemptors whose held quota no longer counts as used.
    pub(crate) released: &'a BTreeSet<WorkloadId>,
}

impl NominationOptions<'_> {
    /// No workload is removed, all flavors are allowed, and all held quota counts as used.
    pub(crate) const DEFAULT: Self = Self {
        removed: &BTreeSet::new(),
        allowed_flavors: None,
        released: &BTreeSet::new(),
    };

    fn counts_hold(&self, holder: WorkloadId) -> bool {
        !self.released.contains(&holder)
    }
}

/// Nominates with the quota held for other preemptors counted as used. If the workload does not fit then, nominates
/// with the quota held for preemptors that it may displace counted as free.
pub(crate) fn nominate_with_holds(
    state: &State,
    view: &mut View<'_>,
    nominator: &NominationContext<'_>,
    options: &NominationOptions<'_>,
    mut trace: Trace,
) -> NominatedEntry {
    if state.holds.is_empty() {
        return nominator.nominate(view, options.removed, options.allowed_flavors, trace);
    }
    let mark = view.mark();
    // The quota held for the workload itself is free for it.
    if options.counts_hold(nominator.id()) {
        release_hold(state, view, nominator.id());
    }
    trace_holds(state, view, nominator, options, &mut trace);
    let mut nominee = nominator.nominate(view, options.removed, options.allowed_flavors, trace);
    if !nominee.fits_or_preempts() && options.removed.is_empty() {
        retain_decision(state, view, nominator, &mut nominee);
    }
    if !nominee.fits_or_preempts() {
        displace(state, view, nominator, options, &mut nominee);
    }
    view.roll_back(mark);
    nominee
}

/// Keeps an earlier decision as long as its victims are being evicted. A new search may fail then: some victims have
/// released their quota, so shares and borrowing queues have changed.
fn retain_decision(
    state: &State,
    view: &mut View<'_>,
    nominator: &NominationContext<'_>,
    nominee: &mut NominatedEntry,
) {
    let Some(hold) = state.holds.get(nominator.id()) else {
        return;
    };
    // Victims that have released their quota need no further eviction.
    let leaving = hold.remaining_victims(nominator.id(), &state.histories);
    let victims: Vec<Victim> = leaving.copied().collect();
    if victims.is_empty() {
        return;
    }
    let before = std::mem::replace(&mut nominee.assignment, Arc::clone(&hold.assignment));
    nominee.victims = victims;
    let mark = view.mark();
    let fits = fits_without(state, view, nominee);
    view.roll_back(mark);
    if fits {
        nominee.trace.record(|| Step::DecisionRetained);
    } else {
        nominee.assignment = before;
        nominee.victims.clear();
    }
}

/// Removes the usage of the victims from the view; returns whether the nominee fits then.
fn fits_without(state: &State, view: &mut View<'_>, nominee: &NominatedEntry) -> bool {
    for victim in &nominee.victims {
        remove_usage(state, view, victim.workload);
    }
    entry_cells(view, nominee).all(|(_, cell, amount)| amount <= view.available(cell).or_zero())
}

fn trace_holds(
    state: &State,
    view: &View<'_>,
    nominator: &NominationContext<'_>,
    options: &NominationOptions<'_>,
    trace: &mut Trace,
) {
    if !trace.is_on() {
        return;
    }
    let root = |queue: NodeId| view.tree.node(queue).root;
    let own = root(nominator.queue());
    for (holder, hold) in state.holds.iter() {
        let is_other = holder != nominator.id() && options.counts_hold(holder);
        if is_other && root(hold.queue) == own {
            trace.record(|| Step::QuotaHeld {
                preemptor: holder,
                amounts: hold.amounts(
                    holder,
                    &state.histories,
                    &state.admitted_index,
                    &state.workloads,
                ),
            });
        }
    }
}

/// Nominates again with the quota held for displaceable preemptors; records the displaced ones in the nominee.
fn displace(
    state: &State,
    view: &mut View<'_>,
    nominator: &NominationContext<'_>,
    options: &NominationOptions<'_>,
    nominee: &mut NominatedEntry,
) {
    let mut weaker = displaceable_preemptors(state, view, nominator, options);
    if weaker.is_empty() {
        return;
    }
    for holder in &weaker {
        release_hold(state, view, *holder);
    }
    let trace = std::mem::take(&mut nominee.trace);
    let stronger = nominator.displacing(&weaker);
    let mut again = stronger.nominate(view, options.removed, options.allowed_flavors, trace);
    // A preemptor of another queue may be displaced to reclaim quota, not to borrow it.
    let own = nominator.queue();
    let is_own = |holder: &WorkloadId| state.holds.get(*holder).is_some_and(|it| it.queue == own);
    let is_allowed = again.assignment.borrowing_level == 0 || weaker.iter().all(is_own);
    if !again.fits_or_preempts() || !is_allowed {
        // The trace of the second nomination continues that of the first.
        nominee.trace = again.trace;
        return;
    }
    drop_unneeded_holders(state, view, &again, &mut weaker);
    for holder in &weaker {
        let preemptor = *holder;
        again.trace.record(|| Step::Displaced { preemptor });
    }
    again.displaced = weaker;
    *nominee = again;
}

/// Returns the preemptors in the same tree that the workload may displace, the highest priority first: those of lower
/// priority that it could preempt if they were admitted, and those behind it in a `StrictFIFO` queue.
fn displaceable_preemptors(
    state: &State,
    view: &View<'_>,
    nominator: &NominationContext<'_>,
    options: &NominationOptions<'_>,
) -> Vec<WorkloadId> {
    let root = view.tree.node(nominator.queue()).root;
    let policy = nominator.policy();
    let may = |hold: &Hold| {
        let may_preempt = nominator.may_preempt() && nominator.delayed_until_s().is_none();
        let is_weaker = may_preempt && hold.priority < nominator.priority();
        if hold.queue == nominator.queue() {
            // The head of a `StrictFIFO` queue comes before all others of the queue.
            nominator.is_strict()
                || is_weaker && policy.within_cluster_queue != WithinClusterQueue::Never
        } else {
            is_weaker && policy.reclaim_within_cohort != ReclaimWithinCohort::Never
        }
    };
    let all = state.holds.iter().filter(|(id, hold)| {
        *id != nominator.id()
            && options.counts_hold(*id)
            && view.tree.node(hold.queue).root == root
            && may(hold)
    });
    let mut weaker: Vec<_> = all.map(|(id, hold)| (Reverse(hold.priority), id)).collect();
    weaker.sort_unstable();
    weaker.into_iter().map(|(_, id)| id).collect()
}

/// Removes the holders from a list whose quota the nominee does not need.
fn drop_unneeded_holders(
    state: &State,
    view: &mut View<'_>,
    nominee: &NominatedEntry,
    displaced: &mut Vec<WorkloadId>,
) {
    for victim in &nominee.victims {
        remove_usage(state, view, victim.workload);
    }
    displaced.retain(|holder| {
        let Some(hold) = state.holds.get(*holder) else {
            return false;
        };
        // A shared victim is protected for the holder as long as the hold exists, so the hold must end.
        let mut victims = nominee.victims.iter();
        if victims.any(|it| state.histories.evicting_preemptor(it.workload) == Some(*holder)) {
            return true;
        }
        let mark = view.mark();
        // Stays applied if the entry still fits, so the next holders are tested together with it.
        apply_hold(state, view, *holder, hold);
        let fits = entry_cells(view, nominee)
            .all(|(_, cell, amount)| amount <= view.available(cell).or_zero());
        if !fits {
            view.roll_back(mark);
        }
        !fits
    });
}

/// Records victims, begins and ends holds after a decision.
pub(super) fn update_holds(state: &mut State, entry: &Entry) {
    let is_damped = state.options.damping == Damping::On;
    match &entry.decision {
        Decision::Preempt(victims) => {
            for victim in victims {
                state
                    .histories
                    .record_preemption(entry.workload, victim.workload);
            }
            if is_damped {
                let hold = Hold {
                    queue: entry.queue,
                    priority: state.workload_view(entry.workload).priority(),
                    assignment: Arc::clone(entry.shared_assignment()),
                    victims: victims.clone(),
                };
                state.holds.begin(entry.workload, hold);
            }
        }
        // The preemptor cannot use the held quota, so it must not block other workloads.
        Decision::NoCandidates | Decision::NoFit => state.holds.end(entry.workload),
        // A hold outlives a skip. That of an admitted entry ends when its quota is reserved.
        Decision::Admit | Decision::DeferredFit | Decision::Skip(_) => {}
    }
    if !matches!(entry.decision, Decision::Skip(_)) {
        for holder in &entry.displaced {
            state.holds.end(*holder);
            // For the detection of loops a displacement is like a preemption of the holder.
            state.histories.record_displacement(*holder, entry.workload);
        }
    }
}

/// Ends holds that cannot be used: their preemptors are behind a blocked head of a `StrictFIFO` queue, or the namespace
/// selector of their queue no longer matches.
pub(super) fn end_unusable_holds(state: &mut State, cycle: &Cycle) {
    if state.holds.is_empty() {
        return;
    }
    for id in &cycle.out_of_scope {
        state.holds.end(*id);
    }
    let blocked = cycle.entries.iter().filter(|entry| {
        let strategy = state
            .queues
            .get(entry.queue.index())
            .map(|it| it.settings.strategy);
        strategy == Some(QueueingStrategy::StrictFifo) && entry.decision != Decision::Admit
    });
    let heads: BTreeMap<NodeId, WorkloadId> = blocked.map(|it| (it.queue, it.workload)).collect();
    let behind = |(id, hold): (WorkloadId, &Hold)| {
        let head = *heads.get(&hold.queue)?;
        (head != id).then_some((id, head))
    };
    for (id, head) in state.holds.iter().filter_map(behind).collect::<Vec<_>>() {
        state.holds.end(id);
        state.histories.record_displacement(id, head);
    }
}

/// Returns the first workload with held quota of each queue: its queue key and equivalence class.
pub(super) fn first_holders(
    holds: &Holds,
    records: &WorkloadTable,
) -> BTreeMap<NodeId, (QueueKey, EquivalenceClass)> {
    let mut first: BTreeMap<NodeId, (QueueKey, EquivalenceClass)> = BTreeMap::new();
    for (id, hold) in holds.iter() {
        let Some(record) = records.get(id) else {
            continue;
        };
        let place = record.queue_key(id);
        if first.get(&hold.queue).is_none_or(|(it, _)| place < *it) {
            first.insert(hold.queue, (place, record.equivalence_class()));
        }
    }
    first
}

/// Returns the preemptors whose held quota counts as free for a nominee.
pub(super) fn holders(nominee: &NominatedEntry) -> impl Iterator<Item = WorkloadId> {
    std::iter::once(nominee.workload).chain(nominee.displaced.iter().copied())
}
