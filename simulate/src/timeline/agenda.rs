//! The times at which something is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times of jobs, the earliest first; those of one time in the order of the ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<(i64, usize, usize)>>,
}

impl Agenda {
    /// Adds a time of a job. `rank` orders jobs of the same time.
    pub(super) fn push(&mut self, at_s: i64, rank: usize, job: usize) {
        self.entries.push(Reverse((at_s, rank, job)));
    }

    /// Returns the earliest time.
    pub(super) fn next_s(&self) -> Option<i64> {
        self.entries.peek().map(|Reverse((at_s, ..))| *at_s)
    }

    /// Removes the next job that is due at `now_s` or earlier.
    pub(super) fn pop_due(&mut self, now_s: i64) -> Option<usize> {
        let Reverse((at_s, _, job)) = self.entries.peek().copied()?;
        if at_s > now_s {
            return None;
        }
        self.entries.pop();
        Some(job)
    }
}
