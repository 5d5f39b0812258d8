//! Sets of workloads, drawn.

use super::amounts;
use crate::field::{Contender, Field};
use crate::run::Guest;
use lockkeeper_preemption::{
    BorrowWithinCohort, ReclaimWithinCohort, ResourceId, WithinClusterQueue,
};
use std::collections::{BTreeMap, BTreeSet};

/// As many priorities as are told apart.
const PRIORITIES_MAX: usize = 4;

/// Numbers that are the same each time.
#[derive(Debug)]
pub(super) struct Dice {
    state: u64,
}

impl Default for Dice {
    fn default() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }
}

impl Dice {
    /// A number below `count`; 0 if there is none. Source: xorshift64*, Vigna 2016.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(number.checked_rem(count).unwrap_or(0)).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// What can be drawn in a tree.
pub(super) struct Cards<'a> {
    /// The queues that may preempt.
    hunters: Vec<&'a Contender>,
    all: Vec<&'a Contender>,
    pub(super) priorities: Vec<i32>,
    pub(super) amounts: BTreeMap<ResourceId, Vec<i64>>,
}

impl<'a> Cards<'a> {
    /// `None` if nobody can be preempted in the tree.
    pub(super) fn of(field: &'a Field, priorities: &BTreeSet<i32>) -> Option<Self> {
        let may_hunt = |it: &&Contender| {
            it.preemption.within_cluster_queue != WithinClusterQueue::Never
                || it.preemption.reclaim_within_cohort != ReclaimWithinCohort::Never
        };
        let hunters: Vec<_> = field.contenders.iter().filter(may_hunt).collect();
        if hunters.is_empty() {
            return None;
        }
        let resources: BTreeSet<_> = field
            .contenders
            .iter()
            .flat_map(|it| &it.resources)
            .collect();
        let amounts = resources
            .into_iter()
            .map(|it| (*it, amounts::of(field, *it)))
            .filter(|(_, amounts)| !amounts.is_empty());
        Some(Self {
            hunters,
            all: field.contenders.iter().collect(),
            priorities: few(field, priorities),
            amounts: amounts.collect(),
        })
    }

    /// So many guests.
    pub(super) fn draw(&self, dice: &mut Dice, size: usize) -> Vec<Guest> {
        let is_wide = dice.below(4) == 0;
        let resource = self.amounts.keys().nth(dice.below(self.amounts.len()));
        let mut guests = Vec::new();
        while let Some(resource) = resource
            && guests.len() < size
        {
            let mut guest = self.guest(dice, *resource);
            if is_wide {
                self.widen(dice, &mut guest);
            }
            guests.push(guest);
        }
        guests
    }

    fn guest(&self, dice: &mut Dice, resource: ResourceId) -> Guest {
        let from = if dice.below(2) == 0 {
            &self.hunters
        } else {
            &self.all
        };
        let queue = dice
            .pick(from)
            .map_or_else(String::new, |it| it.name.clone());
        let mut guest = Guest {
            queue,
            priority: dice.pick(&self.priorities).copied().unwrap_or_default(),
            requests: BTreeMap::new(),
            is_late: dice.below(2) == 0,
        };
        self.ask(dice, &mut guest, resource);
        guest
    }

    fn ask(&self, dice: &mut Dice, guest: &mut Guest, resource: ResourceId) {
        let amounts = self.amounts.get(&resource);
        if let Some(amount) = amounts.and_then(|it| dice.pick(it)) {
            guest.requests.insert(resource, *amount);
        }
    }

    /// Lets a guest ask for another resource, too, or for one less.
    fn widen(&self, dice: &mut Dice, guest: &mut Guest) {
        let Some(resource) = self.amounts.keys().nth(dice.below(self.amounts.len())) else {
            return;
        };
        if guest.requests.len() > 1 && dice.below(2) == 0 {
            guest.requests.remove(resource);
        } else {
            self.ask(dice, guest, *resource);
        }
    }

    /// The same guests with one or two things changed.
    pub(super) fn change(&self, dice: &mut Dice, guests: &[Guest]) -> Vec<Guest> {
        let mut guests = guests.to_vec();
        for _ in 0..=dice.below(2) {
            let at = dice.below(guests.len());
            if dice.below(6) == 0 {
                let other = dice.below(guests.len());
                guests.swap(at, other);
                continue;
            }
            let Some(guest) = guests.get_mut(at) else {
                continue;
            };
            match dice.below(8) {
                0 => guest.is_late = !guest.is_late,
                1 | 2 => {
                    guest.priority = dice.pick(&self.priorities).copied().unwrap_or_default();
                }
                3 | 4 => {
                    if let Some(queue) = dice.pick(&self.all) {
                        guest.queue.clone_from(&queue.name);
                    }
                }
                5 => self.widen(dice, guest),
                _ => {
                    let resources: Vec<_> = guest.requests.keys().copied().collect();
                    if let Some(resource) = dice.pick(&resources) {
                        self.ask(dice, guest, *resource);
                    }
                }
            }
        }
        guests
    }
}

/// A few priorities that are told apart by the policies: those of the classes, and if there are too few, some more;
/// always those around a threshold.
fn few(field: &Field, given: &BTreeSet<i32>) -> Vec<i32> {
    let thresholds =
        field
            .contenders
            .iter()
            .filter_map(|it| match it.preemption.borrow_within_cohort {
                BorrowWithinCohort::LowerPriority { threshold_max } => threshold_max,
                BorrowWithinCohort::Never => None,
            });
    let mut all: BTreeSet<i32> = given.clone();
    if all.len() < 2 {
        let around = thresholds.flat_map(|it| [it, it.saturating_add(1)]);
        all.extend(around);
    }
    let last = all.last().copied().unwrap_or_default();
    let more = (1..).map(|it| last.saturating_add(it));
    let missing = 3_usize.saturating_sub(all.len());
    if given.is_empty() {
        all.extend(more.take(missing));
    }
    // Of many, some from below, from above and between.
    let every = all.len().div_ceil(PRIORITIES_MAX).max(1);
    let highest = all.last().copied();
    let mut few: BTreeSet<i32> = all.into_iter().step_by(every).collect();
    few.extend(highest);
    few.into_iter().collect()
}
