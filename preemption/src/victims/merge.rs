//! A lazy merge of several lists in candidate order.

use crate::admitted::AdmittedLookup;
use crate::candidate_list::{CandidateIter, CandidateKey, CandidateList};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Lists in candidate order, merged lazily.
pub(super) struct Merge<'a> {
    heads: BinaryHeap<Reverse<ListHead<'a>>>,
    /// The position of each list, and its unread entries.
    lists: Vec<(usize, CandidateIter<'a>)>,
    workloads: &'a dyn AdmittedLookup,
}

/// The next candidate of a list.
struct ListHead<'a> {
    key: CandidateKey,
    /// The index in `Merge::lists`.
    list: usize,
    workloads: &'a dyn AdmittedLookup,
}

impl Ord for ListHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key, self.workloads)
    }
}

impl PartialOrd for ListHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ListHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ListHead<'_> {}

/// A candidate and its list.
pub(super) struct MergedCandidate {
    pub(super) key: CandidateKey,
    /// The position of its list, as given to [`Merge::new`].
    pub(super) list_position: usize,
    list: usize,
}

impl<'a> Merge<'a> {
    /// Creates a merge of these lists with their positions. Costs the number of lists.
    pub(super) fn new(
        workloads: &'a dyn AdmittedLookup,
        lists: impl Iterator<Item = (usize, &'a CandidateList)>,
    ) -> Self {
        let open = lists.filter(|(_, list)| !list.is_empty());
        let mut lists: Vec<(usize, CandidateIter<'a>)> =
            open.map(|(at, it)| (at, it.iter())).collect();
        let heads = lists.iter_mut().enumerate();
        // Collected first: a heap is built from a vector in linear time.
        let heads: Vec<_> = heads
            .filter_map(|(list, (_, ranks))| {
                let rank = ranks.next()?;
                Some(Reverse(ListHead {
                    key: rank,
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

    /// Returns the next candidate. The rest of its list is skipped unless [`Self::advance_past`] is called.
    pub(super) fn next(&mut self) -> Option<MergedCandidate> {
        let Reverse(ListHead {
            key: rank, list, ..
        }) = self.heads.pop()?;
        let at = self.lists.get(list).map_or(usize::MAX, |(at, _)| *at);
        Some(MergedCandidate {
            key: rank,
            list_position: at,
            list,
        })
    }

    /// Continues the list of a candidate behind that candidate.
    pub(super) fn advance_past(&mut self, after: &MergedCandidate) {
        let list = after.list;
        if let Some((_, ranks)) = self.lists.get_mut(list)
            && let Some(rank) = ranks.next()
        {
            self.heads.push(Reverse(ListHead {
                key: rank,
                list,
                workloads: self.workloads,
            }));
        }
    }
}
