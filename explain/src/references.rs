//! References to objects that the input does not have.

use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most references in an answer.
const SHOWN_MAX: usize = 20;

/// The objects that others refer to and that are not in the input, as text, sorted.
pub(crate) fn missing_references(
    cluster_queues: &[ClusterQueue],
    flavors: &[ResourceFlavor],
    local_queues: &[LocalQueue],
    workloads: &[Arc<Workload>],
) -> Vec<String> {
    let mut missing = BTreeSet::new();
    let known: BTreeSet<&str> = flavors
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    for queue in cluster_queues {
        let name = queue.metadata.name.as_deref().unwrap_or_default();
        for group in &queue.spec.resource_groups {
            let missing_here = group
                .flavors
                .iter()
                .filter(|it| !known.contains(it.name.as_str()));
            missing.extend(
                missing_here.map(|it| format!("ResourceFlavor {} of ClusterQueue {name}", it.name)),
            );
        }
    }
    let known: BTreeSet<&str> = cluster_queues
        .iter()
        .filter_map(|it| it.metadata.name.as_deref())
        .collect();
    for queue in local_queues {
        if !known.contains(queue.spec.cluster_queue.as_str()) {
            let namespace = queue.metadata.namespace.as_deref().unwrap_or_default();
            let name = queue.metadata.name.as_deref().unwrap_or_default();
            let target = &queue.spec.cluster_queue;
            missing.insert(format!(
                "ClusterQueue {target} of LocalQueue {namespace}/{name}"
            ));
        }
    }
    let known: BTreeSet<(&str, &str)> = local_queues
        .iter()
        .map(|it| {
            key(
                it.metadata.namespace.as_deref(),
                it.metadata.name.as_deref(),
            )
        })
        .collect();
    for workload in workloads {
        let queue = key(
            workload.metadata.namespace.as_deref(),
            workload.spec.queue_name.as_deref(),
        );
        if workload.spec.queue_name.is_some() && !known.contains(&queue) {
            missing.insert(format!("LocalQueue {}/{} of workloads", queue.0, queue.1));
        }
    }
    let more = missing.len().saturating_sub(SHOWN_MAX);
    let mut shown: Vec<String> = missing.into_iter().take(SHOWN_MAX).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown
}

fn key<'a>(namespace: Option<&'a str>, name: Option<&'a str>) -> (&'a str, &'a str) {
    (namespace.unwrap_or_default(), name.unwrap_or_default())
}
