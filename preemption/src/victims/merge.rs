//! Several lists in candidate order read as one, as far as somebody reads.

use super::Workloads;
use crate::ranked::{Rank, Ranked, Ranks};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Lists in candidate order, merged as they are asked for.
pub(super) struct Merge<'a> {
    heads: BinaryHeap<Reverse<Head<'a>>>,
    /// The position of each list, and what is left of it.
    lists: Vec<(usize, Ranks<'a>)>,
    workloads: &'a dyn Workloads,
}

/// The next candidate of a list.
struct Head<'a> {
    rank: Rank,
    /// In the lists of the merge.
    list: usize,
    workloads: &'a dyn Workloads,
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank, self.workloads)
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}

/// A candidate, and the list that it is from.
pub(super) struct Next {
    pub(super) rank: Rank,
    /// The position of its list.
    pub(super) at: usize,
    list: usize,
}

impl<'a> Merge<'a> {
    /// Of these lists with their positions. Costs their number.
    pub(super) fn of(
        workloads: &'a dyn Workloads,
        lists: impl Iterator<Item = (usize, &'a Ranked)>,
    ) -> Self {
        let open = lists.filter(|(_, list)| !list.is_empty());
        let mut lists: Vec<(usize, Ranks<'a>)> = open.map(|(at, it)| (at, it.iter())).collect();
        let heads = lists.iter_mut().enumerate();
        let heads: Vec<_> = heads
            .filter_map(|(list, (_, ranks))| {
                let rank = ranks.next()?;
                Some(Reverse(Head {
                    rank,
                    list,
                    workloads,
                }))
            })
            .collect();
        Self {
            heads: heads.into(),
            lists,
            workloads,
        }
    }

    /// The next candidate. Its list goes on only if [`Self::go_on`] is called.
    pub(super) fn next(&mut self) -> Option<Next> {
        let Reverse(Head { rank, list, .. }) = self.heads.pop()?;
        let at = self.lists.get(list).map_or(usize::MAX, |(at, _)| *at);
        Some(Next { rank, at, list })
    }

    /// Brings in the candidate after one.
    pub(super) fn go_on(&mut self, after: &Next) {
        let list = after.list;
        if let Some((_, ranks)) = self.lists.get_mut(list)
            && let Some(rank) = ranks.next()
        {
            self.heads.push(Reverse(Head {
                rank,
                list,
                workloads: self.workloads,
            }));
        }
    }
}
