//! The order in which the entries of a cycle are processed.

use super::entry_usage::entry_cells;
use super::nominate::NominatedEntry;
use crate::amount::Amount;
use crate::dominant_share::DominantShare;
use crate::ids::{FlavorResource, NodeId};
use crate::policy::Algorithm;
use crate::quota::{UsageStore, View};
use crate::spec::Options;
use crate::state::State;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

pub(super) fn is_fair(options: &Options) -> bool {
    matches!(options.algorithm, Algorithm::FairSharing(_))
}

/// Returns the precedence by held quota: first entries that displace a preemptor, then entries with held quota, then
/// all others. Otherwise an entry that may not use held quota could keep the preemptor from it.
fn hold_precedence(state: &State, nominee: &NominatedEntry) -> u8 {
    match nominee {
        entry if !entry.displaced.is_empty() => 0,
        entry if state.holds.contains(entry.workload) => 1,
        _ => 2,
    }
}

/// Sorts in the classical order: lower borrowing level, then higher priority, then earlier in queue order. Ties are
/// broken by the names of the queues.
pub(super) fn sort(state: &State, nominees: &mut [NominatedEntry]) {
    if !is_fair(&state.options) {
        // Stable, and heads are in the order of names. In Kueue ties are in random map order.
        nominees.sort_by_cached_key(|nominee| {
            let record = state.workloads.get(nominee.workload);
            let is_ignored = state.options.kueue_bugs.ignores_priority_in_cycle;
            let priority = record.filter(|_| !is_ignored).map_or(0, |it| it.priority);
            let time = record.map_or(0, |it| it.order_time);
            let level = nominee.assignment.borrowing_level;
            (
                hold_precedence(state, nominee),
                level,
                Reverse(priority),
                time,
            )
        });
    }
}

/// Returns the position of the next entry under fair sharing; `None` when all are decided.
///
/// Each call runs a tournament in the tree of the first queue by name, with the quota reserved so far.
pub(super) fn next(
    state: &State,
    view: &mut View<'_>,
    waiting: &[NominatedEntry],
) -> Option<usize> {
    let turns = waiting.iter().map(|it| hold_precedence(state, it));
    let turns: Vec<u8> = turns.collect();
    let turn = turns.iter().min()?;
    let its_turn = |at: &usize| turns.get(*at) == Some(turn);
    let name = |at: &usize| {
        waiting
            .get(*at)
            .map_or("", |it| state.tree.node(it.queue).name())
    };
    let of_turn = (0..waiting.len()).filter(its_turn);
    // Kueue selects a random tree; the first name makes cycles reproducible.
    let first = of_turn.clone().min_by_key(|at| name(at))?;
    let root_of = |at: usize| waiting.get(at).map(|it| view.tree.node(it.queue).root);
    let root = root_of(first)?;
    let entries: Vec<usize> = of_turn.filter(|at| root_of(*at) == Some(root)).collect();
    Some(Tournament::new(state, view, waiting, &entries).winner(root, first))
}

/// The share of one node with the request of an entry.
struct EntryShare {
    share: DominantShare,
    /// Whether the node exceeds its subtree quota of any requested flavor and resource.
    exceeds_quota: bool,
}

struct Tournament<'a> {
    state: &'a State,
    pending: &'a [NominatedEntry],
    /// By entry and node, for the nodes from the entry's queue up to the root.
    entry_shares: BTreeMap<(usize, NodeId), EntryShare>,
    /// By node: the entries that have won at its children.
    contenders: BTreeMap<NodeId, Vec<usize>>,
    /// The nodes above the entries, with their distance from the root and their parent.
    path: BTreeMap<NodeId, (usize, Option<NodeId>)>,
}

impl<'a> Tournament<'a> {
    fn new(
        state: &'a State,
        view: &mut View<'_>,
        waiting: &'a [NominatedEntry],
        entries: &[usize],
    ) -> Self {
        let mut tournament = Self {
            state,
            pending: waiting,
            entry_shares: BTreeMap::new(),
            contenders: BTreeMap::new(),
            path: BTreeMap::new(),
        };
        for entry in entries {
            if let Some(nominee) = waiting.get(*entry) {
                tournament.add_entry(view, *entry, nominee);
            }
        }
        tournament
    }

    fn add_entry(&mut self, view: &mut View<'_>, entry: usize, nominee: &NominatedEntry) {
        let mark = view.mark();
        let requested: Vec<_> = entry_cells(view, nominee).collect();
        // Shares include the request of this entry, and of no other entry.
        for (_, cell, amount) in &requested {
            view.add(*cell, *amount);
        }
        let up = |id: &NodeId| view.tree.node(*id).parent;
        let way: Vec<NodeId> = std::iter::successors(Some(nominee.queue), up).collect();
        for (distance, id) in way.iter().rev().enumerate() {
            let is_over = |of: &FlavorResource| {
                let cell = view.tree.node(*id).cell(*of);
                cell.is_some_and(|cell| view.usage(cell) > view.tree.cell(cell).subtree)
            };
            let mut requested = requested
                .iter()
                .filter(|(_, _, amount)| *amount > Amount::ZERO);
            let share = EntryShare {
                share: DominantShare::for_node(view, *id),
                exceeds_quota: requested.any(|(of, _, _)| is_over(of)),
            };
            self.entry_shares.insert((entry, *id), share);
            self.path.insert(*id, (distance, up(id)));
        }
        self.contenders
            .entry(nominee.queue)
            .or_default()
            .push(entry);
        view.roll_back(mark);
    }

    /// Returns the winner at the root: from the leaves up, the best entry of each node competes at its parent.
    fn winner(mut self, root: NodeId, fallback: usize) -> usize {
        let mut nodes: Vec<(usize, NodeId, Option<NodeId>)> = self
            .path
            .iter()
            .map(|(id, (distance, parent))| (*distance, *id, *parent))
            .collect();
        // The deepest first: all contenders of a node are known before its winner moves up.
        nodes.sort_unstable_by_key(|(distance, id, _)| (Reverse(*distance), *id));
        let mut below: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for (_, id, parent) in nodes {
            let came = self.contenders.remove(&id).unwrap_or_default();
            let best = came
                .into_iter()
                .reduce(|a, b| if self.is_better(id, b, a) { b } else { a });
            let Some(best) = best else {
                continue;
            };
            below.insert(id, id);
            match parent {
                Some(parent) => self.contenders.entry(parent).or_default().push(best),
                None if id == root => return best,
                None => {}
            }
        }
        fallback
    }

    /// Returns whether `a` beats `b` at a cohort. Compared are the shares of the children that contain the entries.
    fn is_better(&self, cohort: NodeId, a: usize, b: usize) -> bool {
        self.compare(cohort, a, b) == Ordering::Less
    }

    fn compare(&self, cohort: NodeId, a: usize, b: usize) -> Ordering {
        let share = |entry| self.entry_shares.get(&(entry, self.child(cohort, entry)?));
        let by_share = match (share(a), share(b)) {
            // Kueue gate `FairSharingPrioritizeNonBorrowing`: an entry within quota comes first.
            (Some(a), Some(b)) => a
                .exceeds_quota
                .cmp(&b.exceeds_quota)
                .then_with(|| a.share.cmp(&b.share)),
            _ => Ordering::Equal,
        };
        let key = |entry: usize| {
            let nominee = self.pending.get(entry)?;
            let record = self.state.workloads.get(nominee.workload)?;
            let name = self.state.tree.node(nominee.queue).name();
            Some((Reverse(record.priority), record.order_time, name))
        };
        by_share.then_with(|| key(a).cmp(&key(b)))
    }

    /// Returns the child of a cohort that contains an entry.
    fn child(&self, cohort: NodeId, entry: usize) -> Option<NodeId> {
        let mut at = self.pending.get(entry)?.queue;
        while let Some((_, Some(parent))) = self.path.get(&at) {
            if *parent == cohort {
                return Some(at);
            }
            at = *parent;
        }
        None
    }
}
