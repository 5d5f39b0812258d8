//! One cycle: the heads of all queues, in order, to decisions.
//!
//! Source: Kueue `pkg/scheduler/scheduler.go`, KEP-83. Every head is **nominated** alone: its flavors and,
//! if needed, its victims, as if nobody else asked. Then the entries are taken in order, and each sees
//! what those before it have taken. Who no longer fits is skipped and comes again.
//!
//! Quota for a preemptor that waits for nobody's leave is reserved in the cycle, unless its queue could
//! reclaim it at any time.

mod held_quota;
mod nominate;
mod order;
mod process;
mod victim_limit;

use crate::admitted::AdmittedLookup;
use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::ids::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::job::PreemptionLabels;
use crate::policy::QueueingStrategy;
use crate::queue::LastAssignment;
use crate::quota::{Overlay, View};
use crate::state::State;
use crate::trace::Trace;
use crate::victim::Victim;
pub(crate) use held_quota::NominationOptions;
use held_quota::first_holders;
pub(crate) use nominate::{NominatedEntry, NominationContext, demands};
use process::{EntryProcessor, ProcessedEntry, TriedFlavors};
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
    VictimLimit,
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
pub enum RequeueDestination {
    /// It is looked at in the next cycle.
    Active,
    /// It is looked at when something has changed.
    Inadmissible,
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
    pub requeued: Option<(RequeueReason, RequeueDestination)>,
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
    pub has_reactivated: bool,
}

impl State {
    /// Decides on the heads of all queues. What is admitted is reserved in the state at once; victims
    /// hold their quota until they are released.
    pub fn next_cycle(&mut self, now_s: i64, is_traced: bool) -> Cycle {
        self.apply_changes();
        self.now_s = now_s;
        self.requeue_expired_backoffs(now_s);
        self.reactivate_after_min_runtime(now_s);
        self.cycle = self.cycle.saturating_add(1);
        let mut cycle = self.pop_heads();
        let mut overlay = std::mem::take(&mut self.overlay);
        let mut overlay_now = std::mem::take(&mut self.overlay_now);
        let overlays = [&mut overlay, &mut overlay_now];
        let decided = self.decide(overlays, &cycle.heads, is_traced);
        (self.overlay, self.overlay_now) = (overlay, overlay_now);
        for it in decided {
            let ProcessedEntry {
                mut entry,
                tried_flavors: tried,
                next_candidate_at_s: soonest_s,
            } = it;
            self.update_holds(&entry);
            self.finish_entry(&mut entry, tried, now_s);
            if let Some(at_s) = soonest_s
                && matches!(entry.requeued, Some((_, RequeueDestination::Inadmissible)))
            {
                self.reactivation_times.insert((at_s, entry.queue));
            }
            cycle.entries.push(entry);
        }
        self.end_unusable_holds(&cycle);
        for id in &cycle.out_of_scope {
            if let Some(record) = self.workloads.get(*id) {
                let (queue, place) = (record.queue, record.queue_key(*id));
                if let Some(queue) = self.pending_queue_mut(queue) {
                    queue.push_out_of_scope(place);
                }
            }
        }
        cycle.has_reactivated = self.reactivate_where_holds_ended();
        cycle
    }

    fn requeue_expired_backoffs(&mut self, now_s: i64) {
        let (queues, records) = self.queues_and_workloads();
        for queue in queues {
            queue.requeue_expired_backoffs(now_s, |id| {
                records
                    .get_mut(id)
                    .map_or((u64::MAX, 0, PreemptionLabels::default()), |record| {
                        record.backoff_until_s = None;
                        record.equivalence_class()
                    })
            });
        }
    }

    /// Looks again at who is parked, where somebody has run for long enough to be taken.
    fn reactivate_after_min_runtime(&mut self, now_s: i64) {
        while let Some((at_s, _)) = self.reactivation_times.first()
            && *at_s <= now_s
            && let Some((_, queue)) = self.reactivation_times.pop_first()
        {
            self.reactivate(queue);
        }
    }

    fn pop_heads(&mut self) -> Cycle {
        let mut cycle = Cycle::default();
        // By name: ties go to the first.
        let names = Arc::clone(&self.queue_names);
        let holders = first_holders(&self.holds, &self.workloads);
        for id in names.values().copied() {
            if self.tree.node(id).is_misconfigured {
                continue;
            }
            if !self
                .pending_queue(id)
                .is_some_and(|it| it.settings.is_active)
            {
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
            if !self
                .workloads
                .get(workload)
                .is_some_and(|it| it.is_in_scope)
            {
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
    ) -> Vec<ProcessedEntry> {
        let mut view = View::new(&self.tree, &self.usage, overlay);
        let mut now = View::new(&self.tree, &self.usage, overlay_now);
        self.apply_holds(&mut view);
        self.apply_holds(&mut now);
        let mut waiting: Vec<NominatedEntry> = heads
            .iter()
            .filter_map(|head| {
                let nominator = NominationContext::for_workload(self, head.workload)?;
                let trace = if is_traced { Trace::on() } else { Trace::off() };
                Some(self.nominate_with_holds(
                    &mut view,
                    &nominator,
                    &NominationOptions::DEFAULT,
                    trace,
                ))
            })
            .collect();
        order::sort(self, &mut waiting);
        let mut round = EntryProcessor::new(self, view, now);
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
    fn finish_entry(&mut self, entry: &mut Entry, tried: TriedFlavors, now_s: i64) {
        let id = entry.workload;
        let reason = match &entry.decision {
            Decision::Admit => {
                let reserved_at_s = now_s.saturating_add(self.reservation_lead_s);
                self.reserve_usage(id, &entry.assignment().usage, reserved_at_s, false);
                return;
            }
            Decision::Preempt(_) | Decision::DeferredFit => RequeueReason::PendingPreemption,
            Decision::Skip(_) => RequeueReason::FailedAfterNomination,
            Decision::NoCandidates => RequeueReason::PreemptionNoCandidates,
            Decision::NoFit => RequeueReason::NoFit,
        };
        let is_pending = reason == RequeueReason::PendingPreemption;
        let is_forgotten = self.options.kueue_bugs.forgets_preemptors;
        let cycle = self.cycle;
        let generation = self
            .pending_queue(entry.queue)
            .map_or(0, |it| it.generation);
        let Some(record) = self.workloads.get_mut(id) else {
            return;
        };
        let tried = if is_pending { Vec::new() } else { tried };
        let has_more = !tried.is_empty();
        record.last_assignment = has_more.then(|| {
            Box::new(LastAssignment {
                tried_flavors: tried,
                cycle,
                generation,
            })
        });
        let (place, class) = (record.queue_key(id), record.equivalence_class());
        let Some(queue) = self.pending_queue_mut(entry.queue) else {
            return;
        };
        let is_strict = queue.settings.strategy == QueueingStrategy::StrictFifo;
        let comes_again = is_pending || reason == RequeueReason::FailedAfterNomination;
        queue.push(place.clone(), class);
        let to = if is_strict || comes_again || has_more {
            RequeueDestination::Active
        } else {
            queue.mark_inadmissible(class);
            RequeueDestination::Inadmissible
        };
        if is_pending && !is_forgotten {
            queue.set_sticky(place, class);
        }
        if to == RequeueDestination::Inadmissible {
            self.note_inadmissible(entry.queue);
        }
        entry.requeued = Some((reason, to));
    }
}

/// What a nominee would use, at the cells of its queue.
fn cells<'a>(
    view: &View<'a>,
    nominee: &'a NominatedEntry,
) -> impl Iterator<Item = (FlavorResource, CellId, Amount)> + use<'a> {
    let node = view.tree.node(nominee.queue);
    let usage = nominee.assignment.usage.iter();
    usage.filter_map(move |(of, amount)| Some((*of, node.cell(*of)?, *amount)))
}

fn remove(state: &State, view: &mut View<'_>, id: WorkloadId) {
    if let Some(running) = state.workloads.admitted(id) {
        for (cell, amount) in state.admitted_index.usage(running) {
            view.remove(cell, amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, SkipReason};

    #[test]
    fn decision_names_match_as_str() {
        let all = [
            Decision::Admit,
            Decision::Preempt(Vec::new()),
            Decision::Skip(SkipReason::VictimLimit),
            Decision::DeferredFit,
            Decision::NoCandidates,
            Decision::NoFit,
        ];
        assert_eq!(all.each_ref().map(Decision::as_str), Decision::NAMES);
    }
}
