//! The part of a cycle that plans starts and admits behind blocked heads.

use super::backfill_plan::{Plan, Start};
use super::entry::{Decision, Entry};
use super::nominate::NominationContext;
use super::process::ProcessedEntry;
use crate::backfill::{Backfill, BackfillPolicy, StartBound};
use crate::ids::{NodeId, WorkloadId};
use crate::queue::{QueueKey, active_behind};
use crate::quota::View;
use crate::state::{State, apply_holds};
use crate::trace::{Step, Trace};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The head of a queue with backfill that does not fit.
pub(super) struct BlockedHead {
    key: QueueKey,
    queue: NodeId,
    backfill: Backfill,
}

impl BlockedHead {
    /// Returns the head of an entry; `None` if its queue has no backfill, or it may start in the next cycle.
    pub(super) fn new(state: &State, processed: &ProcessedEntry) -> Option<Self> {
        let entry = &processed.entry;
        let is_blocked = matches!(entry.decision, Decision::NoCandidates | Decision::NoFit)
            // It may fit another flavor in the next cycle.
            && processed.tried_flavors.is_empty();
        if !state.has_backfill || !is_blocked {
            return None;
        }
        let settings = &state.queues.get(entry.queue.index())?.settings;
        let row = state.workloads.get(entry.workload)?;
        Some(Self {
            key: row.queue_key(entry.workload),
            queue: entry.queue,
            backfill: settings.backfill?,
        })
    }
}

/// A workload behind a head with a planned start.
struct Candidate {
    key: QueueKey,
    policy: BackfillPolicy,
    behind: StartBound,
}

/// The planned starts of blocked heads, and the entries of workloads behind them that start now.
#[derive(Default)]
pub(super) struct Backfilled {
    pub(super) start_bounds: Vec<StartBound>,
    pub(super) entries: Vec<Entry>,
}

/// Plans the starts of blocked heads, and selects workloads behind them. See [`crate::backfill`].
pub(super) fn backfill(
    state: &mut State,
    blocked: Vec<BlockedHead>,
    is_traced: bool,
) -> Backfilled {
    let mut by_root: BTreeMap<NodeId, Vec<BlockedHead>> = BTreeMap::new();
    for head in blocked {
        let root = state.tree.node(head.queue).root;
        by_root.entry(root).or_default().push(head);
    }
    let mut backfilled = Backfilled::default();
    // Moved out while the decision borrows the state, and back to reuse the memory.
    let mut overlay = std::mem::take(&mut state.overlay);
    for (root, mut heads) in by_root {
        heads.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let view = View::new(&state.tree, &state.usage, &mut overlay);
        decide_tree(state, view, root, &heads, is_traced, &mut backfilled);
    }
    state.overlay = overlay;
    backfilled
}

/// Backfill in one tree of cohorts; the heads are in queue order.
fn decide_tree(
    state: &State,
    mut view: View<'_>,
    root: NodeId,
    heads: &[BlockedHead],
    is_traced: bool,
    out: &mut Backfilled,
) {
    apply_holds(state, &mut view);
    let mut plan = Plan::new(state, root);
    let mut candidates = Vec::new();
    for head in heads {
        let Some(start) = plan_head(state, &mut view, &mut plan, head.key.id) else {
            continue;
        };
        let bound = StartBound {
            workload: head.key.id,
            queue: head.queue,
            starts_by_s: start.at_s,
            is_guaranteed: start.is_guaranteed,
        };
        out.start_bounds.push(bound);
        let queue = state.queues.get(head.queue.index());
        let max = usize::try_from(head.backfill.workloads_max).unwrap_or(usize::MAX);
        let behind = queue.map(|it| active_behind(it, &head.key, max));
        let behind = behind.unwrap_or_default().into_iter();
        candidates.extend(behind.map(|key| Candidate {
            key,
            policy: head.backfill.policy,
            behind: bound,
        }));
    }
    candidates.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    for candidate in &candidates {
        let id = candidate.key.id;
        let planned = plan_start(state, &mut view, &mut plan, id, candidate.policy);
        if let Some(start) = planned.filter(|it| it.at_s <= state.now_s) {
            out.entries
                .push(admitted_entry(candidate, start, is_traced));
        }
    }
}

/// Adds the start of a head to the plan, and returns it if it is later than now: a head that fits now starts in the next
/// cycle. A guaranteed start is preferred, so that it stays guaranteed while other queues borrow.
fn plan_head(state: &State, view: &mut View<'_>, plan: &mut Plan, id: WorkloadId) -> Option<Start> {
    let context = NominationContext::for_workload(state, id)?;
    let duration_s = state.workloads.get(id)?.execution_time_max_s;
    if let Some(start) = plan.start_now(view, &context, duration_s) {
        plan.reserve(view, &start, duration_s);
        return None;
    }
    let start = plan.earliest_guaranteed(view, &context, duration_s)?;
    plan.reserve(view, &start, duration_s);
    if start.is_guaranteed {
        plan.guarantee(&start);
    }
    Some(start)
}

/// Adds the start of a workload to the plan: the earliest, or with the policy `Easy` only one now.
fn plan_start(
    state: &State,
    view: &mut View<'_>,
    plan: &mut Plan,
    id: WorkloadId,
    policy: BackfillPolicy,
) -> Option<Start> {
    let row = state.workloads.get(id).filter(|it| it.is_in_scope)?;
    let context = NominationContext::for_workload(state, id)?;
    let duration_s = row.execution_time_max_s;
    let start = match policy {
        BackfillPolicy::Easy => plan.start_now(view, &context, duration_s),
        BackfillPolicy::Conservative => plan.earliest(view, &context, duration_s),
    }?;
    plan.reserve(view, &start, duration_s);
    Some(start)
}

fn admitted_entry(candidate: &Candidate, start: Start, is_traced: bool) -> Entry {
    let mut trace = if is_traced { Trace::on() } else { Trace::off() };
    let StartBound {
        workload: head,
        queue,
        starts_by_s,
        ..
    } = candidate.behind;
    trace.record(|| Step::Backfilled { head, starts_by_s });
    Entry {
        workload: candidate.key.id,
        queue,
        reserved: start.assignment.usage.clone(),
        nominated: Arc::new(start.assignment),
        nominated_victims: Vec::new(),
        recomputed: None,
        decision: Decision::Admit,
        displaced: Vec::new(),
        requeued: None,
        trace,
    }
}
