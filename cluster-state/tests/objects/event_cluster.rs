//! Objects and a cluster for the tests of events.

use crate::{lockkeeper_object, object, yaml};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{ClusterState, Completeness, NotQueuedReason, WorkloadPhase};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Decision, NodeId, Options};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NO_LOCAL_QUEUE: WorkloadPhase = WorkloadPhase::NotQueued(NotQueuedReason::NoLocalQueue);

pub fn queue(name: &str, nominal: &str) -> Arc<ClusterQueue> {
    let spec: Value = yaml(&format!(
        "
cohortName: all
namespaceSelector: {{matchLabels: {{team: a}}}}
preemption: {{withinClusterQueue: LowerPriority}}
resourceGroups:
- coveredResources: [cpu]
  flavors: [{{name: f, resources: [{{name: cpu, nominalQuota: {nominal}}}]}}]
"
    ));
    Arc::new(object(&lockkeeper_object(
        "ClusterQueue",
        None,
        name,
        &spec,
    )))
}

pub fn local_queue(cluster_queue: &str) -> LocalQueue {
    let spec = json!({"clusterQueue": cluster_queue});
    object(&lockkeeper_object("LocalQueue", Some("ns"), "door", &spec))
}

pub fn flavor() -> ResourceFlavor {
    object(&lockkeeper_object("ResourceFlavor", None, "f", &json!({})))
}

pub fn labels(team: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), team.to_owned())])
}

pub fn priority_class(name: &str, value: i32, is_default: bool) -> PriorityClass {
    object(&json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value, "globalDefault": is_default,
    }))
}

pub fn workload(name: &str, cpu: &str) -> Workload {
    let spec: Value = yaml(&format!(
        "
queueName: door
podSets:
- template: {{spec: {{containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}
"
    ));
    let mut value = lockkeeper_object("Workload", Some("ns"), name, &spec);
    value["metadata"]["uid"] = name.into();
    object(&value)
}

pub fn with_status(workload: &Workload, status: Value) -> Workload {
    let mut value = serde_json::to_value(workload).unwrap();
    value["status"] = status;
    object(&value)
}

pub fn admitted(workload: &Workload, queue: &str, cpu: &str) -> Workload {
    with_status(
        workload,
        json!({"admission": {"clusterQueue": queue, "podSetAssignments": [
            {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}},
        ]}}),
    )
}

pub fn empty_cluster() -> ClusterState {
    ClusterState::new(
        Options::default(),
        RequeueSettings::default(),
        Completeness::Complete,
    )
}

/// Everything but a workload.
pub fn cluster_without_workloads() -> ClusterState {
    let mut objects = empty_cluster();
    objects.set_cluster_queue(queue("a", "2")).unwrap();
    objects.set_resource_flavor(&flavor());
    objects.set_local_queue(&local_queue("a"));
    objects.set_namespace("ns", labels("a"));
    objects
}

pub fn node(objects: &ClusterState, name: &str) -> NodeId {
    objects.state().queue(name).unwrap()
}

pub fn used(objects: &ClusterState, queue: &str) -> i64 {
    let usage = objects.state().node_view(node(objects, queue)).usage();
    usage.iter().map(|(_, amount)| amount.get()).sum()
}

pub fn active_count(objects: &ClusterState, queue: &str) -> usize {
    objects
        .state()
        .node_view(node(objects, queue))
        .active()
        .len()
}

pub fn set(objects: &mut ClusterState, workload: &Workload) -> WorkloadPhase {
    objects.set_workload(Arc::new(workload.clone())).unwrap()
}

pub fn admits_in_cycle(objects: &mut ClusterState) -> bool {
    let cycle = objects.next_cycle(1_000, false);
    cycle
        .entries
        .iter()
        .any(|it| it.decision == Decision::Admit)
}
