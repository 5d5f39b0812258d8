//! Counts the usage of non-preemptible workloads in elastic queues.

use super::model::State;
use crate::amount::Amount;
use crate::assignment::PodSet;
use crate::ids::{NodeId, ResourceId, WorkloadId};
use crate::job::ElasticDefaults;
use crate::non_preemptible::update_sum;
use crate::workload_table::WorkloadRow;

/// Adds the usage or the requests of a workload to the non-preemptible usage of its queue; returns the
/// queue, or `None` if the workload is preemptible there.
pub(crate) fn add_non_preemptible_usage(state: &mut State, id: WorkloadId) -> Option<NodeId> {
    change_non_preemptible_usage(state, id, Amount::plus)
}

/// Reverts [`add_non_preemptible_usage`]. The usage of the workload must not have changed since.
pub(crate) fn remove_non_preemptible_usage(state: &mut State, id: WorkloadId) -> Option<NodeId> {
    change_non_preemptible_usage(state, id, Amount::minus)
}

fn change_non_preemptible_usage(
    state: &mut State,
    id: WorkloadId,
    by: impl Fn(Amount, Amount) -> Amount,
) -> Option<NodeId> {
    if !state.has_elastic {
        return None;
    }
    let row = state.workloads.get(id)?;
    let queue = state.queues.get_mut(row.queue.index())?;
    if !queue.settings.protects(row.preemption_labels) || !row.is_in_scope && row.admitted.is_none()
    {
        return None;
    }
    let non_preemptible = queue.non_preemptible.get_or_insert_default();
    if let Some(admitted) = &row.admitted {
        let group = state
            .admitted_index
            .group(admitted.queue, admitted.usage_group);
        for (of, amount) in group
            .flavor_resources
            .iter()
            .zip(admitted.amounts.as_slice())
        {
            update_sum(&mut non_preemptible.used, *of, |sum| by(sum, *amount));
        }
    } else {
        for (resource, amount) in total_requests(row) {
            update_sum(&mut non_preemptible.pending, resource, |sum| {
                by(sum, amount)
            });
        }
    }
    Some(row.queue)
}

/// Recounts the workloads of a queue after its elastic defaults have changed. Costs all workloads.
pub(crate) fn recount_non_preemptible_usage(
    state: &mut State,
    queue: NodeId,
    elastic: Option<ElasticDefaults>,
) {
    state.has_elastic |= elastic.is_some();
    if let Some(queue) = state.queues.get_mut(queue.index()) {
        queue.non_preemptible = None;
    }
    let of_queue = state.workloads.iter().filter(|(_, it)| it.queue == queue);
    let ids: Vec<WorkloadId> = of_queue.map(|(id, _)| id).collect();
    for id in ids {
        add_non_preemptible_usage(state, id);
    }
}

/// Returns the requests of all pods of a workload, and the number of pods where `pods` is not requested.
fn total_requests(row: &WorkloadRow) -> impl Iterator<Item = (ResourceId, Amount)> {
    let is_counted = |pod_set: &PodSet| {
        let mut requests = pod_set.requests.iter();
        requests.any(|(it, _)| *it == ResourceId::PODS)
    };
    row.pod_sets.iter().flat_map(move |pod_set| {
        let pods = (ResourceId::PODS, Amount::new(pod_set.count));
        let pods = (!is_counted(pod_set)).then_some(pods);
        pod_set.requests.iter().copied().chain(pods)
    })
}
