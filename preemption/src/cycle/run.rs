//! Runs one cycle: takes the heads, nominates, orders and decides, and requeues.

use super::backfill::{BlockedHead, backfill};
use super::entry::{Cycle, Decision, Entry, Head, RequeueDestination, RequeueReason};
use super::held_quota::{
    NominationOptions, end_unusable_holds, first_holders, nominate_with_holds, update_holds,
};
use super::nominate::{NominatedEntry, NominationContext};
use super::order;
use super::process::{EntryProcessor, ProcessedEntry, TriedFlavors};
use super::reuse::{known_nomination, reusable_version};
use crate::ids::NodeId;
use crate::known_nomination::KnownNomination;
use crate::policy::QueueingStrategy;
use crate::queue::LastAssignment;
use crate::quota::{Overlay, View};
use crate::state::{State, apply_holds, reactivate, reactivate_where_holds_ended, reserve_usage};
use crate::trace::Trace;

impl State {
    /// Decides on the heads of all queues. Admitted workloads reserve their quota in the state at once;
    /// victims keep theirs until [`Self::release`].
    pub fn next_cycle(&mut self, now_s: i64, is_traced: bool) -> Cycle {
        self.apply_changes();
        self.now_s = now_s;
        requeue_expired_backoffs(self, now_s);
        reactivate_after_min_runtime(self, now_s);
        self.cycle = self.cycle.saturating_add(1);
        let mut cycle = heads(self);
        let mut blocked = Vec::new();
        for processed in decide(self, &cycle.heads, is_traced) {
            blocked.extend(BlockedHead::new(self, &processed));
            let ProcessedEntry {
                mut entry,
                tried_flavors,
                reusable_version,
                next_candidate_at_s,
            } = processed;
            update_holds(self, &entry);
            finish_entry(self, &mut entry, tried_flavors, now_s);
            keep_nomination(self, &entry, reusable_version);
            // No event marks the end of a minimum run time or of a delay, so a cycle at that second reactivates.
            let is_unsuccessful =
                matches!(entry.decision, Decision::NoCandidates | Decision::NoFit);
            if let Some(at_s) = next_candidate_at_s
                && is_unsuccessful
                && at_s > now_s
            {
                self.reactivation_times.insert((at_s, entry.queue));
            }
            cycle.entries.push(entry);
        }
        if !blocked.is_empty() {
            let backfilled = backfill(self, blocked, is_traced);
            cycle.start_bounds = backfilled.start_bounds;
            for mut entry in backfilled.entries {
                finish_entry(self, &mut entry, TriedFlavors::new(), now_s);
                cycle.entries.push(entry);
            }
        }
        end_unusable_holds(self, &cycle);
        // Heads without a nomination (Kueue: `NamespaceMismatch`).
        for id in &cycle.out_of_scope {
            if let Some(record) = self.workloads.get(*id) {
                let (key, class) = (record.queue_key(*id), record.equivalence_class());
                if let Some(queue) = self.queues.get_mut(record.queue.index()) {
                    queue.move_out_of_scope(key, class);
                }
            }
        }
        cycle.has_reactivated = reactivate_where_holds_ended(self);
        cycle
    }
}

/// Counts a cycle without running it, for callers that know that it would repeat the last cycle and change nothing: no
/// workload was admitted, preempted or made inadmissible in the last cycle, its heads have no flavors left to try, and
/// nothing has changed since.
pub const fn count_repeated_cycle(state: &mut State) {
    state.cycle = state.cycle.saturating_add(1);
}

/// Puts the workloads whose backoff has ended into their queues, as the next cycle does first. For callers that run a cycle only
/// if [`has_heads`](crate::has_heads) returns true, which does not consider workloads in backoff.
pub fn requeue_expired_backoffs(state: &mut State, now_s: i64) {
    let workloads = &mut state.workloads;
    for queue in &mut state.queues {
        queue.requeue_expired_backoffs(now_s, |id| {
            workloads.get_mut(id).map(|record| {
                record.backoff_until_s = None;
                record.equivalence_class()
            })
        });
    }
}

/// Reactivates queues in whose tree a candidate has reached its minimum run time.
fn reactivate_after_min_runtime(state: &mut State, now_s: i64) {
    while let Some((at_s, _)) = state.reactivation_times.first()
        && *at_s <= now_s
        && let Some((_, queue)) = state.reactivation_times.pop_first()
    {
        reactivate(state, queue);
    }
}

/// The heads stay in their queues until they are decided.
pub(super) fn heads(state: &State) -> Cycle {
    let mut cycle = Cycle::default();
    let holders = first_holders(&state.holds, &state.workloads);
    // In the order of names, so that ties go to the first name.
    for id in state.queue_names.values().copied() {
        // Queues in or below a cohort cycle are excluded from all decisions.
        if state.tree.node(id).is_misconfigured {
            continue;
        }
        let queue = state.queues.get(id.index());
        let Some(queue) = queue.filter(|it| it.settings.is_active) else {
            continue;
        };
        // A preemptor with held quota comes first: to all others that quota counts as used.
        let preferred = holders
            .get(&id)
            .and_then(|(key, class)| queue.preferred_head(key, *class));
        let Some(workload) = preferred.or_else(|| queue.head()) else {
            continue;
        };
        let is_sticky = queue.is_sticky(workload);
        if !state
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

/// Nominates the heads and processes them in order.
pub(super) fn decide(state: &mut State, heads: &[Head], is_traced: bool) -> Vec<ProcessedEntry> {
    // Moved out while the decision borrows the state, and back to reuse the memory.
    let mut overlay = std::mem::take(&mut state.overlay);
    let mut overlay_now = std::mem::take(&mut state.overlay_now);
    let decided = decide_in(state, [&mut overlay, &mut overlay_now], heads, is_traced);
    (state.overlay, state.overlay_now) = (overlay, overlay_now);
    decided
}

fn decide_in(
    state: &State,
    [overlay, overlay_now]: [&mut Overlay; 2],
    heads: &[Head],
    is_traced: bool,
) -> Vec<ProcessedEntry> {
    let mut view = View::new(&state.tree, &state.usage, overlay);
    let mut admitted_view = View::new(&state.tree, &state.usage, overlay_now);
    apply_holds(state, &mut view);
    apply_holds(state, &mut admitted_view);
    // Heads do not see each other: each is nominated with the same usage, as in Kueue.
    let mut nominated: Vec<NominatedEntry> = heads
        .iter()
        .filter_map(|head| {
            let context = NominationContext::for_workload(state, head.workload)?;
            let version = reusable_version(&context);
            if let (Some(version), false) = (version, is_traced)
                && let Some(nominee) = known_nomination(&context, version)
            {
                return Some(nominee);
            }
            let trace = if is_traced { Trace::on() } else { Trace::off() };
            let options = &NominationOptions::DEFAULT;
            let mut nominee = nominate_with_holds(state, &mut view, &context, options, trace);
            nominee.reusable_version = version;
            Some(nominee)
        })
        .collect();
    order::sort(state, &mut nominated);
    let mut processor = EntryProcessor::new(state, view, admitted_view);
    let mut decided = Vec::with_capacity(nominated.len());
    if order::is_fair(&state.options) {
        // Each reservation changes the shares, so the next entry is selected again every time.
        while let Some(at) = order::next(state, &mut processor.view, &nominated) {
            decided.push(processor.process(nominated.remove(at)));
        }
    } else {
        decided.extend(nominated.into_iter().map(|entry| processor.process(entry)));
    }
    decided
}

/// Keeps the nomination of a head that stays in its queue.
fn keep_nomination(state: &mut State, entry: &Entry, version: Option<u64>) {
    let Some(row) = state.workloads.get_mut(entry.workload) else {
        return;
    };
    let is_kept = match entry.requeued {
        Some((_, RequeueDestination::Active)) => true,
        // It becomes active only after a change of its tree, which may be one of flavors that it cannot use.
        Some((_, RequeueDestination::Inadmissible)) => {
            row.pod_sets.iter().any(|it| !it.ineligible.is_empty())
        }
        None => false,
    };
    let Some(version) = version.filter(|_| is_kept) else {
        row.nomination = None;
        return;
    };
    let (assignment, victims) = (&entry.nominated, &entry.nominated_victims);
    let known = || KnownNomination::new(version, assignment, victims);
    if let Some(before) = &mut row.nomination {
        if !before.renew(version, assignment) {
            // Reuses the memory.
            **before = known();
        }
    } else {
        row.nomination = Some(Box::new(known()));
    }
}

/// Applies the decision on an entry: reserves its quota or requeues it.
fn finish_entry(state: &mut State, entry: &mut Entry, tried_flavors: TriedFlavors, now_s: i64) {
    let id = entry.workload;
    let reason = match &entry.decision {
        Decision::Admit => {
            // The lead is set by `State::treat_new_as_newest`.
            let reserved_at_s = now_s.saturating_add(state.reservation_lead_s);
            reserve_usage(state, id, &entry.assignment().usage, reserved_at_s, false);
            return;
        }
        Decision::Preempt(_) | Decision::DeferredFit => RequeueReason::PendingPreemption,
        Decision::Skip(_) => RequeueReason::FailedAfterNomination,
        Decision::NoCandidates => RequeueReason::PreemptionNoCandidates,
        Decision::NoFit => RequeueReason::NoFit,
    };
    let is_pending = reason == RequeueReason::PendingPreemption;
    let forgets_preemptors = state.options.kueue_bugs.forgets_preemptors;
    // Kueue drops them after a preemption or a deferred fit, and keeps them after a skip.
    let tried_flavors = if is_pending {
        Vec::new()
    } else {
        tried_flavors
    };
    let has_untried_flavors = !tried_flavors.is_empty();
    let last_assignment = last_assignment(state, entry.queue, tried_flavors);
    let Some(record) = state.workloads.get_mut(id) else {
        return;
    };
    record.last_assignment = last_assignment;
    let (key, class) = (record.queue_key(id), record.equivalence_class());
    let Some(queue) = state.queues.get_mut(entry.queue.index()) else {
        return;
    };
    let is_strict = queue.settings.strategy == QueueingStrategy::StrictFifo;
    let is_retried = is_pending || reason == RequeueReason::FailedAfterNomination;
    // The head of a `StrictFIFO` queue blocks the queue and is tried again in every cycle.
    let to = if is_strict || is_retried || has_untried_flavors {
        RequeueDestination::Active
    } else {
        // Kueue gate `SchedulingEquivalenceHashing`: all equivalent workloads would fail as well.
        queue.mark_inadmissible(class);
        let interner = &state.pod_set_interner;
        queue.drop_unknown_classes(|id| interner.is_known(id));
        RequeueDestination::Inadmissible
    };
    // First in its queue until it leaves the queue or another preemptor replaces it (Kueue).
    if is_pending && !forgets_preemptors {
        queue.set_sticky(key, class);
    }
    if to == RequeueDestination::Inadmissible {
        state.inadmissible.insert(&state.tree, entry.queue);
    }
    entry.requeued = Some((reason, to));
}

/// Where the next search of flavors continues; `None` if it begins again.
pub(super) fn last_assignment(
    state: &State,
    queue: NodeId,
    tried_flavors: TriedFlavors,
) -> Option<Box<LastAssignment>> {
    let generation = state
        .queues
        .get(queue.index())
        .map_or(0, |it| it.generation);
    (!tried_flavors.is_empty()).then(|| {
        Box::new(LastAssignment {
            tried_flavors,
            cycle: state.cycle,
            generation,
        })
    })
}
