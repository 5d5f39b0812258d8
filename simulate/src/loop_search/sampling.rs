//! Sets of workloads, drawn.

use super::amounts;
use crate::queue_tree::{QueueProfile, SimulatedCluster};
use crate::run::SimWorkload;
use lockkeeper_preemption::{
    BorrowWithinCohort, ReclaimWithinCohort, ResourceId, WithinClusterQueue,
};
use std::collections::{BTreeMap, BTreeSet};

/// As many priorities as are told apart.
const PRIORITIES_MAX: usize = 4;

/// Numbers that are the same each time.
#[derive(Debug)]
pub(super) struct Rng {
    state: u64,
}

impl Default for Rng {
    fn default() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }
}

impl Rng {
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
struct ResourceChoices<'a> {
    /// Ascending.
    amounts: Vec<i64>,
    /// The queues that may preempt, and have quota of it.
    preempting_queues: Vec<&'a QueueProfile>,
    /// All queues that have quota of it.
    queues: Vec<&'a QueueProfile>,
}

impl<'a> ResourceChoices<'a> {
    /// `None` if there is nothing to ask for.
    fn new(field: &'a SimulatedCluster, resource: ResourceId) -> Option<Self> {
        let amounts = amounts::candidate_amounts(field, resource);
        let all = field.queues.iter();
        let can_ask = |it: &&QueueProfile| !up_to(&amounts, it.max_usage_of(resource)).is_empty();
        let all: Vec<_> = all.filter(can_ask).collect();
        let hunters = all.iter().copied().filter(|it| may_preempt(it)).collect();
        (!all.is_empty()).then_some(Self {
            amounts,
            preempting_queues: hunters,
            queues: all,
        })
    }
}

/// The amounts that are no more than this.
fn up_to(amounts: &[i64], most: i64) -> &[i64] {
    let count = amounts.partition_point(|it| *it <= most);
    amounts.get(..count).unwrap_or_default()
}

fn may_preempt(contender: &QueueProfile) -> bool {
    contender.preemption.within_cluster_queue != WithinClusterQueue::Never
        || contender.preemption.reclaim_within_cohort != ReclaimWithinCohort::Never
}

/// What can be drawn in a tree.
pub(super) struct WorkloadSampler<'a> {
    cluster: &'a SimulatedCluster,
    choices: BTreeMap<ResourceId, ResourceChoices<'a>>,
    pub(super) priorities: Vec<i32>,
}

impl<'a> WorkloadSampler<'a> {
    /// `None` if nobody can be preempted in the tree.
    pub(super) fn new(field: &'a SimulatedCluster, priorities: &BTreeSet<i32>) -> Option<Self> {
        if !field.queues.iter().any(may_preempt) {
            return None;
        }
        let all = field.queues.iter();
        let resources: BTreeSet<_> = all.flat_map(|it| it.max_usage.keys().copied()).collect();
        let decks = resources
            .into_iter()
            .filter_map(|it| Some((it, ResourceChoices::new(field, it)?)));
        Some(Self {
            cluster: field,
            choices: decks.collect(),
            priorities: priorities_to_try(field, priorities),
        })
    }

    /// The amounts of a resource that are tried, ascending.
    pub(super) fn amounts(&self, resource: ResourceId) -> &[i64] {
        self.choices.get(&resource).map_or(&[], |it| &it.amounts)
    }

    /// So many guests.
    pub(super) fn sample(&self, dice: &mut Rng, size: usize) -> Vec<SimWorkload> {
        let is_wide = dice.below(4) == 0;
        let deck = self.choices.iter().nth(dice.below(self.choices.len()));
        let mut guests = Vec::new();
        while let Some((resource, deck)) = deck
            && guests.len() < size
        {
            let mut guest = self.sample_workload(dice, *resource, deck);
            if is_wide {
                self.toggle_resource(dice, &mut guest);
            }
            guests.push(guest);
        }
        guests
    }

    fn sample_workload(
        &self,
        dice: &mut Rng,
        resource: ResourceId,
        deck: &ResourceChoices<'_>,
    ) -> SimWorkload {
        let is_hunter = dice.below(2) == 0 && !deck.preempting_queues.is_empty();
        let from = if is_hunter {
            &deck.preempting_queues
        } else {
            &deck.queues
        };
        let queue = dice.pick(from);
        let mut guest = SimWorkload {
            queue: queue.map_or_else(String::new, |it| it.name.clone()),
            priority: dice.pick(&self.priorities).copied().unwrap_or_default(),
            requests: BTreeMap::new(),
            arrives_when_idle: dice.below(2) == 0,
        };
        self.set_request(dice, &mut guest, resource);
        guest
    }

    /// Lets a guest ask for no more than its queue could ever have, or for nothing.
    fn set_request(&self, dice: &mut Rng, guest: &mut SimWorkload, resource: ResourceId) {
        let most = self.max_request(&guest.queue, resource);
        match dice.pick(up_to(self.amounts(resource), most)) {
            Some(amount) => guest.requests.insert(resource, *amount),
            None => guest.requests.remove(&resource),
        };
    }

    fn max_request(&self, queue: &str, resource: ResourceId) -> i64 {
        let mut all = self.cluster.queues.iter();
        let queue = all.find(|it| it.name == queue);
        queue.map_or(0, |it| it.max_usage_of(resource))
    }

    /// Lets a guest ask for another resource, too, or for one less.
    fn toggle_resource(&self, dice: &mut Rng, guest: &mut SimWorkload) {
        let Some(resource) = self.choices.keys().nth(dice.below(self.choices.len())) else {
            return;
        };
        if guest.requests.len() > 1 && dice.below(2) == 0 {
            guest.requests.remove(resource);
        } else {
            self.set_request(dice, guest, *resource);
        }
    }

    /// Lets a guest come to another queue that has what it asks for.
    fn change_queue(&self, dice: &mut Rng, guest: &mut SimWorkload) {
        let asked: Vec<_> = guest.requests.keys().copied().collect();
        let deck = asked.first().and_then(|it| self.choices.get(it));
        let Some(queue) = deck.and_then(|it| dice.pick(&it.queues)) else {
            return;
        };
        guest.queue.clone_from(&queue.name);
        for resource in asked {
            let most = queue.max_usage_of(resource);
            if guest.requests.get(&resource).is_some_and(|it| *it > most) {
                self.set_request(dice, guest, resource);
            }
        }
    }

    /// The same guests with one or two things changed.
    pub(super) fn mutate(&self, dice: &mut Rng, guests: &[SimWorkload]) -> Vec<SimWorkload> {
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
                0 => guest.arrives_when_idle = !guest.arrives_when_idle,
                1 | 2 => {
                    guest.priority = dice.pick(&self.priorities).copied().unwrap_or_default();
                }
                3 | 4 => self.change_queue(dice, guest),
                5 => self.toggle_resource(dice, guest),
                _ => {
                    let resources: Vec<_> = guest.requests.keys().copied().collect();
                    if let Some(resource) = dice.pick(&resources) {
                        self.set_request(dice, guest, *resource);
                    }
                }
            }
        }
        guests
    }
}

/// A few priorities that are told apart by the policies: those of the classes, and if there are too few, some more;
/// always those around a threshold.
fn priorities_to_try(field: &SimulatedCluster, given: &BTreeSet<i32>) -> Vec<i32> {
    let thresholds =
        field
            .queues
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
