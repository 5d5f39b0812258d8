//! The part of a cycle that plans starts and admits behind blocked heads.

use super::backfill_plan::{Plan, Start};
use super::entry::{Cycle, Decision, Entry, RequeueDestination};
use super::nominate::NominationContext;
use crate::backfill::{Backfill, BackfillPolicy, StartBound};
use crate::ids::{NodeId, WorkloadId};
use crate::queue::QueueKey;
use crate::quota::{Overlay, View};
use crate::state::{State, apply_holds, reserve_usage};
use crate::trace::{Step, Trace};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The head of a queue with backfill that does not fit.
struct BlockedHead {
    key: QueueKey,
    queue: NodeId,
    backfill: Backfill,
}

/// A workload behind a head with a planned start.
struct Candidate {
    key: QueueKey,
    policy: BackfillPolicy,
    behind: StartBound,
}

/// Plans the starts of blocked heads, and admits workloads behind them; adds both to the cycle. See [`crate::backfill`].
pub(super) fn backfill(state: &mut State, cycle: &mut Cycle, is_traced: bool) {
    let mut overlay = std::mem::take(&mut state.overlay);
    for (root, heads) in blocked_heads(state, cycle) {
        let decided = decide_tree(state, &mut overlay, root, &heads, is_traced);
        cycle.start_bounds.extend(decided.0);
        for entry in decided.1 {
            let reserved_at_s = state.now_s.saturating_add(state.reservation_lead_s);
            let usage = &entry.assignment().usage;
            reserve_usage(state, entry.workload, usage, reserved_at_s, false);
            cycle.entries.push(entry);
        }
    }
    state.overlay = overlay;
}

/// The blocked heads by the root of their tree, in queue order.
fn blocked_heads(state: &State, cycle: &Cycle) -> BTreeMap<NodeId, Vec<BlockedHead>> {
    let mut by_root: BTreeMap<NodeId, Vec<BlockedHead>> = BTreeMap::new();
    for entry in &cycle.entries {
        let is_blocked = matches!(entry.decision, Decision::NoCandidates | Decision::NoFit)
            && matches!(entry.requeued, Some((_, RequeueDestination::Active)));
        let queue = state.queues.get(entry.queue.index());
        let backfill = queue.and_then(|it| it.settings.backfill);
        if let (true, Some(backfill), Some(row)) =
            (is_blocked, backfill, state.workloads.get(entry.workload))
            // It may fit another flavor in the next cycle.
            && row.last_assignment.is_none()
        {
            let root = state.tree.node(entry.queue).root;
            by_root.entry(root).or_default().push(BlockedHead {
                key: row.queue_key(entry.workload),
                queue: entry.queue,
                backfill,
            });
        }
    }
    for heads in by_root.values_mut() {
        heads.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    }
    by_root
}

/// The planned starts of the heads of a tree, and the workloads behind them that start now.
fn decide_tree(
    state: &State,
    overlay: &mut Overlay,
    root: NodeId,
    heads: &[BlockedHead],
    is_traced: bool,
) -> (Vec<StartBound>, Vec<Entry>) {
    let mut view = View::new(&state.tree, &state.usage, overlay);
    apply_holds(state, &mut view);
    let mut plan = Plan::new(state, root);
    let mut bounds = Vec::new();
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
        bounds.push(bound);
        let queue = state.queues.get(head.queue.index());
        let max = usize::try_from(head.backfill.workloads_max).unwrap_or(usize::MAX);
        let behind = queue.map(|it| it.active_behind(&head.key, max));
        let behind = behind.unwrap_or_default().into_iter();
        candidates.extend(behind.map(|key| Candidate {
            key,
            policy: head.backfill.policy,
            behind: bound,
        }));
    }
    candidates.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut entries = Vec::new();
    for candidate in &candidates {
        let id = candidate.key.id;
        let planned = plan_start(state, &mut view, &mut plan, id, candidate.policy);
        if let Some(start) = planned.filter(|it| it.at_s <= state.now_s) {
            entries.push(admitted_entry(candidate, start, is_traced));
        }
    }
    (bounds, entries)
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
