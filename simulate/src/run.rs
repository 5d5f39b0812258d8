//! Queues and workloads, left to themselves: a cycle after the other, and whoever is told to go goes at once
//! and waits again. Nobody finishes.

#[cfg(test)]
mod tests;

use crate::field::Field;
use lockkeeper_preemption::{
    Amount, Decision, FlavorResource, PodSet, Reason, ResourceId, State, WorkloadId, WorkloadSpec,
};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds in a row in which nothing happens after which nothing more comes: all flavors have been tried by then.
const QUIET_ROUNDS: usize = 5;

/// A workload that comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its ClusterQueue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// What it asks for, in units of the core.
    pub requests: BTreeMap<ResourceId, i64>,
    /// Whether it comes when all that came before are at rest, or together with the one before it.
    pub is_late: bool,
}

/// A victim, by its number, and why it goes.
pub type Gone = (usize, Reason);

/// What happened in one cycle. Guests go by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Who came before it.
    pub arrived: Vec<usize>,
    /// Who was admitted.
    pub admitted: Vec<usize>,
    /// Who has told whom to go.
    pub preempted: BTreeMap<usize, Vec<Gone>>,
}

/// Rounds that come again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Who takes part, in the order in which they come.
    pub guests: Vec<Guest>,
    /// All rounds, the first turn of the circle included.
    pub rounds: Vec<Round>,
    /// The round, from 0, before which all is as after the last one.
    pub from: usize,
}

/// Where a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Away,
    /// It waits: actively or parked, and whether the queue looks at more flavors for it.
    Waiting(bool, bool),
    /// Of how many flavors and resources it holds something, and its rank by the time of its reservation.
    Running(usize, usize),
}

/// All that decides what happens next, without the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Standing {
    places: Vec<Place>,
    /// What those who run hold, one after the other.
    held: Vec<(FlavorResource, Amount)>,
}

impl Standing {
    fn has(&self, is_so: impl FnMut(&Place) -> bool) -> bool {
        self.places.iter().any(is_so)
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    state: State,
    guests: &'a [Guest],
    ids: Vec<WorkloadId>,
    now_s: i64,
    rounds: Vec<Round>,
    /// Before the round of the same number.
    standings: Vec<Standing>,
}

impl<'a> Run<'a> {
    /// Guests come to queues in which nobody is.
    #[must_use]
    pub fn new(field: &Field, guests: &'a [Guest]) -> Self {
        Self {
            state: field.state.clone(),
            guests,
            ids: Vec::new(),
            now_s: 0,
            rounds: Vec::new(),
            standings: Vec::new(),
        }
    }

    /// What has happened so far.
    #[must_use]
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// How many preemptions were undone, and how many undone ones were made again: how near a circle it was.
    #[must_use]
    pub fn thrash(&self) -> u64 {
        let thrash = self.state.thrash();
        let again = thrash.preempted_again.saturating_mul(4);
        let readmitted = thrash.readmitted.saturating_mul(2);
        again
            .saturating_add(readmitted)
            .saturating_add(thrash.preempted)
    }

    /// Goes on until it rests, comes round, or has taken so many rounds.
    pub fn find(&mut self, rounds_max: usize) -> Option<Circle> {
        let mut now = self.standing();
        while self.rounds.len() < rounds_max {
            let is_complete = self.ids.len() == self.guests.len();
            if is_complete && let Some(found) = self.circle(&now) {
                return Some(found);
            }
            if self.is_at_rest(&now) {
                if is_complete {
                    return None;
                }
                self.standings.clear();
            }
            self.round(now);
            now = self.standing();
        }
        None
    }

    /// One cycle, before which guests come if it is time for them.
    fn round(&mut self, mut now: Standing) {
        let mut round = Round::default();
        if self.standings.is_empty() {
            self.arrive(&mut round);
            now = self.standing();
        }
        self.standings.push(now);
        let cycle = self.state.next_cycle(self.now_s, false);
        self.now_s = self.now_s.saturating_add(1);
        for entry in &cycle.entries {
            let Some(guest) = self.number(entry.workload) else {
                continue;
            };
            match &entry.decision {
                Decision::Admit => round.admitted.push(guest),
                Decision::Preempt(victims) => {
                    let gone = victims
                        .iter()
                        .filter_map(|it| Some((self.number(it.workload)?, it.reason)));
                    round.preempted.insert(guest, gone.collect());
                }
                _ => {}
            }
        }
        let gone: BTreeSet<usize> = round
            .preempted
            .values()
            .flatten()
            .map(|(guest, _)| *guest)
            .collect();
        for guest in gone {
            if let Some(id) = self.ids.get(guest) {
                self.state.release(*id);
            }
        }
        round.admitted.sort_unstable();
        self.rounds.push(round);
    }

    /// The next guest comes, and those who come with it.
    fn arrive(&mut self, round: &mut Round) {
        let first = self.ids.len();
        for (number, guest) in self.guests.iter().enumerate().skip(first) {
            if number > first && guest.is_late {
                break;
            }
            let name = format!("{number:02}");
            let requests = guest.requests.iter();
            let requests = requests.map(|(of, amount)| (*of, Amount::new(*amount)));
            let id = self.state.add_pending(WorkloadSpec {
                name: &name,
                uid: &name,
                queue: &guest.queue,
                priority: guest.priority,
                order_time: i64::try_from(number).unwrap_or(i64::MAX),
                pod_sets: vec![PodSet {
                    name: "main".into(),
                    count: 1,
                    count_min: None,
                    requests: requests.collect(),
                    ineligible: Box::new([]),
                    shape: 0,
                }],
                is_in_scope: true,
                says: lockkeeper_preemption::job::Says::default(),
            });
            self.ids.push(id);
            round.arrived.push(number);
        }
    }

    fn number(&self, id: WorkloadId) -> Option<usize> {
        self.ids.iter().position(|it| *it == id)
    }

    fn standing(&self) -> Standing {
        let mut standing = Standing {
            places: Vec::with_capacity(self.guests.len()),
            held: Vec::new(),
        };
        let since = |id: &WorkloadId| self.state.holding(*id).map(|(at_s, _)| at_s);
        let mut times: Vec<i64> = self.ids.iter().filter_map(since).collect();
        times.sort_unstable();
        times.dedup();
        for id in &self.ids {
            let place = if let Some((at_s, usage)) = self.state.holding(*id) {
                let before = standing.held.len();
                standing.held.extend(usage);
                let count = standing.held.len().saturating_sub(before);
                Place::Running(count, times.partition_point(|it| *it < at_s))
            } else {
                Place::Waiting(self.state.is_active(*id), self.state.has_flavors_left(*id))
            };
            standing.places.push(place);
        }
        standing.places.resize(self.guests.len(), Place::Away);
        standing
    }

    /// Whether nothing happens any more: nobody waits but who is parked, or a cycle changed nothing, and so does the
    /// next one, unless a head goes on to its next flavors. One that keeps its queue may try them again and again, so
    /// a standing that was there before will do when nothing has happened for some rounds.
    fn is_at_rest(&self, now: &Standing) -> bool {
        if self.standings.is_empty() {
            return false;
        }
        let is_active = |it: &Place| matches!(it, Place::Waiting(true, _));
        let goes_on = |it: &Place| matches!(it, Place::Waiting(true, true));
        let is_quiet = |it: &Round| it.admitted.is_empty() && it.preempted.is_empty();
        let quiet = self.rounds.iter().rev().take(self.standings.len());
        let quiet = quiet.take_while(|it| is_quiet(it)).count();
        let before = self.standings.iter().rev();
        let is_same = quiet > 0 && before.clone().next() == Some(now);
        !now.has(is_active)
            || (is_same && !now.has(goes_on))
            || (quiet >= QUIET_ROUNDS && before.take(QUIET_ROUNDS).any(|it| it == now))
    }

    /// Where the state now was before, if something was preempted since. What a queue remembers beyond its
    /// places is not seen in a standing, so the circle has to be gone through twice more.
    fn circle(&mut self, now: &Standing) -> Option<Circle> {
        let offset = self.rounds.len().checked_sub(self.standings.len())?;
        let at = self.standings.iter().rposition(|it| it == now)?;
        let from = at.checked_add(offset)?;
        let turn = self.rounds.get(from..)?.to_vec();
        if turn.iter().all(|it| it.preempted.is_empty()) {
            return None;
        }
        let mut rounds = self.rounds.clone();
        for expected in turn.iter().chain(&turn) {
            let now = self.standing();
            self.round(now);
            let same = |round: &Round| {
                round.admitted == expected.admitted && round.preempted == expected.preempted
            };
            if !self.rounds.last().is_some_and(same) {
                return None;
            }
        }
        let mut from = from;
        let is_joined = turn.first().is_some_and(|it| !it.arrived.is_empty());
        if is_joined {
            // Nobody comes in a round that comes again.
            let again = self.rounds.iter().skip(rounds.len()).take(turn.len());
            from = rounds.len();
            rounds.extend(again.cloned());
        }
        Some(Circle {
            guests: self.guests.to_vec(),
            rounds,
            from,
        })
    }
}
