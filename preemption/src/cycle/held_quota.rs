//! Held quota in a cycle: it counts as used, but for its preemptor and for those who take it over.

use super::nominate::{NominatedEntry, NominationContext};
use super::{Cycle, Decision, Entry};
use crate::assignment::Assignment;
use crate::damping::{Damping, Hold, Holds};
use crate::ids::{NodeId, WorkloadId};
use crate::policy::{QueueingStrategy, ReclaimWithinCohort, WithinClusterQueue};
use crate::queue::{EquivalenceClass, QueueKey};
use crate::quota::View;
use crate::state::State;
use crate::trace::{Step, Trace};
use crate::victim::Victim;
use crate::workload_table::WorkloadTable;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What counts when a workload is nominated.
pub(crate) struct NominationOptions<'a> {
    /// Workloads that count as gone.
    pub(crate) removed: &'a BTreeSet<WorkloadId>,
    /// The flavors that come into question, if not all.
    pub(crate) allowed_flavors: Option<&'a Assignment>,
    /// Preemptors whose held quota is not counted as used any more.
    pub(crate) released: &'a BTreeSet<WorkloadId>,
}

impl NominationOptions<'_> {
    /// As things are.
    pub(crate) const DEFAULT: Self = Self {
        removed: &BTreeSet::new(),
        allowed_flavors: None,
        released: &BTreeSet::new(),
    };

    fn counts_hold(&self, holder: WorkloadId) -> bool {
        !self.released.contains(&holder)
    }
}

impl State {
    /// Counts all held quota as used.
    pub(crate) fn apply_holds(&self, view: &mut View<'_>) {
        for (holder, hold) in self.holds.iter() {
            self.apply_hold(view, holder, hold);
        }
    }

    fn apply_hold(&self, view: &mut View<'_>, holder: WorkloadId, hold: &Hold) {
        let amounts = hold.amounts(
            holder,
            &self.histories,
            &self.admitted_index,
            &self.workloads,
        );
        for (cell, amount) in hold.cell_amounts(view, &amounts) {
            view.add(cell, amount);
        }
    }

    /// Counts the quota that is held for a preemptor as free.
    pub(crate) fn release_hold(&self, view: &mut View<'_>, holder: WorkloadId) {
        if let Some(hold) = self.holds.get(holder) {
            let amounts = hold.amounts(
                holder,
                &self.histories,
                &self.admitted_index,
                &self.workloads,
            );
            for (cell, amount) in hold.cell_amounts(view, &amounts) {
                view.remove(cell, amount);
            }
        }
    }

    /// Counts it as used again.
    pub(super) fn reapply_hold(&self, view: &mut View<'_>, holder: WorkloadId) {
        if let Some(hold) = self.holds.get(holder) {
            self.apply_hold(view, holder, hold);
        }
    }

    /// Nominates with what is held for others counted as used, or, if it gets nothing then, without
    /// what is held for weaker ones.
    pub(crate) fn nominate_with_holds(
        &self,
        view: &mut View<'_>,
        nominator: &NominationContext<'_>,
        terms: &NominationOptions<'_>,
        mut trace: Trace,
    ) -> NominatedEntry {
        if self.holds.is_empty() {
            return nominator.nominate(view, terms.removed, terms.allowed_flavors, trace);
        }
        let mark = view.mark();
        if terms.counts_hold(nominator.id()) {
            self.release_hold(view, nominator.id());
        }
        self.trace_holds(view, nominator, terms, &mut trace);
        let mut nominee = nominator.nominate(view, terms.removed, terms.allowed_flavors, trace);
        if !nominee.fits_or_preempts() && terms.removed.is_empty() {
            self.retain_decision(view, nominator, &mut nominee);
        }
        if !nominee.fits_or_preempts() {
            self.displace(view, nominator, terms, &mut nominee);
        }
        view.roll_back(mark);
        nominee
    }

    /// A decision stands as long as its victims are on their way, although by now, when some have gone, it
    /// would not be made: shares have changed, or the lenders.
    fn retain_decision(
        &self,
        view: &mut View<'_>,
        nominator: &NominationContext<'_>,
        nominee: &mut NominatedEntry,
    ) {
        let Some(hold) = self.holds.get(nominator.id()) else {
            return;
        };
        let leaving = hold.remaining_victims(nominator.id(), &self.histories);
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
            nominee.trace.record(|| Step::DecisionRetained);
        } else {
            nominee.assignment = before;
            nominee.victims.clear();
        }
    }

    /// Takes the victims off the view, and says whether the nominee fits then.
    fn fits_without(&self, view: &mut View<'_>, nominee: &NominatedEntry) -> bool {
        for victim in &nominee.victims {
            super::remove(self, view, victim.workload);
        }
        super::cells(view, nominee)
            .all(|(_, cell, amount)| amount <= view.available(cell).or_zero())
    }

    fn trace_holds(
        &self,
        view: &View<'_>,
        nominator: &NominationContext<'_>,
        terms: &NominationOptions<'_>,
        trace: &mut Trace,
    ) {
        if !trace.is_on() {
            return;
        }
        let root = |queue: NodeId| view.tree.node(queue).root;
        let own = root(nominator.queue());
        for (holder, hold) in self.holds.iter() {
            let is_other = holder != nominator.id() && terms.counts_hold(holder);
            if is_other && root(hold.queue) == own {
                trace.record(|| Step::QuotaHeld {
                    preemptor: holder,
                    amounts: hold.amounts(
                        holder,
                        &self.histories,
                        &self.admitted_index,
                        &self.workloads,
                    ),
                });
            }
        }
    }

    /// Nominates again with what is held for weaker ones; who must give way is in the nominee.
    fn displace(
        &self,
        view: &mut View<'_>,
        nominator: &NominationContext<'_>,
        terms: &NominationOptions<'_>,
        nominee: &mut NominatedEntry,
    ) {
        let mut weaker = self.displaceable_preemptors(view, nominator, terms);
        if weaker.is_empty() {
            return;
        }
        for holder in &weaker {
            self.release_hold(view, *holder);
        }
        let trace = std::mem::take(&mut nominee.trace);
        let stronger = nominator.displacing(&weaker);
        let mut again = stronger.nominate(view, terms.removed, terms.allowed_flavors, trace);
        // Over the border of a queue, quota is taken back, not borrowed.
        let own = nominator.queue();
        let is_own =
            |holder: &WorkloadId| self.holds.get(*holder).is_some_and(|it| it.queue == own);
        let is_allowed = again.assignment.borrowing_level == 0 || weaker.iter().all(is_own);
        if !again.fits_or_preempts() || !is_allowed {
            nominee.trace = again.trace;
            return;
        }
        self.drop_unneeded_holders(view, &again, &mut weaker);
        for holder in &weaker {
            let preemptor = *holder;
            again.trace.record(|| Step::Displaced { preemptor });
        }
        again.displaced = weaker;
        *nominee = again;
    }

    /// Preemptors of a lower priority in the same tree whom it could preempt if they ran, and those behind
    /// it in a queue that keeps its order; the highest priority first.
    fn displaceable_preemptors(
        &self,
        view: &View<'_>,
        nominator: &NominationContext<'_>,
        terms: &NominationOptions<'_>,
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
                && terms.counts_hold(*id)
                && view.tree.node(hold.queue).root == root
                && may(hold)
        });
        let mut weaker: Vec<_> = all.map(|(id, hold)| (Reverse(hold.priority), id)).collect();
        weaker.sort_unstable();
        weaker.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes those out of a list whose quota the nominee does not need.
    fn drop_unneeded_holders(
        &self,
        view: &mut View<'_>,
        nominee: &NominatedEntry,
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
            if victims.any(|it| self.histories.evicting_preemptor(it.workload) == Some(*holder)) {
                return true;
            }
            let mark = view.mark();
            self.apply_hold(view, *holder, hold);
            let fits = super::cells(view, nominee)
                .all(|(_, cell, amount)| amount <= view.available(cell).or_zero());
            if !fits {
                view.roll_back(mark);
            }
            !fits
        });
    }

    /// Writes down what a decision does to held quota.
    pub(super) fn update_holds(&mut self, entry: &Entry) {
        let is_damped = self.options.damping == Damping::On;
        match &entry.decision {
            Decision::Preempt(victims) => {
                for victim in victims {
                    self.histories
                        .record_preemption(entry.workload, victim.workload);
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
                self.histories.record_displacement(*holder, entry.workload);
            }
        }
    }

    /// Lets go what is held for those who cannot have it: they are behind the head of a queue that keeps its
    /// order, or their queue no longer takes them.
    pub(super) fn end_unusable_holds(&mut self, cycle: &Cycle) {
        if self.holds.is_empty() {
            return;
        }
        for id in &cycle.out_of_scope {
            self.holds.end(*id);
        }
        let blocked = cycle.entries.iter().filter(|entry| {
            let strategy = self
                .pending_queue(entry.queue)
                .map(|it| it.settings.strategy);
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
            self.histories.record_displacement(id, head);
        }
    }

    /// Looks again at who is parked where held quota was let go or came into use. Whether there was any.
    pub(crate) fn reactivate_where_holds_ended(&mut self) -> bool {
        let ended = self.holds.take_ended();
        let is_any = !ended.is_empty();
        for queue in ended {
            self.reactivate(queue);
        }
        is_any
    }
}

/// Of each queue the first workload for whom quota is held: its place and its class.
pub(super) fn first_holders(
    holds: &Holds,
    records: &WorkloadTable,
) -> BTreeMap<NodeId, (QueueKey, EquivalenceClass)> {
    let mut first: BTreeMap<NodeId, (QueueKey, EquivalenceClass)> = BTreeMap::new();
    for (id, hold) in holds.iter() {
        let Some(record) = records.get(id) else {
            continue;
        };
        let place = record.queue_key(id);
        if first.get(&hold.queue).is_none_or(|(it, _)| place < *it) {
            first.insert(hold.queue, (place, record.equivalence_class()));
        }
    }
    first
}

/// Whose held quota counts as free for a nominee.
pub(super) fn holders(nominee: &NominatedEntry) -> impl Iterator<Item = WorkloadId> {
    std::iter::once(nominee.workload).chain(nominee.displaced.iter().copied())
}
