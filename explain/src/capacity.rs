//! Requests of pending workloads that no amount of waiting satisfies.

use crate::trial::Trial;
use crate::world::World;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_cluster_state::quantity;
use lockkeeper_preemption::{Amount, FlavorResource, NodeId, PodSet, State, quota_levels};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod set of a pending workload.
#[derive(Clone, Debug)]
pub struct PendingPodSet {
    /// The workload, as `namespace/name`.
    pub workload: String,
    /// Its ClusterQueue.
    pub cluster_queue: String,
    /// The name of the pod set.
    pub name: String,
    /// The flavors of the ClusterQueue that its pods may use.
    pub flavors: Vec<String>,
    /// The template of its pods, reduced to the fields that decisions read.
    pub template: Arc<PodTemplateSpec>,
    /// The requests that exceed what the ClusterQueue could use if no other workload used quota.
    pub excesses: Vec<Excess>,
}

/// A request that exceeds what a ClusterQueue can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The resource.
    pub resource: String,
    /// The least that the pod set accepts.
    pub requested: Quantity,
    /// The most that one flavor could give.
    pub most: Quantity,
}

/// A pod set in the core's values.
struct CorePodSet {
    workload: String,
    queue: NodeId,
    pod_set: PodSet,
    template: Arc<PodTemplateSpec>,
}

/// The pod sets of all pending workloads, by workload. Costs a walk of the cohort path for each request.
#[must_use]
pub fn pending_pod_sets(world: &World) -> Vec<PendingPodSet> {
    let pending = core_pod_sets(world);
    let mut empty = world.cluster.clone();
    for key in world.workload_keys() {
        empty.remove_workload(key);
    }
    let state = empty.state_mut();
    let pod_sets = pending.into_iter().filter_map(|it| {
        let name = state.node_view(it.queue).name().to_owned();
        let queue = world.cluster.objects().cluster_queue(&name)?;
        let groups = queue.spec.resource_groups.iter();
        let flavors = groups.flat_map(|it| &it.flavors);
        let flavors = flavors.map(|it| it.name.clone());
        let eligible = flavors.filter(|name| {
            let flavor = state.flavor(name);
            !it.pod_set.ineligible.contains(&flavor)
        });
        Some(PendingPodSet {
            workload: it.workload,
            cluster_queue: name.clone(),
            name: it.pod_set.name.to_string(),
            flavors: eligible.collect(),
            template: it.template,
            excesses: excesses(state, it.queue, queue, &it.pod_set),
        })
    });
    pod_sets.collect()
}

/// The requests of a pod set of a trial's workload that exceed what its ClusterQueue could use if no other workload used quota,
/// with the name of the pod set; of the first such pod set.
pub(crate) fn first_excesses(trial: &Trial) -> Option<(String, Vec<Excess>)> {
    let id = trial.id()?;
    let mut empty = trial.cluster.clone();
    let state = empty.state_mut();
    for other in &trial.others {
        state.remove(*other);
    }
    let queue = state.workload_view(id).queue()?;
    let pod_sets = state.workload_view(id).pod_sets().to_vec();
    pod_sets.into_iter().find_map(|pod_set| {
        let excesses = excesses(state, queue, &trial.queue, &pod_set);
        (!excesses.is_empty()).then(|| (pod_set.name.to_string(), excesses))
    })
}

fn core_pod_sets(world: &World) -> Vec<CorePodSet> {
    let state = world.cluster.state();
    let mut out = Vec::new();
    for (key, workload) in &world.workloads {
        let Some(id) = state.workload(key) else {
            continue;
        };
        let view = state.workload_view(id);
        let (Some(queue), None) = (view.queue(), view.reservation()) else {
            continue;
        };
        let templates: BTreeMap<&str, &Arc<PodTemplateSpec>> = workload
            .spec
            .pod_sets
            .iter()
            .map(|it| (it.name(), &it.template))
            .collect();
        for pod_set in view.pod_sets() {
            if let Some(template) = templates.get(&*pod_set.name) {
                out.push(CorePodSet {
                    workload: key.clone(),
                    queue,
                    pod_set: pod_set.clone(),
                    template: Arc::clone(template),
                });
            }
        }
    }
    out
}

/// The requests of a pod set that exceed what one of its flavors could give. A pod set gets one flavor for each resource.
fn excesses(
    state: &mut State,
    queue: NodeId,
    object: &ClusterQueue,
    pod_set: &PodSet,
) -> Vec<Excess> {
    let least = pod_set.count_min.unwrap_or(pod_set.count);
    let mut out = Vec::new();
    for (resource, total) in &pod_set.requests {
        let name = state.resource_name(*resource).to_owned();
        let mut groups = object.spec.resource_groups.iter();
        // Uncovered resources have a reason of their own.
        let Some(group) = groups.find(|it| it.covered_resources.contains(&name)) else {
            continue;
        };
        let mut most = Amount::ZERO;
        for flavor in &group.flavors {
            let flavor = state.flavor(&flavor.name);
            if pod_set.ineligible.contains(&flavor) {
                continue;
            }
            let of = FlavorResource {
                flavor,
                resource: *resource,
            };
            let levels = quota_levels(state, queue, of);
            most = most.max(levels.first().map_or(Amount::ZERO, |it| it.available));
        }
        let requested = pod_set.scaled_request(*total, least);
        if requested > most {
            out.push(Excess {
                requested: quantity(&name, requested),
                most: quantity(&name, most),
                resource: name,
            });
        }
    }
    out
}
