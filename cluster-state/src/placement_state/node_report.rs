//! What each node has for the pods of a request, for answers to users.

use super::obstacles::node_obstacle;
use super::plan::with_pods;
use super::pod_plan::{PodPlan, pod_set_shapes};
use super::request::PlacementRequest;
use super::surrounding_pods;
use super::unit_store::UnitStore;
use crate::quantities::quantity;
use lockkeeper_preemption::ResourceId;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::InterPodTable;

/// What a node has for one pod of a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    /// The name of the node.
    pub node: String,
    /// The name of the pod set.
    pub pod_set: String,
    /// What is free of each requested resource, as a quantity, by resource.
    pub free: Vec<(String, String)>,
    /// Why no pod fits now, such as `has too little cpu`; `None` if one fits.
    pub obstacle: Option<String>,
    /// Whether a pod fits without all pods of lower priority, if it does not fit now.
    pub fits_after_preemption: bool,
}

/// A report for each pod set and node, in the order of the pod sets and of the names of the nodes. Nodes where a pod fits are
/// first, then those where one fits without the pods of lower priority. A request with an invalid template has none.
pub(super) fn node_reports(
    store: &mut UnitStore,
    request: &PlacementRequest<'_>,
) -> Vec<NodeReport> {
    let Ok(pod_sets) = pod_set_shapes(&mut store.cluster, request) else {
        return Vec::new();
    };
    with_pods(store, request, pod_sets, |store, pod_plan| {
        reports_of(&store.cluster, request, pod_plan)
    })
}

fn reports_of(
    cluster: &GangCluster,
    request: &PlacementRequest<'_>,
    pod_plan: &PodPlan<'_>,
) -> Vec<NodeReport> {
    let table = InterPodTable::new(cluster.cluster(), &pod_plan.pods, std::iter::empty());
    let counts = |with_lower| {
        let table = table.as_ref();
        table.map(|it| surrounding_pods::counts(cluster, it, request, with_lower))
    };
    let (now, without_lower) = (counts(true), counts(false));
    let mut reports = Vec::new();
    let mut first = 0_usize;
    for pod_set in &pod_plan.pod_sets {
        // A pod set without pods has none that others could restrict.
        let pod = pod_plan.pods.get(first).filter(|_| pod_set.count > 0);
        let pod = pod.copied();
        first = first.saturating_add(pod_set.count);
        let shape = cluster.cluster().shape_of(pod_set.shape);
        let mut of_pod_set = Vec::new();
        for id in cluster.cluster().hosts() {
            let Some(host) = cluster.cluster().host(id) else {
                continue;
            };
            let obstacle =
                node_obstacle(cluster, request, pod_set, now.as_ref().zip(pod), id, true);
            let fits_after_preemption = obstacle.is_some()
                && !request.never_preempts
                && node_obstacle(
                    cluster,
                    request,
                    pod_set,
                    without_lower.as_ref().zip(pod),
                    id,
                    false,
                )
                .is_none();
            let requests = shape.requests.iter();
            let resources = requests
                .filter(|(resource, _)| *resource != ResourceId::PODS && !resource.is_host_port());
            let free = resources.map(|(resource, _)| {
                let name = cluster.cluster().resource_name(*resource);
                let free = quantity(name, host.free().get(*resource));
                (name.to_owned(), free.to_string())
            });
            let unknown = pod_set.unknown_resources.iter();
            let free = free.chain(unknown.map(|it| (it.clone(), "0".to_owned())));
            of_pod_set.push(NodeReport {
                node: cluster.cluster().host_name(id).to_owned(),
                pod_set: pod_set.name.to_owned(),
                free: free.collect(),
                obstacle: obstacle.map(|(one, _)| one),
                fits_after_preemption,
            });
        }
        of_pod_set.sort_by(|one, other| rank(one).cmp(&rank(other)));
        reports.extend(of_pod_set);
    }
    reports
}

/// The order of the reports of a pod set.
fn rank(report: &NodeReport) -> (bool, bool, &str) {
    (
        report.obstacle.is_some(),
        !report.fits_after_preemption,
        &report.node,
    )
}
