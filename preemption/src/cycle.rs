//! One cycle: the heads of all queues, in order, to decisions.
//!
//! Source: Kueue `pkg/scheduler/scheduler.go`, KEP-83. Every head is **nominated** alone: its flavors and,
//! if needed, its victims, as if nobody else asked. Then the entries are taken in order, and each sees
//! what those before it have taken. Who no longer fits is skipped and comes again.
//!
//! Quota for a preemptor that waits for nobody's leave is reserved in the cycle, unless its queue could
//! reclaim it at any time.

mod budget;
mod damped;
mod nominate;
mod order;
mod round;

use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::job::Says;
use crate::names::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::policy::QueueingStrategy;
use crate::queue::Progress;
use crate::quota::{Overlay, View};
use crate::running::Workloads;
use crate::state::State;
use crate::trace::Trace;
use crate::victim::Victim;
pub(crate) use damped::Terms;
use damped::first_holders;
pub(crate) use nominate::{Nominator, Nominee, demands};
use round::{Decided, Round, Tried};
use std::sync::Arc;

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is admitted with its assignment.
    Admit,
    /// These have to go; then it comes again.
    Preempt(Vec<Victim>),
    /// It was outrun in this cycle.
    Skip(SkipReason),
    /// It fits once the victims of others are gone.
    DeferredFit,
    /// It needs others to go, and nobody may be taken.
    NoCandidates,
    /// It does not fit.
    NoFit,
}

impl Decision {
    /// The names of all of them.
    pub const NAMES: [&'static str; 6] = [
        "Admit",
        "Preempt",
        "Skip",
        "DeferredFit",
        "NoCandidates",
        "NoFit",
    ];

    /// Its name, without what it is about.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Admit => "Admit",
            Self::Preempt(_) => "Preempt",
            Self::Skip(_) => "Skip",
            Self::DeferredFit => "DeferredFit",
            Self::NoCandidates => "NoCandidates",
            Self::NoFit => "NoFit",
        }
    }
}

/// Why an entry was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Others before it have taken the quota.
    NoLongerFits,
    /// Others before it take the same victims.
    OverlappingVictims,
    /// Nobody borrows in its cohort any more in this cycle.
    BorrowingGate,
    /// As many workloads go in this cycle as may.
    Budget,
}

/// Why a head goes back to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueReason {
    /// It was nominated and then outrun.
    FailedAfterNomination,
    /// It waits for its victims to go.
    PendingPreemption,
    /// Nobody may be taken.
    PreemptionNoCandidates,
    /// It does not fit.
    NoFit,
    /// The queue does not take its namespace.
    NamespaceMismatch,
}

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeuedTo {
    /// It is looked at in the next cycle.
    Active,
    /// It is looked at when something has changed.
    Parked,
}

/// One head and its decision.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The workload.
    pub workload: WorkloadId,
    /// Its queue.
    pub queue: NodeId,
    /// The flavors it was nominated for.
    pub nominated: Assignment,
    /// The victims it was nominated with.
    pub nominated_victims: Vec<Victim>,
    /// The flavors that hold instead, if others had taken its victims.
    pub recomputed: Option<Assignment>,
    /// What became of it.
    pub decision: Decision,
    /// What it has taken of the quota in this cycle.
    pub reserved: Vec<(FlavorResource, Amount)>,
    /// Preemptors whose held quota it was nominated for.
    pub displaced: Vec<WorkloadId>,
    /// Where it went back to, if it did.
    pub requeued: Option<(RequeueReason, RequeuedTo)>,
    /// What was considered.
    pub trace: Trace,
}

impl Entry {
    /// The flavors that hold.
    #[must_use]
    pub fn assignment(&self) -> &Assignment {
        self.recomputed.as_ref().unwrap_or(&self.nominated)
    }
}

/// A head, and where its search for flavors went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The workload.
    pub workload: WorkloadId,
    /// Its queue.
    pub queue: NodeId,
    /// Whether it is the workload that the queue waits for.
    pub is_sticky: bool,
}

/// The decisions of a cycle.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The heads, by queue.
    pub heads: Vec<Head>,
    /// The entries, in the order in which they were decided.
    pub entries: Vec<Entry>,
    /// Heads that were not nominated.
    pub out_of_scope: Vec<WorkloadId>,
    /// Whether quota that was held for a preemptor was let go, so that who is parked is looked at again: the
    /// next cycle may find more.
    pub has_revived: bool,
}

impl State {
    /// Decides on the heads of all queues. What is admitted is reserved in the state at once; victims
    /// hold their quota until they are released.
    pub fn next_cycle(&mut self, now_s: i64, is_traced: bool) -> Cycle {
        self.settle();
        self.now_s = now_s;
        self.release_held(now_s);
        self.wake(now_s);
        self.cycle = self.cycle.saturating_add(1);
        let mut cycle = self.pop_heads();
        let mut overlay = std::mem::take(&mut self.overlay);
        let mut overlay_now = std::mem::take(&mut self.overlay_now);
        let overlays = [&mut overlay, &mut overlay_now];
        let decided = self.decide(overlays, &cycle.heads, is_traced);
        (self.overlay, self.overlay_now) = (overlay, overlay_now);
        for it in decided {
            let Decided {
                mut entry,
                tried,
                soonest_s,
            } = it;
            self.damp(&entry);
            self.conclude(&mut entry, tried, now_s);
            if let Some(at_s) = soonest_s
                && matches!(entry.requeued, Some((_, RequeuedTo::Parked)))
            {
                self.wakes.insert((at_s, entry.queue));
            }
            cycle.entries.push(entry);
        }
        self.end_idle_holds(&cycle);
        for id in &cycle.out_of_scope {
            if let Some(record) = self.records.get(*id) {
                let (queue, place) = (record.queue, record.place(*id));
                if let Some(queue) = self.pending_mut(queue) {
                    queue.park_out_of_scope(place);
                }
            }
        }
        cycle.has_revived = self.revive_where_holds_ended();
        cycle
    }

    fn release_held(&mut self, now_s: i64) {
        let (queues, records) = self.queues_and_records();
        for queue in queues {
            queue.release(now_s, |id| {
                records
                    .get_mut(id)
                    .map_or((u64::MAX, 0, Says::default()), |record| {
                        record.held_until_s = None;
                        record.class()
                    })
            });
        }
    }

    /// Looks again at who is parked, where somebody has run for long enough to be taken.
    fn wake(&mut self, now_s: i64) {
        while let Some((at_s, _)) = self.wakes.first()
            && *at_s <= now_s
            && let Some((_, queue)) = self.wakes.pop_first()
        {
            self.revive(queue);
        }
    }

    fn pop_heads(&mut self) -> Cycle {
        let mut cycle = Cycle::default();
        // By name: ties go to the first.
        let names = Arc::clone(&self.queue_names);
        let holders = first_holders(&self.holds, &self.records);
        for id in names.values().copied() {
            if self.tree.node(id).is_misconfigured {
                continue;
            }
            if !self.pending(id).is_some_and(|it| it.settings.is_active) {
                continue;
            }
            let Some(queue) = self.queues.get_mut(id.index()) else {
                continue;
            };
            let preferred = holders
                .get(&id)
                .and_then(|(place, class)| queue.pop_preferred(place, *class));
            let Some(workload) = preferred.or_else(|| queue.pop()) else {
                continue;
            };
            let is_sticky = queue.is_sticky(workload);
            if !self.records.get(workload).is_some_and(|it| it.is_in_scope) {
                cycle.out_of_scope.push(workload);
                continue;
            }
            cycle.heads.push(Head {
                workload,
                queue: id,
                is_sticky,
            });
        }
        cycle
    }

    /// Nominates the heads and takes them in order.
    fn decide(
        &self,
        [overlay, overlay_now]: [&mut Overlay; 2],
        heads: &[Head],
        is_traced: bool,
    ) -> Vec<Decided> {
        let mut view = View::new(&self.tree, &self.usage, overlay);
        let mut now = View::new(&self.tree, &self.usage, overlay_now);
        self.put_holds(&mut view);
        self.put_holds(&mut now);
        let mut waiting: Vec<Nominee> = heads
            .iter()
            .filter_map(|head| {
                let nominator = Nominator::of(self, head.workload)?;
                let trace = if is_traced { Trace::on() } else { Trace::off() };
                Some(self.nominate_among_holds(&mut view, &nominator, &Terms::PLAIN, trace))
            })
            .collect();
        order::sort(self, &mut waiting);
        let mut round = Round::new(self, view, now);
        let mut decided = Vec::with_capacity(waiting.len());
        if order::is_fair(&self.options) {
            while let Some(at) = order::next(self, &mut round.view, &waiting) {
                decided.push(round.process(waiting.remove(at)));
            }
        } else {
            decided.extend(waiting.into_iter().map(|nominee| round.process(nominee)));
        }
        decided
    }

    /// Writes down what became of an entry.
    fn conclude(&mut self, entry: &mut Entry, tried: Tried, now_s: i64) {
        let id = entry.workload;
        let reason = match &entry.decision {
            Decision::Admit => {
                let reserved_at_s = now_s.saturating_add(self.lead_s);
                self.take_quota(id, &entry.assignment().usage, reserved_at_s, false);
                return;
            }
            Decision::Preempt(_) | Decision::DeferredFit => RequeueReason::PendingPreemption,
            Decision::Skip(_) => RequeueReason::FailedAfterNomination,
            Decision::NoCandidates => RequeueReason::PreemptionNoCandidates,
            Decision::NoFit => RequeueReason::NoFit,
        };
        let is_pending = reason == RequeueReason::PendingPreemption;
        let is_forgotten = self.options.former.forgets_preemptors;
        let cycle = self.cycle;
        let generation = self.pending(entry.queue).map_or(0, |it| it.generation);
        let Some(record) = self.records.get_mut(id) else {
            return;
        };
        let tried = if is_pending { Vec::new() } else { tried };
        let has_more = !tried.is_empty();
        record.progress = has_more.then(|| {
            Box::new(Progress {
                tried,
                cycle,
                generation,
            })
        });
        let (place, class) = (record.place(id), record.class());
        let Some(queue) = self.pending_mut(entry.queue) else {
            return;
        };
        let is_strict = queue.settings.strategy == QueueingStrategy::StrictFifo;
        let comes_again = is_pending || reason == RequeueReason::FailedAfterNomination;
        queue.push(place.clone(), class);
        let to = if is_strict || comes_again || has_more {
            RequeuedTo::Active
        } else {
            queue.park(class);
            RequeuedTo::Parked
        };
        if is_pending && !is_forgotten {
            queue.wait_for(place, class);
        }
        if to == RequeuedTo::Parked {
            self.note_parked(entry.queue);
        }
        entry.requeued = Some((reason, to));
    }
}

/// What a nominee would use, at the cells of its queue.
fn cells<'a>(
    view: &View<'a>,
    nominee: &'a Nominee,
) -> impl Iterator<Item = (FlavorResource, CellId, Amount)> + use<'a> {
    let node = view.tree.node(nominee.queue);
    let usage = nominee.assignment.usage.iter();
    usage.filter_map(move |(of, amount)| Some((*of, node.cell(*of)?, *amount)))
}

fn remove(state: &State, view: &mut View<'_>, id: WorkloadId) {
    if let Some(running) = state.records.running(id) {
        for (cell, amount) in state.index.usage(running) {
            view.remove(cell, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, SkipReason};

    #[test]
    fn every_decision_has_its_place_among_the_names() {
        let all = [
            Decision::Admit,
            Decision::Preempt(Vec::new()),
            Decision::Skip(SkipReason::Budget),
            Decision::DeferredFit,
            Decision::NoCandidates,
            Decision::NoFit,
        ];
        assert_eq!(all.each_ref().map(Decision::as_str), Decision::NAMES);
    }
}
