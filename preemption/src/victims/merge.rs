//! Several sorted sets read as one, as far as somebody reads.

use crate::running::Key;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Bound;

/// Sets of candidates in candidate order, merged as they are asked for.
pub(super) struct Merge<'a> {
    heads: BinaryHeap<Reverse<Head<'a>>>,
}

/// The next candidate of a set.
struct Head<'a> {
    /// What decides nearly always, beside each other in memory.
    priority: i32,
    newest: Reverse<i64>,
    key: &'a Key,
    /// The position of its set.
    at: usize,
    set: &'a BTreeSet<Key>,
}

impl<'a> Head<'a> {
    fn of(key: &'a Key, at: usize, set: &'a BTreeSet<Key>) -> Self {
        Self {
            priority: key.priority,
            newest: key.newest,
            key,
            at,
            set,
        }
    }
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.priority
            .cmp(&other.priority)
            .then_with(|| self.newest.cmp(&other.newest))
            .then_with(|| self.key.cmp(other.key))
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

/// A candidate, and the set that it is from.
pub(super) struct Next<'a> {
    pub(super) key: &'a Key,
    /// The position of its set.
    pub(super) at: usize,
    set: &'a BTreeSet<Key>,
}

impl<'a> Merge<'a> {
    /// Of these sets. Costs their number.
    pub(super) fn of(sets: impl Iterator<Item = &'a BTreeSet<Key>>) -> Self {
        let sets = sets.enumerate();
        let heads: Vec<_> = sets
            .filter_map(|(at, set)| Some(Reverse(Head::of(set.first()?, at, set))))
            .collect();
        Self {
            heads: heads.into(),
        }
    }

    /// The next candidate. Its set goes on only if [`Self::go_on`] is called.
    pub(super) fn next(&mut self) -> Option<Next<'a>> {
        let Reverse(Head { key, at, set, .. }) = self.heads.pop()?;
        Some(Next { key, at, set })
    }

    /// Brings in the candidate after one.
    pub(super) fn go_on(&mut self, after: &Next<'a>) {
        let rest = (Bound::Excluded(after.key), Bound::Unbounded);
        if let Some(key) = after.set.range::<Key, _>(rest).next() {
            self.heads.push(Reverse(Head::of(key, after.at, after.set)));
        }
    }
}
