//! Admitted workloads in candidate order.
//!
//! A sorted list in chunks, so that a change moves few elements and iteration is sequential: 24 bytes
//! per workload. The uid, which decides among workloads of the same priority and time, is looked up only where
//! its stored prefix is the same.

use crate::ids::WorkloadId;
use std::cmp::{Ordering, Reverse};
use std::iter::{Copied, Flatten};
use std::slice;

/// The sort key of the candidate order: lowest preemption priority first, then the newest, then by uid (Kueue
/// `CandidatesOrdering`). Workloads that are being evicted come before all others and are in a separate list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CandidateKey {
    /// The preemption priority.
    pub(crate) priority: i32,
    pub(crate) id: WorkloadId,
    /// When the quota was reserved, in seconds.
    pub(crate) newest: Reverse<i64>,
    /// The first bytes of the uid as a big-endian number; they nearly always decide.
    pub(crate) uid: u64,
}

/// Looks up the uids of workloads.
pub(crate) trait UidLookup {
    /// Compared as bytes.
    fn uid(&self, id: WorkloadId) -> &str;
}

impl CandidateKey {
    pub(crate) fn new(priority: i32, id: WorkloadId, reserved_at_s: i64, uid: &str) -> Self {
        let mut first = [0; 8];
        // A big-endian number, padded with zeros, has the same order as the bytes.
        for (to, from) in first.iter_mut().zip(uid.bytes()) {
            *to = from;
        }
        Self {
            priority,
            id,
            newest: Reverse(reserved_at_s),
            uid: u64::from_be_bytes(first),
        }
    }

    pub(crate) fn cmp(&self, other: &Self, uids: &(impl UidLookup + ?Sized)) -> Ordering {
        let numbers = |it: &Self| (it.priority, it.newest, it.uid);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            let by_uid = uids.uid(self.id).cmp(uids.uid(other.id));
            // Uids may be equal in invalid input; the list needs a total order.
            by_uid.then_with(|| self.id.cmp(&other.id))
        })
    }
}

/// The most entries of a chunk: three kilobytes.
const CHUNK_MAX: usize = 128;

/// The initial capacity of the first chunk.
const CHUNK_MIN: usize = 8;

/// Workloads in candidate order. No chunk is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct CandidateList {
    chunks: Vec<Vec<CandidateKey>>,
}

/// Iterates from the front.
pub(crate) type CandidateIter<'a> = Copied<Flatten<slice::Iter<'a, Vec<CandidateKey>>>>;

impl CandidateList {
    pub(crate) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Costs a pass over the chunks, not over their entries.
    pub(crate) fn len(&self) -> usize {
        let lengths = self.chunks.iter().map(Vec::len);
        lengths.fold(0, usize::saturating_add)
    }

    pub(crate) fn iter(&self) -> CandidateIter<'_> {
        self.chunks.iter().flatten().copied()
    }

    /// Costs the logarithm of the number of entries, plus the length of a chunk.
    pub(crate) fn insert(&mut self, rank: CandidateKey, uids: &impl UidLookup) {
        let at = self.chunk_of(&rank, uids);
        let Some(piece) = self.chunks.get_mut(at) else {
            let mut piece = Vec::with_capacity(CHUNK_MIN);
            piece.push(rank);
            self.chunks.push(piece);
            return;
        };
        let Err(place) = piece.binary_search_by(|it| it.cmp(&rank, uids)) else {
            return;
        };
        if piece.len() < CHUNK_MAX {
            piece.insert(place, rank);
            return;
        }
        let half = CHUNK_MAX / 2;
        let mut rest = Vec::with_capacity(CHUNK_MAX);
        rest.extend(piece.drain(half..));
        match place.checked_sub(half) {
            Some(place) => rest.insert(place, rank),
            None => piece.insert(place, rank),
        }
        self.chunks.insert(at.saturating_add(1), rest);
    }

    /// Costs as much as an insertion.
    pub(crate) fn remove(&mut self, rank: &CandidateKey, uids: &impl UidLookup) {
        let at = self.chunk_of(rank, uids);
        let Some(piece) = self.chunks.get_mut(at) else {
            return;
        };
        let Ok(place) = piece.binary_search_by(|it| it.cmp(rank, uids)) else {
            return;
        };
        piece.remove(place);
        // Well below half a chunk, so that a chunk is not merged right after its split.
        if piece.len() < CHUNK_MAX / 4 {
            self.merge_chunks(at);
        }
    }

    /// Merges a short chunk with the next one if both are short; removes an empty one.
    fn merge_chunks(&mut self, at: usize) {
        let length = |at: usize| self.chunks.get(at).map_or(CHUNK_MAX, Vec::len);
        let after = at.saturating_add(1);
        let is_empty = length(at) == 0;
        if !is_empty && length(at).saturating_add(length(after)) > CHUNK_MAX / 2 {
            return;
        }
        let short = self.chunks.remove(at);
        if let Some(next) = self.chunks.get_mut(at).filter(|_| !is_empty) {
            next.splice(..0, short);
        }
    }

    /// Returns the chunk of a key: the last one that does not start after it.
    fn chunk_of(&self, rank: &CandidateKey, uids: &impl UidLookup) -> usize {
        let begins_before = |piece: &Vec<CandidateKey>| {
            let first = piece.first();
            first.is_some_and(|first| first.cmp(rank, uids) != Ordering::Greater)
        };
        self.chunks.partition_point(begins_before).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The uid of a workload ends with the reversed digits of its id, so that ids and uids have different orders.
    struct ReversedUids(Vec<String>);

    impl UidLookup for ReversedUids {
        fn uid(&self, id: WorkloadId) -> &str {
            &self.0[id.index()]
        }
    }

    /// Few priorities and times, so that uids decide; insertions and removals, so that chunks split and merge.
    #[test]
    fn candidate_list_matches_sorted_set() {
        let digits = |at: usize| {
            let digits: String = format!("{at:04}").chars().rev().collect();
            // Every other uid starts with the same bytes, so that the stored prefix does not decide.
            let start = if at.is_multiple_of(2) {
                "the same "
            } else {
                ""
            };
            format!("{start}{digits}")
        };
        let uids = ReversedUids((0..3_000).map(digits).collect());
        let rank = |at: usize| {
            let priority = i32::try_from(at % 3).unwrap();
            let reserved_at_s = i64::try_from(at % 7).unwrap();
            CandidateKey::new(priority, WorkloadId::of(at), reserved_at_s, &digits(at))
        };
        let mut ranked = CandidateList::new();
        let mut plain = BTreeSet::new();
        let mut dice: usize = 1;
        for round in 0..40_000_usize {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (dice >> 33) % 3_000;
            let key = |rank: &CandidateKey| (rank.priority, rank.newest, digits(rank.id.index()));
            if round / 10_000 % 2 == usize::from((dice >> 40).is_multiple_of(8)) {
                ranked.insert(rank(at), &uids);
                plain.insert(key(&rank(at)));
            } else {
                ranked.remove(&rank(at), &uids);
                plain.remove(&key(&rank(at)));
            }
            if round % 500 == 0 {
                assert!(ranked.iter().map(|it| key(&it)).eq(plain.iter().cloned()));
                assert_eq!(ranked.is_empty(), plain.is_empty());
                assert_eq!(ranked.len(), plain.len());
                assert!(ranked.chunks.iter().all(|it| !it.is_empty()));
            }
        }
        assert!(ranked.chunks.len() > 2 || plain.len() < CHUNK_MAX);
        for at in 0..3_000 {
            ranked.remove(&rank(at), &uids);
        }
        assert!(ranked.is_empty());
    }
}
