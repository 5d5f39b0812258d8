//! Requested resources that the ClusterQueue of a workload does not cover.

use crate::cluster_state::ClusterState;
use crate::pod_requests::{is_excluded, requested_resources};
use crate::workload_sync::has_no_quota;
use lockkeeper_api::Workload;
use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use std::collections::BTreeSet;

/// The most resources, and the most LocalQueues for each, that a message names.
const NAMES_MAX: usize = 4;

/// The message of a pending workload whose ClusterQueue does not cover a requested resource: the pod set, the resource
/// and the LocalQueues of the namespace that cover it. `None` if all are covered, or if the ClusterQueue does not exist.
#[must_use]
pub fn uncovered_resources_message(cluster: &ClusterState, workload: &Workload) -> Option<String> {
    let objects = cluster.objects();
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let local_queue = workload.spec.queue_name.as_deref()?;
    let name = &objects.local_queue(namespace, local_queue)?.cluster_queue;
    let pod_sets = uncovered_by_pod_set(cluster, workload)?;
    let parts = pod_sets.iter().map(|(pod_set, uncovered)| {
        format!("pod set {pod_set} requests {}", first_names(uncovered))
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        return None;
    }
    let resources: BTreeSet<&String> = pod_sets.iter().flat_map(|(_, it)| it).collect();
    let remedies = resources.iter().take(NAMES_MAX);
    let remedies: Vec<String> = remedies.map(|it| remedy(cluster, namespace, it)).collect();
    Some(format!(
        "Resource not covered: {}, which ClusterQueue {name} does not cover; {}",
        parts.join(", "),
        remedies.join("; ")
    ))
}

/// The requested resources that the ClusterQueue of a workload does not cover. Empty if all are covered, or if the ClusterQueue
/// does not exist.
#[must_use]
pub fn uncovered_resources(cluster: &ClusterState, workload: &Workload) -> BTreeSet<String> {
    let pod_sets = uncovered_by_pod_set(cluster, workload).into_iter();
    pod_sets.flatten().flat_map(|(_, it)| it).collect()
}

/// The uncovered resources of the pod sets that have any; `None` if the ClusterQueue does not exist or has no quota.
fn uncovered_by_pod_set<'a>(
    cluster: &ClusterState,
    workload: &'a Workload,
) -> Option<Vec<(&'a str, Vec<String>)>> {
    let objects = cluster.objects();
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let local_queue = workload.spec.queue_name.as_deref()?;
    let name = &objects.local_queue(namespace, local_queue)?.cluster_queue;
    let spec = &objects.cluster_queues.get(name)?.spec;
    if has_no_quota(spec) {
        return None;
    }
    let pod_sets = workload.spec.pod_sets.iter().map(|pod_set| {
        let requested =
            requested_resources(namespace, &pod_set.template, &objects.pod_defaults).into_iter();
        let uncovered = requested.filter(|it| {
            !covers(spec, it) && !is_excluded(it, &objects.excluded_resource_prefixes)
        });
        (pod_set.name(), uncovered.collect::<Vec<String>>())
    });
    Some(pod_sets.filter(|(_, it)| !it.is_empty()).collect())
}

fn covers(spec: &ClusterQueueSpec, resource: &str) -> bool {
    let mut covered = spec
        .resource_groups
        .iter()
        .flat_map(|it| &it.covered_resources);
    covered.any(|it| it == resource)
}

fn first_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn remedy(cluster: &ClusterState, namespace: &str, resource: &str) -> String {
    let objects = cluster.objects();
    let local_queues = objects
        .local_queues
        .range((namespace.to_owned(), String::new())..)
        .take_while(|((it, _), _)| it == namespace);
    let covering = local_queues.filter(|(_, local_queue)| {
        let queue = objects.cluster_queues.get(&local_queue.cluster_queue);
        queue.is_some_and(|it| covers(&it.spec, resource))
    });
    let names: Vec<String> = covering.map(|((_, name), _)| name.clone()).collect();
    match names.as_slice() {
        [] => format!(
            "remove the request, or add {resource} to spec.resourceGroups of the ClusterQueue"
        ),
        [name] => format!("{resource} is covered by LocalQueue {name}"),
        names => format!(
            "{resource} is covered by LocalQueues {}",
            first_names(names)
        ),
    }
}
