//! Bound pods as values of the core.

use super::resource_names::SplitRequests;
use crate::core_labels::labels;
use crate::inter_pod_fields::{CONSTRAINTS_LEN_MAX, PodIdentity, constraints_len};
use crate::pod_requests::pod_requests;
use crate::scheduling_fields::pod_shape;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{InterPodConstraints, Labels, PodPreemption};
use lockkeeper_preemption::{Amount, HostId, ShapeId};
use std::collections::BTreeMap;

/// From this priority on, a pod belongs to the system and is never a victim (`system-cluster-critical`).
const SYSTEM_PRIORITY_MIN: i32 = 2_000_000_000;
/// An annotation of pods that mirror a static pod of the kubelet: deleting the object does not stop the pod.
const MIRROR_POD: &str = "kubernetes.io/config.mirror";
/// A label of all pods of a JobSet: the uid of the JobSet, which is not the controller of its pods.
const JOBSET_UID: &str = "jobset.sigs.k8s.io/jobset-uid";

/// The fields of a bound pod that decide about placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodValues {
    pub(super) uid: String,
    pub(super) host: HostId,
    pub(super) shape: ShapeId,
    /// Its requests of resources that no node had yet, which are not in its shape.
    pub(super) unknown_requests: Vec<(String, Amount)>,
    pub(super) labels: Labels,
    pub(super) priority: i32,
    pub(super) preemption: PodPreemption,
    pub(super) started_at_ns: Option<i64>,
    pub(super) is_terminating: bool,
    /// Whether the pod is never a victim.
    pub(super) is_exempt: bool,
    /// The uids by which the pod belongs to a workload: its own, its controller's, its JobSet's.
    pub(super) owner_uids: Vec<String>,
}

impl PodValues {
    /// Reads a pod; `None` if the pod is not bound to a node, or has ended. Requests that the core cannot count are
    /// none: the API server rejects them.
    pub(super) fn from_pod(cluster: &mut GangCluster, pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let node = spec.node_name.as_deref().filter(|it| !it.is_empty())?;
        let status = pod.status.as_ref();
        let phase = status.and_then(|it| it.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let identity = PodIdentity {
            namespace: pod.metadata.namespace.as_deref().unwrap_or_default(),
            labels: pod.metadata.labels.as_ref(),
        };
        let mut shape = pod_shape(cluster, identity, spec);
        if constraints_len(&shape.inter_pod) > CONSTRAINTS_LEN_MAX {
            shape.inter_pod = InterPodConstraints::default();
        }
        let requests = pod_requests(&pod.metadata, spec).unwrap_or_default();
        let requests = SplitRequests::new(cluster, requests);
        shape.requests.extend(requests.known);
        let priority = spec.priority.unwrap_or_default();
        let no_labels = BTreeMap::new();
        let own_labels = pod.metadata.labels.as_ref().unwrap_or(&no_labels);
        let started_at = status.and_then(|it| it.start_time.as_ref());
        let started_at_ns = started_at.and_then(|it| i64::try_from(it.0.as_nanosecond()).ok());
        // The DaemonSet replaces a deleted pod on the same node, so its deletion makes no room.
        let is_fixed = is_mirror(&pod.metadata) || is_of_daemon_set(&pod.metadata);
        Some(Self {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            host: cluster.host_id(node),
            shape: cluster.shape(shape),
            unknown_requests: requests.unknown,
            labels: labels(cluster, own_labels),
            priority,
            preemption: match spec.preemption_policy.as_deref() {
                Some("Never") => PodPreemption::Never,
                _ => PodPreemption::LowerPriority,
            },
            started_at_ns,
            is_terminating: pod.metadata.deletion_timestamp.is_some() && !is_fixed,
            is_exempt: is_fixed || priority >= SYSTEM_PRIORITY_MIN,
            owner_uids: owner_uids(&pod.metadata, own_labels),
        })
    }
}

fn is_mirror(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|it| it.contains_key(MIRROR_POD))
}

fn is_of_daemon_set(metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|it| it.kind == "DaemonSet")
}

fn owner_uids(metadata: &ObjectMeta, labels: &BTreeMap<String, String>) -> Vec<String> {
    let is_controller = |it: &&OwnerReference| it.controller == Some(true);
    let mut owners = metadata.owner_references.iter().flatten();
    let controller = owners.find(is_controller).map(|it| &it.uid);
    let all = [metadata.uid.as_ref(), controller, labels.get(JOBSET_UID)];
    let all = all.into_iter().flatten().filter(|it| !it.is_empty());
    all.cloned().collect()
}
