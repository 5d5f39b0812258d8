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

/// What can be drawn of one resource.
struct Deck<'a> {
    /// Ascending.
    amounts: Vec<i64>,
    /// The queues that may preempt, and have quota of it.
    hunters: Vec<&'a Contender>,
    /// All queues that have quota of it.
    all: Vec<&'a Contender>,
}

impl<'a> Deck<'a> {
    /// `None` if there is nothing to ask for.
    fn of(field: &'a Field, resource: ResourceId) -> Option<Self> {
        let amounts = amounts::of(field, resource);
        let all = field.contenders.iter();
        let can_ask = |it: &&Contender| !up_to(&amounts, it.most_of(resource)).is_empty();
        let all: Vec<_> = all.filter(can_ask).collect();
        let hunters = all.iter().copied().filter(|it| may_hunt(it)).collect();
        (!all.is_empty()).then_some(Self {
            amounts,
            hunters,
            all,
        })
    }
}

/// The amounts that are no more than this.
fn up_to(amounts: &[i64], most: i64) -> &[i64] {
    let count = amounts.partition_point(|it| *it <= most);
    amounts.get(..count).unwrap_or_default()
}

fn may_hunt(contender: &Contender) -> bool {
    contender.preemption.within_cluster_queue != WithinClusterQueue::Never
        || contender.preemption.reclaim_within_cohort != ReclaimWithinCohort::Never
}

/// What can be drawn in a tree.
pub(super) struct Cards<'a> {
    field: &'a Field,
    decks: BTreeMap<ResourceId, Deck<'a>>,
    pub(super) priorities: Vec<i32>,
}

impl<'a> Cards<'a> {
    /// `None` if nobody can be preempted in the tree.
    pub(super) fn of(field: &'a Field, priorities: &BTreeSet<i32>) -> Option<Self> {
        if !field.contenders.iter().any(may_hunt) {
            return None;
        }
        let all = field.contenders.iter();
        let resources: BTreeSet<_> = all.flat_map(|it| it.most.keys().copied()).collect();
        let decks = resources
            .into_iter()
            .filter_map(|it| Some((it, Deck::of(field, it)?)));
        Some(Self {
            field,
            decks: decks.collect(),
            priorities: few(field, priorities),
        })
    }

    /// The amounts of a resource that are tried, ascending.
    pub(super) fn amounts(&self, resource: ResourceId) -> &[i64] {
        self.decks.get(&resource).map_or(&[], |it| &it.amounts)
    }

    /// So many guests.
    pub(super) fn draw(&self, dice: &mut Dice, size: usize) -> Vec<Guest> {
        let is_wide = dice.below(4) == 0;
        let deck = self.decks.iter().nth(dice.below(self.decks.len()));
        let mut guests = Vec::new();
        while let Some((resource, deck)) = deck
            && guests.len() < size
        {
            let mut guest = self.guest(dice, *resource, deck);
            if is_wide {
                self.widen(dice, &mut guest);
            }
            guests.push(guest);
        }
        guests
    }

    fn guest(&self, dice: &mut Dice, resource: ResourceId, deck: &Deck<'_>) -> Guest {
        let is_hunter = dice.below(2) == 0 && !deck.hunters.is_empty();
        let from = if is_hunter { &deck.hunters } else { &deck.all };
        let queue = dice.pick(from);
        let mut guest = Guest {
            queue: queue.map_or_else(String::new, |it| it.name.clone()),
            priority: dice.pick(&self.priorities).copied().unwrap_or_default(),
            requests: BTreeMap::new(),
            is_late: dice.below(2) == 0,
        };
        self.ask(dice, &mut guest, resource);
        guest
    }

    /// Lets a guest ask for no more than its queue could ever have, or for nothing.
    fn ask(&self, dice: &mut Dice, guest: &mut Guest, resource: ResourceId) {
        let most = self.most(&guest.queue, resource);
        match dice.pick(up_to(self.amounts(resource), most)) {
            Some(amount) => guest.requests.insert(resource, *amount),
            None => guest.requests.remove(&resource),
        };
    }

    fn most(&self, queue: &str, resource: ResourceId) -> i64 {
        let mut all = self.field.contenders.iter();
        let queue = all.find(|it| it.name == queue);
        queue.map_or(0, |it| it.most_of(resource))
    }

    /// Lets a guest ask for another resource, too, or for one less.
    fn widen(&self, dice: &mut Dice, guest: &mut Guest) {
        let Some(resource) = self.decks.keys().nth(dice.below(self.decks.len())) else {
            return;
        };
        if guest.requests.len() > 1 && dice.below(2) == 0 {
            guest.requests.remove(resource);
        } else {
            self.ask(dice, guest, *resource);
        }
    }

    /// Lets a guest come to another queue that has what it asks for.
    fn move_on(&self, dice: &mut Dice, guest: &mut Guest) {
        let asked: Vec<_> = guest.requests.keys().copied().collect();
        let deck = asked.first().and_then(|it| self.decks.get(it));
        let Some(queue) = deck.and_then(|it| dice.pick(&it.all)) else {
            return;
        };
        guest.queue.clone_from(&queue.name);
        for resource in asked {
            let most = queue.most_of(resource);
            if guest.requests.get(&resource).is_some_and(|it| *it > most) {
                self.ask(dice, guest, resource);
            }
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
                3 | 4 => self.move_on(dice, guest),
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
