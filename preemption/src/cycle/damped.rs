//! Held quota in a cycle: it counts as used, but for its preemptor and for those who take it over.

use super::nominate::{Nominator, Nominee};
use super::{Cycle, Decision, Entry};
use crate::assignment::Assignment;
use crate::damping::{Damping, Hold, Holds};
use crate::names::{NodeId, WorkloadId};
use crate::policy::{QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue};
use crate::queue::{Class, Place};
use crate::quota::View;
use crate::records::Records;
use crate::state::State;
use crate::trace::{Step, Trace};
use crate::victim::Victim;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What counts when a workload is nominated.
pub(crate) struct Terms<'a> {
    /// Workloads that count as gone.
    pub(crate) gone: &'a BTreeSet<WorkloadId>,
    /// The flavors that come into question, if not all.
    pub(crate) only: Option<&'a Assignment>,
    /// Preemptors whose held quota is not counted as used any more.
    pub(crate) lifted: &'a BTreeSet<WorkloadId>,
}

impl Terms<'_> {
    /// As things are.
    pub(crate) const PLAIN: Self = Self {
        gone: &BTreeSet::new(),
        only: None,
        lifted: &BTreeSet::new(),
    };

    fn counts(&self, holder: WorkloadId) -> bool {
        !self.lifted.contains(&holder)
    }
}

impl State {
    /// Counts all held quota as used.
    pub(crate) fn put_holds(&self, view: &mut View<'_>) {
        for (holder, hold) in self.holds.iter() {
            self.put_hold(view, holder, hold);
        }
    }

    fn put_hold(&self, view: &mut View<'_>, holder: WorkloadId, hold: &Hold) {
        let amounts = hold.amounts(holder, &self.histories, &self.index, &self.records);
        for (cell, amount) in hold.at_cells(view, &amounts) {
            view.add(cell, amount);
        }
    }

    /// Counts the quota that is held for a preemptor as free.
    pub(crate) fn lift_hold(&self, view: &mut View<'_>, holder: WorkloadId) {
        if let Some(hold) = self.holds.get(holder) {
            let amounts = hold.amounts(holder, &self.histories, &self.index, &self.records);
            for (cell, amount) in hold.at_cells(view, &amounts) {
                view.remove(cell, amount);
            }
        }
    }

    /// Counts it as used again.
    pub(super) fn put_hold_of(&self, view: &mut View<'_>, holder: WorkloadId) {
        if let Some(hold) = self.holds.get(holder) {
            self.put_hold(view, holder, hold);
        }
    }

    /// Nominates with what is held for others counted as used, or, if it gets nothing then, without
    /// what is held for weaker ones.
    pub(crate) fn nominate_among_holds(
        &self,
        view: &mut View<'_>,
        nominator: &Nominator<'_>,
        terms: &Terms<'_>,
        mut trace: Trace,
    ) -> Nominee {
        if self.holds.is_empty() {
            return nominator.nominate(view, terms.gone, terms.only, trace);
        }
        let mark = view.mark();
        if terms.counts(nominator.id()) {
            self.lift_hold(view, nominator.id());
        }
        self.note_holds(view, nominator, terms, &mut trace);
        let mut nominee = nominator.nominate(view, terms.gone, terms.only, trace);
        if !nominee.gets_something() && terms.gone.is_empty() {
            self.stand(view, nominator, &mut nominee);
        }
        if !nominee.gets_something() {
            self.displace(view, nominator, terms, &mut nominee);
        }
        view.roll_back(mark);
        nominee
    }

    /// A decision stands as long as its victims are on their way, although by now, when some have gone, it
    /// would not be made: shares have changed, or the lenders.
    fn stand(&self, view: &mut View<'_>, nominator: &Nominator<'_>, nominee: &mut Nominee) {
        let Some(hold) = self.holds.get(nominator.id()) else {
            return;
        };
        let leaving = hold.leaving(nominator.id(), &self.histories);
        let victims: Vec<Victim> = leaving.copied().collect();
        if victims.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut nominee.assignment, hold.assignment.clone());
        nominee.victims = victims;
        let mark = view.mark();
        let fits = self.fits_without(view, nominee);
        view.roll_back(mark);
        if fits {
            nominee.trace.note(|| Step::Stands);
        } else {
            nominee.assignment = before;
            nominee.victims.clear();
        }
    }

    /// Takes the victims off the view, and says whether the nominee fits then.
    fn fits_without(&self, view: &mut View<'_>, nominee: &Nominee) -> bool {
        for victim in &nominee.victims {
            super::remove(self, view, victim.workload);
        }
        super::cells(view, nominee)
            .all(|(_, cell, amount)| amount <= view.available(cell).or_zero())
    }

    fn note_holds(
        &self,
        view: &View<'_>,
        nominator: &Nominator<'_>,
        terms: &Terms<'_>,
        trace: &mut Trace,
    ) {
        if !trace.is_on() {
            return;
        }
        let root = |queue: NodeId| view.tree.node(queue).root;
        let own = root(nominator.queue());
        for (holder, hold) in self.holds.iter() {
            let is_other = holder != nominator.id() && terms.counts(holder);
            if is_other && root(hold.queue) == own {
                trace.note(|| Step::Held {
                    preemptor: holder,
                    amounts: hold.amounts(holder, &self.histories, &self.index, &self.records),
                });
            }
        }
    }

    /// Nominates again with what is held for weaker ones; who must give way is in the nominee.
    fn displace(
        &self,
        view: &mut View<'_>,
        nominator: &Nominator<'_>,
        terms: &Terms<'_>,
        nominee: &mut Nominee,
    ) {
        let mut weaker = self.weaker(view, nominator, terms);
        if weaker.is_empty() {
            return;
        }
        for holder in &weaker {
            self.lift_hold(view, *holder);
        }
        let trace = std::mem::take(&mut nominee.trace);
        let stronger = nominator.displacing(&weaker);
        let mut again = stronger.nominate(view, terms.gone, terms.only, trace);
        // Over the border of a queue, quota is taken back, not borrowed.
        let own = nominator.queue();
        let is_own =
            |holder: &WorkloadId| self.holds.get(*holder).is_some_and(|it| it.queue == own);
        let is_allowed = again.assignment.borrowing_level == 0 || weaker.iter().all(is_own);
        if !again.gets_something() || !is_allowed {
            nominee.trace = again.trace;
            return;
        }
        self.spare_holders(view, &again, &mut weaker);
        for holder in &weaker {
            let preemptor = *holder;
            again.trace.note(|| Step::Displaced { preemptor });
        }
        again.displaced = weaker;
        *nominee = again;
    }

    /// Preemptors of a lower priority in the same tree whom it could preempt if they ran, and those behind
    /// it in a queue that keeps its order; the highest priority first.
    fn weaker(
        &self,
        view: &View<'_>,
        nominator: &Nominator<'_>,
        terms: &Terms<'_>,
    ) -> Vec<WorkloadId> {
        let root = view.tree.node(nominator.queue()).root;
        let policy = nominator.policy();
        let may = |hold: &Hold| {
            let is_weaker = hold.priority < nominator.priority();
            if hold.queue == nominator.queue() {
                // The head of a queue that keeps its order comes before whoever is not.
                nominator.is_strict()
                    || is_weaker && policy.within_cluster_queue != WithinClusterQueue::Never
            } else {
                is_weaker && policy.reclaim_within_cohort != ReclaimWithinCohort::Never
            }
        };
        let all = self.holds.iter().filter(|(id, hold)| {
            *id != nominator.id()
                && terms.counts(*id)
                && view.tree.node(hold.queue).root == root
                && may(hold)
        });
        let mut weaker: Vec<_> = all.map(|(id, hold)| (Reverse(hold.priority), id)).collect();
        weaker.sort_unstable();
        weaker.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes those out of a list whose quota the nominee does not need.
    fn spare_holders(
        &self,
        view: &mut View<'_>,
        nominee: &Nominee,
        displaced: &mut Vec<WorkloadId>,
    ) {
        for victim in &nominee.victims {
            super::remove(self, view, victim.workload);
        }
        displaced.retain(|holder| {
            let Some(hold) = self.holds.get(*holder) else {
                return false;
            };
            // Its victims are promised to it as long as it has its hold.
            let mut victims = nominee.victims.iter();
            if victims.any(|it| self.histories.told_by(it.workload) == Some(*holder)) {
                return true;
            }
            let mark = view.mark();
            self.put_hold(view, *holder, hold);
            let fits = super::cells(view, nominee)
                .all(|(_, cell, amount)| amount <= view.available(cell).or_zero());
            if !fits {
                view.roll_back(mark);
            }
            !fits
        });
    }

    /// Writes down what a decision does to held quota.
    pub(super) fn damp(&mut self, entry: &Entry) {
        let is_damped = self.options.damping == Damping::On;
        match &entry.decision {
            Decision::Preempt(victims) => {
                for victim in victims {
                    self.histories.tell(entry.workload, victim.workload);
                }
                if is_damped {
                    let hold = Hold {
                        queue: entry.queue,
                        priority: self.priority(entry.workload),
                        assignment: entry.assignment().clone(),
                        victims: victims.clone(),
                    };
                    self.holds.begin(entry.workload, hold);
                }
            }
            Decision::NoCandidates | Decision::NoFit => self.holds.end(entry.workload),
            Decision::Admit | Decision::DeferredFit | Decision::Skip(_) => {}
        }
        if !matches!(entry.decision, Decision::Skip(_)) {
            for holder in &entry.displaced {
                self.holds.end(*holder);
                self.histories.displaced(*holder, entry.workload);
            }
        }
    }

    /// Lets go what is held for those who cannot have it: they are behind the head of a queue that keeps its
    /// order, or their queue no longer takes them.
    pub(super) fn end_idle_holds(&mut self, cycle: &Cycle) {
        if self.holds.is_empty() {
            return;
        }
        for id in &cycle.out_of_scope {
            self.holds.end(*id);
        }
        let blocked = cycle.entries.iter().filter(|entry| {
            let strategy = self.pending(entry.queue).map(|it| it.settings.strategy);
            strategy == Some(QueueingStrategy::StrictFifo) && entry.decision != Decision::Admit
        });
        let heads: BTreeMap<NodeId, WorkloadId> =
            blocked.map(|it| (it.queue, it.workload)).collect();
        let behind = |(id, hold): (WorkloadId, &Hold)| {
            let head = *heads.get(&hold.queue)?;
            (head != id).then_some((id, head))
        };
        for (id, head) in self.holds.iter().filter_map(behind).collect::<Vec<_>>() {
            self.holds.end(id);
            self.histories.displaced(id, head);
        }
    }

    /// Looks again at who is parked where held quota was let go or came into use. Whether there was any.
    pub(crate) fn revive_where_holds_ended(&mut self) -> bool {
        let ended = self.holds.take_ended();
        let is_any = !ended.is_empty();
        for queue in ended {
            self.revive(queue);
        }
        is_any
    }
}

/// Of each queue the first workload for whom quota is held: its place and its class.
pub(super) fn first_holders(holds: &Holds, records: &Records) -> BTreeMap<NodeId, (Place, Class)> {
    let mut first: BTreeMap<NodeId, (Place, Class)> = BTreeMap::new();
    for (id, hold) in holds.iter() {
        let Some(record) = records.get(id) else {
            continue;
        };
        let place = record.place(id);
        if first.get(&hold.queue).is_none_or(|(it, _)| place < *it) {
            first.insert(hold.queue, (place, record.class()));
        }
    }
    first
}

/// Whose held quota counts as free for a nominee.
pub(super) fn holders(nominee: &Nominee) -> impl Iterator<Item = WorkloadId> {
    std::iter::once(nominee.workload).chain(nominee.displaced.iter().copied())
}
