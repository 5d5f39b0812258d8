//! The pods of a placement request, while they are in the core.

use super::request::{PlacementPodSet, PlacementRequest};
use super::resource_names::SplitRequests;
use super::workload_entry::{Reservation, pod_group, policy};
use crate::core_labels::{has_label, labels};
use crate::inter_pod_fields::{CONSTRAINTS_LEN_MAX, PodIdentity, constraints_len};
use crate::pod_defaults::PodDefaults;
use crate::pod_requests::template_requests;
use crate::scheduling_fields::{pod_shape, toleration};
use k8s_openapi::api::core::v1::PodSpec;
use lockkeeper_api::workload::{NominatedPlacement, PodSetPlacement};
use lockkeeper_preemption::gang::{GangCluster, GroupSpec, MemberSpec};
use lockkeeper_preemption::placement::{Labels, PodSpec as CorePod, Selector};
use lockkeeper_preemption::{Amount, GroupId, HostId, PodId, ShapeId};
use std::collections::BTreeMap;

/// The most pods of a workload. Kubernetes supports 150,000 pods in a cluster.
const PODS_MAX: usize = 150_000;

/// A pod set with the shape of its pods.
pub(super) struct PodSetShape<'a> {
    pub(super) name: &'a str,
    pub(super) shape: ShapeId,
    /// The labels of its template.
    pub(super) labels: Labels,
    pub(super) count: usize,
    /// The requested resources that no node has.
    pub(super) unknown_resources: Vec<String>,
}

/// Reads the pod sets of a request.
///
/// # Errors
///
/// A message if a request of a template is not valid, or if there are too many pods.
pub(super) fn pod_set_shapes<'a>(
    cluster: &mut GangCluster,
    request: &PlacementRequest<'a>,
) -> Result<Vec<PodSetShape<'a>>, String> {
    let mut total = 0_usize;
    let mut shapes = Vec::new();
    for pod_set in &request.pod_sets {
        let count = usize::try_from(pod_set.count).unwrap_or_default();
        total = total.saturating_add(count);
        shapes.push(pod_set_shape(cluster, request, pod_set, count)?);
    }
    if total > PODS_MAX {
        return Err(format!(
            "the workload has {total} pods; the maximum is {PODS_MAX}"
        ));
    }
    Ok(shapes)
}

fn pod_set_shape<'a>(
    cluster: &mut GangCluster,
    request: &PlacementRequest<'_>,
    pod_set: &PlacementPodSet<'a>,
    count: usize,
) -> Result<PodSetShape<'a>, String> {
    let empty = PodSpec::default();
    let spec = pod_set.template.spec.as_ref().unwrap_or(&empty);
    let metadata = pod_set.template.metadata.as_ref();
    let own_labels = metadata.and_then(|it| it.labels.as_ref());
    let identity = PodIdentity {
        namespace: request.namespace,
        labels: own_labels,
    };
    let mut shape = pod_shape(cluster, identity, spec);
    let constraints = constraints_len(&shape.inter_pod);
    if constraints > CONSTRAINTS_LEN_MAX {
        return Err(format!(
            "pod set {:?}: its pod affinity and topology spread have {constraints} terms, requirements and values; the maximum is \
             {CONSTRAINTS_LEN_MAX}",
            pod_set.name
        ));
    }
    let of_flavors = pod_set.node_selector.iter();
    let of_flavors = of_flavors.map(|(key, value)| has_label(cluster, key, value));
    let selector = shape.selector.0.into_iter().chain(of_flavors);
    shape.selector = Selector(selector.collect());
    let of_flavors = pod_set.tolerations.iter();
    let of_flavors = of_flavors.filter_map(|it| toleration(cluster, it));
    shape.tolerations.extend(of_flavors);
    let requests = pod_set_requests(request, pod_set)?;
    let requests = SplitRequests::new(cluster, requests);
    shape.requests.extend(requests.known);
    shape.has_unknown_resource = !requests.unknown.is_empty();
    Ok(PodSetShape {
        name: pod_set.name,
        shape: cluster.shape(shape),
        labels: own_labels.map_or_else(Labels::default, |it| labels(cluster, it)),
        count,
        unknown_resources: requests.unknown.into_iter().map(|it| it.0).collect(),
    })
}

/// The requests of one pod of a pod set, with the defaults of the cluster.
///
/// # Errors
///
/// A message if a request is not valid.
fn pod_set_requests(
    request: &PlacementRequest<'_>,
    pod_set: &PlacementPodSet<'_>,
) -> Result<BTreeMap<String, Amount>, String> {
    static NONE: PodDefaults = PodDefaults::NONE;
    let empty = PodSpec::default();
    let spec = pod_set.template.spec.as_ref().unwrap_or(&empty);
    let defaults = request.pod_defaults.unwrap_or(&NONE);
    let requests = template_requests(request.namespace, spec, defaults);
    requests.map_err(|error| {
        let (name, field, problem) = (pod_set.name, error.field, error.problem);
        format!("pod set {name:?}: template.{field}: {problem}")
    })
}

/// Gives ids to the resources that a request has. Only for a workload that was placed before, so that its nodes have or had
/// these resources.
pub(super) fn add_resources(cluster: &mut GangCluster, request: &PlacementRequest<'_>) {
    for pod_set in &request.pod_sets {
        for resource in pod_set_requests(request, pod_set)
            .unwrap_or_default()
            .keys()
        {
            cluster.resource(resource);
        }
    }
}

/// The reservations for the pods of a placement: at most as many as the request has pods.
pub(super) fn reservations(
    cluster: &mut GangCluster,
    workload: &str,
    pod_sets: &[PodSetShape<'_>],
    placement: &NominatedPlacement,
) -> Vec<Reservation> {
    let mut all = Vec::new();
    for pod_set in pod_sets {
        let hosts = nominated_hosts(cluster, pod_set, placement);
        all.extend(hosts.into_iter().enumerate().map(|(at, host)| Reservation {
            name: format!("{workload}/{}/{at}", pod_set.name),
            host,
            shape: pod_set.shape,
            labels: pod_set.labels.clone(),
        }));
    }
    all
}

/// The nominated node of each pod of a pod set, by the names of the nodes.
fn nominated_hosts(
    cluster: &mut GangCluster,
    pod_set: &PodSetShape<'_>,
    placement: &NominatedPlacement,
) -> Vec<HostId> {
    let mut of_pod_set = placement.pod_sets.iter();
    let of_pod_set = of_pod_set.find(|it| it.name == pod_set.name);
    let mut hosts = Vec::new();
    for (node, count) in of_pod_set.into_iter().flat_map(|it| &it.nodes) {
        let open = pod_set.count.saturating_sub(hosts.len());
        let count = usize::try_from(*count).unwrap_or_default().min(open);
        let host = cluster.host_id(node);
        hosts.extend(std::iter::repeat_n(host, count));
    }
    hosts
}

/// The pending pods of a request in the core.
pub(super) struct PodPlan<'a> {
    pub(super) pod_sets: Vec<PodSetShape<'a>>,
    /// In the order of the pod sets.
    pub(super) pods: Vec<PodId>,
    /// The gang of several pods. A single pod is a preemptor by itself.
    pub(super) group: Option<GroupId>,
    /// How many of the pods are nominated, if the request has a nominated placement.
    pub(super) nominated: Option<usize>,
}

impl<'a> PodPlan<'a> {
    /// Adds the pods to the core. [`Self::remove`] must follow.
    pub(super) fn add(
        cluster: &mut GangCluster,
        request: &PlacementRequest<'_>,
        pod_sets: Vec<PodSetShape<'a>>,
    ) -> Self {
        let total = pod_sets.iter().map(|it| it.count).sum::<usize>();
        let is_gang = total > 1;
        let preemption = policy(request.never_preempts);
        // No object has a name with a slash.
        let group = is_gang.then(|| {
            cluster.set_group(&GroupSpec {
                priority: Some(request.priority),
                preemption: Some(preemption),
                count_min: Some(u32::try_from(total).unwrap_or(u32::MAX)),
                ..pod_group("", "/plan")
            })
        });
        let mut nominated: Vec<Option<HostId>> = Vec::with_capacity(total);
        for pod_set in &pod_sets {
            let hosts = request
                .nominated
                .map(|it| nominated_hosts(cluster, pod_set, it));
            let hosts = hosts.into_iter().flatten().map(Some);
            let hosts = hosts.chain(std::iter::repeat(None));
            nominated.extend(hosts.take(pod_set.count));
        }
        let count = nominated.iter().flatten().count();
        let mut pods = Vec::with_capacity(total);
        let templates = pod_sets.iter();
        let templates = templates.flat_map(|it| std::iter::repeat_n(it, it.count));
        for (at, (template, nominated)) in templates.zip(&nominated).enumerate() {
            pods.push(cluster.set_pod(MemberSpec {
                pod: CorePod {
                    namespace: request.namespace,
                    name: &format!("/plan/{at}"),
                    host: None,
                    shape: template.shape,
                    labels: template.labels.clone(),
                    priority: request.priority,
                    preemption,
                    started_at_ns: None,
                    is_terminating: false,
                },
                group,
                // A placement of some of the pods cannot be kept.
                nominated: nominated.filter(|_| count == total),
                is_preempted: false,
                has_budgets: false,
            }));
        }
        Self {
            pod_sets,
            pods,
            group,
            nominated: request.nominated.map(|_| count),
        }
    }

    /// Removes the pods from the core.
    pub(super) fn remove(self, cluster: &mut GangCluster) {
        for pod in self.pods {
            cluster.remove_pod(pod);
        }
    }

    /// The shape of each pod.
    pub(super) fn shapes(&self) -> Vec<ShapeId> {
        let all = self.pod_sets.iter();
        all.flat_map(|it| std::iter::repeat_n(it.shape, it.count))
            .collect()
    }

    /// The pod set of the pod with this index.
    pub(super) fn pod_set_at(&self, index: usize) -> Option<&PodSetShape<'a>> {
        let mut end = 0_usize;
        self.pod_sets.iter().find(|it| {
            end = end.saturating_add(it.count);
            index < end
        })
    }

    /// The nodes of each pod set, from the node of each pod in order.
    pub(super) fn placement(
        &self,
        cluster: &GangCluster,
        hosts: &[(PodId, Option<HostId>)],
    ) -> NominatedPlacement {
        let mut hosts = hosts.iter();
        let pod_sets = self.pod_sets.iter().map(|pod_set| {
            let mut placement = PodSetPlacement {
                name: pod_set.name.to_owned(),
                ..PodSetPlacement::default()
            };
            for host in hosts.by_ref().take(pod_set.count).filter_map(|it| it.1) {
                let name = cluster.cluster().host_name(host);
                let count = placement.nodes.entry(name.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            placement
        });
        NominatedPlacement {
            pod_sets: pod_sets.collect(),
        }
    }
}
