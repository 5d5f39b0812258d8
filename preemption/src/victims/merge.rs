//! Several sorted lists read as one, as far as somebody reads.

use crate::running::Key;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, btree_set};

/// Lists of candidates in candidate order, merged as they are asked for.
pub(super) struct Merge<'a> {
    lists: Vec<btree_set::Iter<'a, Key>>,
    heads: BinaryHeap<Reverse<(&'a Key, usize)>>,
}

impl<'a> Merge<'a> {
    /// Of these lists. Costs their number.
    pub(super) fn of(lists: Vec<btree_set::Iter<'a, Key>>) -> Self {
        let mut lists = lists;
        let heads: Vec<_> = lists
            .iter_mut()
            .enumerate()
            .filter_map(|(at, list)| list.next().map(|key| Reverse((key, at))))
            .collect();
        Self {
            lists,
            heads: heads.into(),
        }
    }

    /// The next candidate and the list it is from. The list goes on only if [`Self::go_on`] is called.
    pub(super) fn next(&mut self) -> Option<(&'a Key, usize)> {
        self.heads.pop().map(|Reverse(head)| head)
    }

    /// Brings the next candidate of a list in.
    pub(super) fn go_on(&mut self, list: usize) {
        if let Some(key) = self.lists.get_mut(list).and_then(Iterator::next) {
            self.heads.push(Reverse((key, list)));
        }
    }
}
