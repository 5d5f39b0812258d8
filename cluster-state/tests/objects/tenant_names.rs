//! Names that tenants choose are not stored: of resources in requests, and of ClusterQueues in LocalQueues.

use crate::{lockkeeper_object, object, yaml};
use lockkeeper_api::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockkeeper_cluster_state::{
    ClusterState, Completeness, NotQueuedReason, WorkloadPhase, uncovered_resources_message,
};
use lockkeeper_preemption::requeue::RequeueSettings;
use lockkeeper_preemption::{Damping, Decision, NamesView, Options};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

fn cluster_queue(name: &str, resources: &str) -> Arc<ClusterQueue> {
    let names = resources.split(", ");
    let quotas: Vec<Value> = names
        .map(|it| json!({"name": it, "nominalQuota": 4}))
        .collect();
    let mut spec: Value = yaml(&format!(
        "
namespaceSelector: {{}}
preemption: {{withinClusterQueue: LowerPriority}}
resourceGroups: [{{coveredResources: [{resources}], flavors: [{{name: f}}]}}]
"
    ));
    spec["resourceGroups"][0]["flavors"][0]["resources"] = quotas.into();
    Arc::new(object(&lockkeeper_object(
        "ClusterQueue",
        None,
        name,
        &spec,
    )))
}

fn local_queue(name: &str, cluster_queue: &str) -> LocalQueue {
    let spec = json!({"clusterQueue": cluster_queue});
    object(&lockkeeper_object("LocalQueue", Some("ns"), name, &spec))
}

/// A workload whose pods request these amounts, as YAML.
fn workload(name: &str, queue: &str, requests: &str) -> Arc<Workload> {
    let spec: Value = yaml(&format!(
        "
queueName: {queue}
podSets:
- template: {{spec: {{containers: [{{name: a, resources: {{requests: {{{requests}}}}}}}]}}}}
"
    ));
    let mut value = lockkeeper_object("Workload", Some("ns"), name, &spec);
    value["metadata"]["uid"] = name.into();
    Arc::new(object(&value))
}

/// A cluster with the LocalQueue `main` of a ClusterQueue for cpu.
fn cluster(options: Options) -> ClusterState {
    let requeue = RequeueSettings::default();
    let mut cluster = ClusterState::new(options, requeue, Completeness::Complete);
    let flavor: ResourceFlavor =
        object(&lockkeeper_object("ResourceFlavor", None, "f", &json!({})));
    cluster.set_resource_flavor(&flavor);
    cluster
        .set_cluster_queue(cluster_queue("q", "cpu"))
        .unwrap();
    cluster.set_local_queue(&local_queue("main", "q"));
    cluster
}

fn counts(cluster: &mut ClusterState) -> (usize, usize) {
    cluster.state_mut().apply_changes();
    let names = NamesView::new(cluster.state());
    (names.resource_count(), names.node_count())
}

#[test]
fn requested_resource_names_are_not_stored() {
    let mut cluster = cluster(Options::default());
    let before = counts(&mut cluster);
    for at in 0..200 {
        let mut requests = String::new();
        for other in 0..90 {
            let _ = write!(requests, "example.com/r{at}-{other}: 1, ");
        }
        let phase = cluster
            .set_workload(workload("w", "main", &requests))
            .unwrap();
        assert_eq!(phase, WorkloadPhase::Pending);
        cluster.next_cycle(1_000 + at, true);
    }
    cluster.remove_workload("ns/w");
    assert_eq!(counts(&mut cluster), before);
}

#[test]
fn template_with_too_many_resources_is_rejected() {
    let mut cluster = cluster(Options::default());
    let requests: Vec<String> = (0..101).map(|at| format!("example.com/r{at}: 1")).collect();
    let error = cluster.set_workload(workload("w", "main", &requests.join(", ")));
    let message = error.unwrap_err().to_string();
    assert!(
        message.ends_with("the pods request 101 resources; request at most 100"),
        "{message}"
    );
}

#[test]
fn local_queue_without_cluster_queue_adds_no_node() {
    let mut cluster = cluster(Options::default());
    let before = counts(&mut cluster);
    for at in 0..200 {
        let name = format!("unknown-{at}");
        cluster.set_local_queue(&local_queue("other", &name));
        let phase = cluster
            .set_workload(workload("w", "other", "cpu: 1"))
            .unwrap();
        assert_eq!(
            phase,
            WorkloadPhase::NotQueued(NotQueuedReason::NoClusterQueue)
        );
    }
    cluster.set_local_queue(&local_queue("other", "q"));
    let phase = cluster.phase("ns/w").unwrap().unwrap();
    assert_eq!(phase, WorkloadPhase::Pending);
    assert_eq!(counts(&mut cluster), before);
    // The ClusterQueue is deleted and created again.
    cluster.remove_cluster_queue("q");
    let phase = cluster.phase("ns/w").unwrap().unwrap();
    assert_eq!(
        phase,
        WorkloadPhase::NotQueued(NotQueuedReason::NoClusterQueue)
    );
    cluster
        .set_cluster_queue(cluster_queue("q", "cpu"))
        .unwrap();
    let phase = cluster.phase("ns/w").unwrap().unwrap();
    assert_eq!(phase, WorkloadPhase::Pending);
}

#[test]
fn inadmissible_classes_of_removed_workloads_are_dropped() {
    let mut cluster = cluster(Options::default());
    let queue = cluster.state().queue("q").unwrap();
    for at in 0..2_000 {
        let name = format!("w{at}");
        cluster
            .set_workload(workload(&name, "main", &format!("cpu: {}", at + 5)))
            .unwrap();
        cluster.next_cycle(1_000 + at, false);
        cluster.remove_workload(&format!("ns/{name}"));
    }
    let stored = NamesView::new(cluster.state()).inadmissible_class_count(queue);
    assert!(stored <= 65, "{stored}");
}

#[test]
fn uncovered_resource_is_named_with_the_queues_that_cover_it() {
    let mut cluster = cluster(Options::default());
    let gpu = workload("w", "main", "cpu: 1, gpu: 2");
    cluster.set_workload(Arc::clone(&gpu)).unwrap();
    let message = |cluster: &ClusterState| uncovered_resources_message(cluster, &gpu);
    assert_eq!(
        message(&cluster).as_deref(),
        Some(
            "Resource not covered: pod set main requests gpu, which ClusterQueue q does not cover; remove the request, \
             or add gpu to spec.resourceGroups of the ClusterQueue"
        )
    );
    cluster
        .set_cluster_queue(cluster_queue("large", "cpu, gpu"))
        .unwrap();
    cluster.set_local_queue(&local_queue("gpus", "large"));
    assert_eq!(
        message(&cluster).as_deref(),
        Some(
            "Resource not covered: pod set main requests gpu, which ClusterQueue q does not cover; gpu is covered by \
             LocalQueue gpus"
        )
    );
    let cycle = cluster.next_cycle(1_000, true);
    assert_eq!(cycle.entries[0].decision, Decision::NoFit);
    cluster
        .set_cluster_queue(cluster_queue("q", "cpu, gpu"))
        .unwrap();
    assert_eq!(message(&cluster), None);
    let cycle = cluster.next_cycle(2_000, true);
    assert_eq!(cycle.entries[0].decision, Decision::Admit);
}

#[test]
fn excluded_resource_needs_no_quota() {
    let requeue = RequeueSettings::default();
    let mut cluster = ClusterState::new(Options::default(), requeue, Completeness::Partial);
    cluster.exclude_resources(vec!["example.com/".to_owned()]);
    cluster
        .set_cluster_queue(cluster_queue("q", "cpu"))
        .unwrap();
    cluster.set_local_queue(&local_queue("main", "q"));
    let free = workload("w", "main", "cpu: 1, example.com/licence: 3");
    cluster.set_workload(Arc::clone(&free)).unwrap();
    assert_eq!(uncovered_resources_message(&cluster, &free), None);
    let cycle = cluster.next_cycle(1_000, true);
    assert_eq!(cycle.entries[0].decision, Decision::Admit);
}

/// The preemption priority protects a victim, and `preemptionPolicy: Never` of the class makes a workload wait.
#[test]
fn classes_decide_on_victims_and_preemptors() {
    let class = |name: &str, value: i32, policy: &str| {
        object(&json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "preemptionPolicy": policy,
        }))
    };
    let decision = |victim_class: &str, policy: &str| {
        let mut cluster = cluster(Options {
            damping: Damping::Off,
            ..Options::default()
        });
        cluster.set_priority_class(&class("low", 1, "PreemptLowerPriority"));
        cluster.set_priority_class(&class("high", 9, "PreemptLowerPriority"));
        cluster.set_priority_class(&class("mid", 5, policy));
        let with_classes = |name: &str, own: &str, victim: &str| {
            let mut workload = (*workload(name, "main", "cpu: 4")).clone();
            workload.spec.priority_class_name = Some(own.to_owned());
            workload.spec.preemption_priority_class_name = Some(victim.to_owned());
            Arc::new(workload)
        };
        cluster
            .set_workload(with_classes("runs", "low", victim_class))
            .unwrap();
        let first = cluster.next_cycle(1_000, true);
        assert_eq!(first.entries[0].decision, Decision::Admit);
        cluster
            .set_workload(with_classes("waits", "mid", "mid"))
            .unwrap();
        let mut second = cluster.next_cycle(2_000, true);
        second.entries.remove(0).decision
    };
    assert!(matches!(
        decision("low", "PreemptLowerPriority"),
        Decision::Preempt(_)
    ));
    assert_eq!(
        decision("high", "PreemptLowerPriority"),
        Decision::NoCandidates
    );
    assert_eq!(decision("low", "Never"), Decision::NoCandidates);
}
