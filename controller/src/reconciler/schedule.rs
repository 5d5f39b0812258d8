//! What is to be looked at, when, and what waits to be written.

use super::output::{Rank, Target};
use std::collections::{BTreeMap, BTreeSet};

/// Objects to look at now or later, and objects with something to write, the most urgent first.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    dirty: BTreeSet<Target>,
    timers: BTreeSet<(i64, Target)>,
    timer_of: BTreeMap<Target, i64>,
    ready: BTreeSet<(Rank, u64, Target)>,
    ready_as: BTreeMap<Target, (Rank, u64)>,
    arrivals: u64,
}

impl Schedule {
    /// Look at it now.
    pub(super) fn mark(&mut self, target: Target) {
        self.dirty.insert(target);
    }

    /// Look at it at this time, or at the time that was given before if that is sooner.
    pub(super) fn at(&mut self, at_ms: i64, target: Target) {
        if let Some(before) = self.timer_of.get(&target).copied() {
            if before <= at_ms {
                return;
            }
            self.timers.remove(&(before, target.clone()));
        }
        self.timer_of.insert(target.clone(), at_ms);
        self.timers.insert((at_ms, target));
    }

    /// Whose time has come is to be looked at.
    pub(super) fn fire(&mut self, now_ms: i64) {
        while let Some((at_ms, _)) = self.timers.first()
            && *at_ms <= now_ms
            && let Some((_, target)) = self.timers.pop_first()
        {
            self.timer_of.remove(&target);
            self.dirty.insert(target);
        }
    }

    pub(super) fn next_timer(&self) -> Option<i64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    pub(super) fn pop_dirty(&mut self) -> Option<Target> {
        self.dirty.pop_first()
    }

    /// It has something to write of this rank, or nothing. Who waits in a rank keeps the place.
    pub(super) fn rank(&mut self, target: Target, rank: Option<Rank>) {
        match (self.ready_as.get(&target).copied(), rank) {
            (Some((before, _)), Some(rank)) if before == rank => return,
            (Some((before, arrival)), _) => {
                self.ready.remove(&(before, arrival, target.clone()));
                self.ready_as.remove(&target);
            }
            (None, _) => {}
        }
        if let Some(rank) = rank {
            self.arrivals = self.arrivals.wrapping_add(1);
            self.ready_as.insert(target.clone(), (rank, self.arrivals));
            self.ready.insert((rank, self.arrivals, target));
        }
    }

    /// The rank of the most urgent one.
    pub(super) fn first_rank(&self) -> Option<Rank> {
        self.ready.first().map(|(rank, _, _)| *rank)
    }

    pub(super) fn pop_ready(&mut self) -> Option<Target> {
        let (_, _, target) = self.ready.pop_first()?;
        self.ready_as.remove(&target);
        Some(target)
    }

    /// Nothing is to be written any more.
    pub(super) fn clear_ready(&mut self) {
        self.ready.clear();
        self.ready_as.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::What;
    use super::{Schedule, Target};

    fn target(name: &str) -> Target {
        Target::Cohort(name.to_owned())
    }

    #[test]
    fn the_sooner_time_holds() {
        let mut schedule = Schedule::default();
        schedule.at(20, target("a"));
        schedule.at(10, target("a"));
        schedule.at(30, target("a"));
        assert_eq!(schedule.next_timer(), Some(10));
        schedule.fire(9);
        assert_eq!(schedule.pop_dirty(), None);
        schedule.fire(10);
        assert_eq!(schedule.pop_dirty(), Some(target("a")));
        assert_eq!(schedule.next_timer(), None);
    }

    #[test]
    fn the_most_urgent_goes_first_then_who_came_first() {
        let mut schedule = Schedule::default();
        let (late, soon) = (What::Notice.rank(), What::Release.rank());
        schedule.rank(target("a"), Some(late));
        schedule.rank(target("c"), Some(soon));
        schedule.rank(target("b"), Some(soon));
        schedule.rank(target("a"), Some(late));
        schedule.rank(target("d"), Some(late));
        schedule.rank(target("a"), Some(late));
        assert_eq!(schedule.first_rank(), Some(soon));
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop_ready()).collect();
        assert_eq!(order, ["c", "b", "a", "d"].map(target));
        schedule.rank(target("a"), Some(late));
        schedule.rank(target("a"), None);
        assert_eq!(schedule.pop_ready(), None);
    }
}
