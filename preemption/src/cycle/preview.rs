//! The decision of the next cycles on one workload, without a change of the state.

use super::backfill::{BlockedHead, backfill};
use super::entry::{Cycle, Decision, Entry};
use super::process::ProcessedEntry;
use super::run::{decide, heads, last_assignment};
use crate::ids::{NodeId, WorkloadId};
use crate::state::State;

/// The most cycles of a flavor search. That of a workload with several pod sets may never end, as in Kueue.
const SEARCH_CYCLES_MAX: usize = 64;

/// What the next cycle does with a pending workload.
#[derive(Clone, Debug)]
pub enum NextDecision {
    /// It decides on the workload.
    Decided(Box<Entry>),
    /// It does not: the namespace selector of the queue does not match.
    OutOfScope,
    /// It does not: the queue is inactive, or its cohorts form a cycle.
    Inactive,
    /// It does not: another workload is the head of the queue.
    NotConsidered,
}

/// What the next cycle does with a pending workload; the next cycles, while its flavor search continues. Costs the part of a cycle
/// for its tree of cohorts per step of the search, almost always one. The other heads repeat their decisions, so they must have no flavors left to try, and
/// backoffs and minimum run times that end at the next cycle are not considered.
pub(crate) fn next_decision(state: &mut State, id: WorkloadId, is_traced: bool) -> NextDecision {
    state.apply_changes();
    let Some(row) = state.workloads.get(id) else {
        return NextDecision::NotConsidered;
    };
    let queue = state.queues.get(row.queue.index());
    if !queue.is_some_and(|it| it.settings.is_active) || state.tree.node(row.queue).is_misconfigured
    {
        return NextDecision::Inactive;
    }
    let (before, queue) = (row.last_assignment.clone(), row.queue);
    let mut cycle = heads(state);
    retain_tree(state, queue, &mut cycle);
    if cycle.out_of_scope.contains(&id) {
        return NextDecision::OutOfScope;
    }
    if !cycle.heads.iter().any(|it| it.workload == id) {
        let found = backfilled(state, &cycle, id, is_traced);
        return found.map_or(NextDecision::NotConsidered, decided);
    }
    let found = search(state, &cycle, id, is_traced);
    if let Some(row) = state.workloads.get_mut(id) {
        row.last_assignment = before;
    }
    found.map_or(NextDecision::NotConsidered, decided)
}

/// Removes the heads of other trees of cohorts than that of a queue: they use other quota. Only a limit of the victims of the whole
/// cycle depends on them.
fn retain_tree(state: &State, queue: NodeId, cycle: &mut Cycle) {
    if state.options.victims_per_cycle_max.is_none() {
        let root = |queue| state.tree.node(queue).root;
        cycle.heads.retain(|it| root(it.queue) == root(queue));
    }
}

fn decided(entry: Entry) -> NextDecision {
    NextDecision::Decided(Box::new(entry))
}

/// The entry of a workload that starts by backfill.
fn backfilled(state: &mut State, cycle: &Cycle, id: WorkloadId, is_traced: bool) -> Option<Entry> {
    let queue = state.workloads.get(id)?.queue;
    state.queues.get(queue.index())?.settings.backfill?;
    let processed = decide(state, &cycle.heads, false);
    let blocked = processed
        .iter()
        .filter_map(|it| BlockedHead::new(state, it));
    let blocked = blocked.collect();
    let mut entries = backfill(state, blocked, is_traced).entries.into_iter();
    entries.find(|it| it.workload == id)
}

/// The first entry that admits or preempts, or else the first.
fn search(state: &mut State, cycle: &Cycle, id: WorkloadId, is_traced: bool) -> Option<Entry> {
    let mut first = None;
    let mut has_continued = false;
    let mut has_searched_again = false;
    for _ in 0..SEARCH_CYCLES_MAX {
        let decided = decide(state, &cycle.heads, is_traced).into_iter();
        let mut decided = decided.filter(|it| it.entry.workload == id);
        let ProcessedEntry {
            entry,
            tried_flavors,
            ..
        } = decided.next()?;
        match entry.decision {
            Decision::Admit | Decision::Preempt(_) => return Some(entry),
            Decision::DeferredFit => return Some(first.unwrap_or(entry)),
            _ => {}
        }
        let queue = entry.queue;
        first.get_or_insert(entry);
        let continues = !tried_flavors.is_empty();
        let last = last_assignment(state, queue, tried_flavors);
        state.workloads.get_mut(id)?.last_assignment = last;
        if !continues {
            // After a search over several cycles, an earlier flavor may be free again.
            if !has_continued || has_searched_again {
                break;
            }
            has_searched_again = true;
        }
        has_continued = continues;
    }
    first
}
