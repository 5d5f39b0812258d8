//! Whether the policies permit a preemption before a pending workload starts.

use crate::contenders::{Contender, Contest};
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohortPolicy, ClusterQueueSpec, Preemption, ReclaimWithinCohort,
};
use lockkeeper_preemption::{FlavorResource, NodeId, State};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a pending workload of a contest could preempt one of another ClusterQueue, now or later: a preempted workload starts
/// again, so its end is not known. No contest permits preemptions within a ClusterQueue.
///
/// Workloads of a ClusterQueue that never borrows are not preempted by those of others.
pub(crate) fn is_preemption_possible<'a>(
    state: &State,
    contest: &Contest,
    specs: impl Iterator<Item = (NodeId, &'a ClusterQueueSpec)>,
) -> bool {
    let borrowing = borrowing_queues(state, contest);
    let mut specs = specs;
    specs.any(|(queue, spec)| {
        let policy = spec.preemption.clone().unwrap_or_default();
        may_preempt(contest, &borrowing, queue, &policy)
    })
}

fn may_preempt(
    contest: &Contest,
    borrowing: &BTreeSet<NodeId>,
    queue: NodeId,
    policy: &Preemption,
) -> bool {
    let preemptors = all_pending(contest).filter(|it| it.queue == queue);
    let Some(highest) = preemptors.map(|it| it.priority).max() else {
        return false;
    };
    let beyond = lowest(contest, |it| it != queue && borrowing.contains(&it));
    let is_above = |victim: Option<i32>| victim.is_some_and(|it| it < highest);
    let reclaim = match policy.reclaim_within_cohort.unwrap_or_default() {
        ReclaimWithinCohort::Never => false,
        ReclaimWithinCohort::LowerPriority => is_above(beyond),
        ReclaimWithinCohort::Any => beyond.is_some(),
    };
    let policy = policy.borrow_within_cohort.as_ref();
    let while_borrowing = match policy.and_then(|it| it.policy).unwrap_or_default() {
        BorrowWithinCohortPolicy::Never => false,
        BorrowWithinCohortPolicy::LowerPriority => is_above(beyond),
    };
    reclaim || while_borrowing
}

fn all_pending(contest: &Contest) -> impl Iterator<Item = &Contender> {
    contest.pending.iter().chain([&contest.subject])
}

/// The lowest preemption priority of the workloads in some queues.
fn lowest(contest: &Contest, is_selected: impl Fn(NodeId) -> bool) -> Option<i32> {
    let pending = all_pending(contest).map(|it| (it.queue, it.preemption_priority));
    let running = contest.running.iter();
    let running = running.map(|it| (it.queue, it.preemption_priority));
    let all = pending.chain(running).filter(|(it, _)| is_selected(*it));
    all.map(|(_, priority)| priority).min()
}

/// The ClusterQueues whose nominal quota all their workloads together exceed.
fn borrowing_queues(state: &State, contest: &Contest) -> BTreeSet<NodeId> {
    let pending = all_pending(contest).map(|it| (it.queue, &it.most));
    let running = contest.running.iter().map(|it| (it.queue, &it.usage));
    let mut sums: BTreeMap<(NodeId, FlavorResource), i64> = BTreeMap::new();
    for (queue, amounts) in pending.chain(running) {
        for (of, amount) in amounts {
            let sum = sums.entry((queue, *of)).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }
    let exceeding = sums.into_iter().filter(|((queue, of), sum)| {
        let nominal = state.node_view(*queue).nominal(*of);
        *sum > nominal.get()
    });
    exceeding.map(|((queue, _), _)| queue).collect()
}
