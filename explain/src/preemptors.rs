//! The ClusterQueues whose workloads could preempt a running workload.

use crate::answer::Preemptor;
use crate::trial::Trial;
use crate::world::World;
use lockkeeper_api::foreign::scheduling::USER_PRIORITY_MAX;
use lockkeeper_cluster_state::{PreemptionCause, preemption_traits};
use lockkeeper_preemption::job::{Preemptibility, PreemptionLabels};
use lockkeeper_preemption::{
    Amount, FlavorResource, NodeId, State, Trace, WhatIf, WorkloadId, WorkloadSpec, mark_stuck,
    quota_levels,
};
use std::collections::BTreeSet;

/// The name of the assumed preemptor. No workload has it: names of workloads contain one slash.
const ASSUMED: &str = "//assumed preemptor";

/// The lowest priority of a workload.
const LOWEST: i32 = i32::MIN;

/// The ClusterQueues of its tree, and the lowest priority with which a new workload there could preempt it.
///
/// For each ClusterQueue and priority, the core searches victims for a workload that requests a little more than what is
/// free, with the explained workload as the only candidate.
pub(crate) fn preemptors(trial: &mut Trial, id: WorkloadId) -> Vec<Preemptor> {
    let state = trial.cluster.state_mut();
    for other in &trial.others {
        mark_stuck(state, *other);
    }
    let view = state.workload_view(id);
    let Some(reservation) = view.reservation() else {
        return Vec::new();
    };
    let own = view.preemption_priority();
    let priorities: BTreeSet<i32> = [LOWEST, own, own.saturating_add(1), USER_PRIORITY_MAX].into();
    let mut found = Vec::new();
    for queue in &trial.queues {
        let attempts = reservation
            .usage
            .iter()
            .flat_map(|(of, _)| priorities.iter().map(move |it| (*it, *of)));
        let mut attempts: Vec<(i32, FlavorResource)> = attempts.collect();
        // The lowest priority comes first.
        attempts.sort_unstable_by_key(|(priority, _)| *priority);
        let preemptor = attempts.into_iter().find_map(|(priority, of)| {
            let reason = reason_to_preempt(state, id, queue, priority, of)?;
            Some(Preemptor {
                cluster_queue: queue.clone(),
                priority_min: (priority > LOWEST).then_some(priority),
                reason,
            })
        });
        found.extend(preemptor);
    }
    found
}

/// The ClusterQueues that place workloads on nodes, and the lowest priority with which a new workload there could preempt it for
/// the room of its pods: any higher one. Empty without nodes, and for a workload that is never a victim there.
pub(crate) fn preemptors_on_nodes(world: &World, trial: &Trial, id: WorkloadId) -> Vec<Preemptor> {
    let objects = world.cluster.objects();
    let admission = trial.workload.status.as_ref();
    let admission = admission.and_then(|it| it.admission.as_ref());
    let queue = admission.map_or("", |it| &it.cluster_queue);
    let traits = preemption_traits(objects, &trial.workload, queue);
    let own = trial
        .cluster
        .state()
        .workload_view(id)
        .preemption_priority();
    if world.nodes.is_none()
        || traits.preemptibility == Preemptibility::NonPreemptible
        || own >= USER_PRIORITY_MAX
    {
        return Vec::new();
    }
    let queues = objects.cluster_queue_names();
    let placing = queues.filter(|it| objects.places_on_nodes(it));
    let preemptors = placing.map(|it| Preemptor {
        cluster_queue: it.to_owned(),
        priority_min: Some(own.saturating_add(1)),
        reason: PreemptionCause::Nodes.as_str(),
    });
    preemptors.collect()
}

/// The reason with which a workload of this ClusterQueue and priority could preempt the workload.
fn reason_to_preempt(
    state: &mut State,
    workload: WorkloadId,
    queue: &str,
    priority: i32,
    of: FlavorResource,
) -> Option<&'static str> {
    let node = state.queue(queue)?;
    let request = one_more_than_free(state, node, of)?;
    let assumed = state.add_pending(WorkloadSpec {
        name: ASSUMED,
        uid: ASSUMED,
        queue,
        priority,
        preemption_priority: None,
        // Submitted last.
        order_time: i64::MAX,
        waiting_since_s: i64::MIN,
        pod_sets: Vec::new(),
        is_in_scope: true,
        preemption_labels: PreemptionLabels::default(),
    });
    let victims = WhatIf::new(state).search(assumed, &[of], &[(of, request)], &mut Trace::off());
    state.remove(assumed);
    let victim = victims.into_iter().find(|it| it.workload == workload);
    victim.map(|it| it.reason.as_str())
}

/// A request that exceeds the free quota of a queue by one unit; `None` if the queue has no quota of it.
fn one_more_than_free(state: &mut State, queue: NodeId, of: FlavorResource) -> Option<Amount> {
    let levels = quota_levels(state, queue, of);
    let free = levels.first()?.available.or_zero();
    (!free.is_unlimited()).then(|| free.plus(Amount::new(1)))
}
