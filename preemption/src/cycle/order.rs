//! In which order the entries of a cycle are decided.

use super::nominate::Nominee;
use crate::amount::Amount;
use crate::names::{FlavorResource, NodeId};
use crate::policy::Algorithm;
use crate::quota::{Usage, View};
use crate::share::Share;
use crate::spec::Options;
use crate::state::State;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

pub(super) fn is_fair(options: &Options) -> bool {
    matches!(options.algorithm, Algorithm::FairSharing(_))
}

/// First those who take over held quota, then those for whom it is held, then all others: what is held
/// must not be kept from its preemptor by somebody who cannot have it.
fn turn(state: &State, nominee: &Nominee) -> u8 {
    match nominee {
        it if !it.displaced.is_empty() => 0,
        it if state.holds.has(it.workload) => 1,
        _ => 2,
    }
}

/// The classical order: who borrows less far, then higher priority, then earlier in queue order. Ties
/// go to the queue that comes first by name.
pub(super) fn sort(state: &State, nominees: &mut [Nominee]) {
    if !is_fair(&state.options) {
        nominees.sort_by_cached_key(|nominee| {
            let record = state.records.get(nominee.workload);
            let is_ignored = state.options.former.ignores_priority_in_cycle;
            let priority = record.filter(|_| !is_ignored).map_or(0, |it| it.priority);
            let time = record.map_or(0, |it| it.order_time);
            let level = nominee.assignment.borrowing_level;
            (turn(state, nominee), level, Reverse(priority), time)
        });
    }
}

/// With fair sharing, the position of the next entry; `None` when all are decided.
///
/// Each pick is a tournament in the tree of the first queue by name, on the quota as
/// it is by then.
pub(super) fn next(state: &State, view: &mut View<'_>, waiting: &[Nominee]) -> Option<usize> {
    let turns = waiting.iter().map(|it| turn(state, it));
    let turns: Vec<u8> = turns.collect();
    let turn = turns.iter().min()?;
    let its_turn = |at: &usize| turns.get(*at) == Some(turn);
    let name = |at: &usize| waiting.get(*at).map_or("", |it| state.node_name(it.queue));
    let of_turn = (0..waiting.len()).filter(its_turn);
    let first = of_turn.clone().min_by_key(|at| name(at))?;
    let root_of = |at: usize| waiting.get(at).map(|it| view.tree.node(it.queue).root);
    let root = root_of(first)?;
    let entries: Vec<usize> = of_turn.filter(|at| root_of(*at) == Some(root)).collect();
    Some(Tournament::of(state, view, waiting, &entries).winner(root, first))
}

/// An entry at one node on its way up.
struct Standing {
    share: Share,
    /// Whether the node is over its quota for anything that the entry asks for.
    is_over: bool,
}

struct Tournament<'a> {
    state: &'a State,
    waiting: &'a [Nominee],
    /// By entry, the nodes from its queue to below the root.
    standings: BTreeMap<(usize, NodeId), Standing>,
    /// The entries that came as far as a node.
    at: BTreeMap<NodeId, Vec<usize>>,
    /// The nodes on the way, by their distance from the root.
    path: BTreeMap<NodeId, (usize, Option<NodeId>)>,
}

impl<'a> Tournament<'a> {
    fn of(
        state: &'a State,
        view: &mut View<'_>,
        waiting: &'a [Nominee],
        entries: &[usize],
    ) -> Self {
        let mut tournament = Self {
            state,
            waiting,
            standings: BTreeMap::new(),
            at: BTreeMap::new(),
            path: BTreeMap::new(),
        };
        for entry in entries {
            if let Some(nominee) = waiting.get(*entry) {
                tournament.enter(view, *entry, nominee);
            }
        }
        tournament
    }

    fn enter(&mut self, view: &mut View<'_>, entry: usize, nominee: &Nominee) {
        let mark = view.mark();
        let asked: Vec<_> = super::cells(view, nominee).collect();
        for (_, cell, amount) in &asked {
            view.add(*cell, *amount);
        }
        let up = |id: &NodeId| view.tree.node(*id).parent;
        let way: Vec<NodeId> = std::iter::successors(Some(nominee.queue), up).collect();
        for (distance, id) in way.iter().rev().enumerate() {
            let is_over = |of: &FlavorResource| {
                let cell = view.tree.node(*id).cell(*of);
                cell.is_some_and(|cell| view.usage(cell) > view.tree.cell(cell).subtree)
            };
            let mut asked = asked.iter().filter(|(_, _, amount)| *amount > Amount::ZERO);
            let standing = Standing {
                share: Share::of(view, *id),
                is_over: asked.any(|(of, _, _)| is_over(of)),
            };
            self.standings.insert((entry, *id), standing);
            self.path.insert(*id, (distance, up(id)));
        }
        self.at.entry(nominee.queue).or_default().push(entry);
        view.roll_back(mark);
    }

    /// From the leaves up, the best of each node comes to its parent.
    fn winner(mut self, root: NodeId, fallback: usize) -> usize {
        let mut nodes: Vec<(usize, NodeId, Option<NodeId>)> = self
            .path
            .iter()
            .map(|(id, (distance, parent))| (*distance, *id, *parent))
            .collect();
        nodes.sort_unstable_by_key(|(distance, id, _)| (Reverse(*distance), *id));
        let mut below: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for (_, id, parent) in nodes {
            let came = self.at.remove(&id).unwrap_or_default();
            let best = came
                .into_iter()
                .reduce(|a, b| if self.is_better(id, b, a) { b } else { a });
            let Some(best) = best else {
                continue;
            };
            below.insert(id, id);
            match parent {
                Some(parent) => self.at.entry(parent).or_default().push(best),
                None if id == root => return best,
                None => {}
            }
        }
        fallback
    }

    /// Whether `a` beats `b` at a cohort, each judged by the child through which it came.
    fn is_better(&self, cohort: NodeId, a: usize, b: usize) -> bool {
        self.compare(cohort, a, b) == Ordering::Less
    }

    fn compare(&self, cohort: NodeId, a: usize, b: usize) -> Ordering {
        let standing = |entry| self.standings.get(&(entry, self.child(cohort, entry)?));
        let by_share = match (standing(a), standing(b)) {
            (Some(a), Some(b)) => a
                .is_over
                .cmp(&b.is_over)
                .then_with(|| a.share.cmp(&b.share)),
            _ => Ordering::Equal,
        };
        let key = |entry: usize| {
            let nominee = self.waiting.get(entry)?;
            let record = self.state.records.get(nominee.workload)?;
            let name = self.state.node_name(nominee.queue);
            Some((Reverse(record.priority), record.order_time, name))
        };
        by_share.then_with(|| key(a).cmp(&key(b)))
    }

    /// The child of a cohort on an entry's way.
    fn child(&self, cohort: NodeId, entry: usize) -> Option<NodeId> {
        let mut at = self.waiting.get(entry)?.queue;
        while let Some((_, Some(parent))) = self.path.get(&at) {
            if *parent == cohort {
                return Some(at);
            }
            at = *parent;
        }
        None
    }
}
