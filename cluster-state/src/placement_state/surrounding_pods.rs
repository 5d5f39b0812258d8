//! The pods around the pods of a request, for messages.

use super::request::PlacementRequest;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{
    InterPodCounts, InterPodTable, Overlay, Pod, Strategy, place_beside_pods,
};
use lockkeeper_preemption::{HostId, PodId};

/// The pods around a request: all, or those that it cannot preempt.
pub(super) fn counts<'a>(
    cluster: &GangCluster,
    table: &'a InterPodTable<'a>,
    request: &PlacementRequest<'_>,
    with_lower: bool,
) -> InterPodCounts<'a> {
    let mut counts = InterPodCounts::new(table);
    if !with_lower {
        for (pod, host) in lower_pods(cluster, request, table.counted_pods()) {
            counts.remove(pod, host);
        }
    }
    counts
}

/// Places the pods of a request beside these pods. Returns the index of the first pod that fits nowhere, and how many pods
/// fit; adds those to the counts. Costs all pods, and those of the request times the nodes.
pub(super) fn failing_pod(
    cluster: &GangCluster,
    counts: &mut InterPodCounts<'_>,
    request: &PlacementRequest<'_>,
    pods: &[PodId],
    with_lower: bool,
) -> (usize, usize) {
    let nodes = cluster.cluster();
    let hosts: Vec<HostId> = nodes.hosts().collect();
    let mut overlay = Overlay::dense(nodes, nodes.hosts_len(), nodes.resources_len());
    if !with_lower {
        for (pod, host) in lower_pods(cluster, request, nodes.pods().map(|it| it.0)) {
            overlay.release(host, nodes.requests(pod));
        }
    }
    let placement = place_beside_pods(&mut overlay, counts, &hosts, pods, Strategy::default());
    let failing = placement.iter().position(Option::is_none);
    let placed = placement.iter().flatten().count();
    (failing.unwrap_or_default(), placed)
}

/// The bound pods that a request can preempt.
fn lower_pods<'a>(
    cluster: &'a GangCluster,
    request: &'a PlacementRequest<'_>,
    pods: impl Iterator<Item = PodId> + 'a,
) -> impl Iterator<Item = (PodId, HostId)> + 'a {
    let workloads = cluster.workloads();
    let lower = pods.filter(move |it| workloads.preemption_priority(*it) < request.priority);
    lower.filter_map(|it| Some((it, cluster.cluster().pod(it).and_then(Pod::host)?)))
}
