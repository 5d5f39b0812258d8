//! The cluster accepts the objects that `lockkeeper check` writes, without changes.

use serde_json::Value;
use std::fs;
use tempfile::TempDir;

use super::Scenario;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::{self, Protocol};
use crate::manifests::CLUSTER_OBJECTS;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "check sets the same defaults as the cluster",
            defaults_match_cluster,
        )
        .only(Protocol::Http1),
        Scenario::new("Kueue's objects converted by check are accepted", converted)
            .only(Protocol::Http1),
    ]
}

const OWN: &str = "\
apiVersion: lockkeeper.dev/v1alpha1
kind: Cohort
metadata: {name: research}
spec:
  fairSharing: {}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata: {name: team}
spec:
  cohortName: research # ours
  namespaceSelector: {}
  preemption:
    withinclusterqueue: LowerPriority
---
apiVersion: lockkeeper.dev/v1alpha1
kind: LocalQueue
metadata: {name: own, namespace: team}
spec: {clusterQueue: team}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: Workload
metadata: {name: train, namespace: team}
spec:
  queueName: own
  priorityClassName: high
  podGroups: [{name: workers}]
  podSets:
  - podGroupName: workers
    template:
      spec:
        containers: [{name: a, image: b}]
";

fn defaults_match_cluster(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("team.yaml");
    fs::write(&file, OWN).unwrap();
    lockkeeper::output(&["check", "--fix", file.to_str().unwrap()]);
    let fixed = fs::read_to_string(&file).unwrap();
    assert!(fixed.contains("  cohortName: research # ours\n"), "{fixed}");
    let reply = kubectl.apply(&fixed, &[]).expect_accepted();
    // The group is there for its defaults.
    let warning = "Warning: WL020 spec.podGroups: has no effect: a workload is admitted and preempted as a whole; \
        remove it and podGroupName\n";
    assert_eq!(reply.stderr, warning);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&fixed).unwrap();
    for object in &objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = format!("{}.lockkeeper.dev", text("/kind").unwrap().to_lowercase());
        let mut place = vec![&*kind, text("/metadata/name").unwrap()];
        place.extend(text("/metadata/namespace").map_or(Vec::new(), |it| vec!["-n", it]));
        let mut stored = kubectl.get(&place);
        // The controller sets it, so it is not in the file.
        stored["spec"].as_object_mut().unwrap().remove("active");
        assert_eq!(stored["spec"], object["spec"], "{place:?}");
    }
}

const KUEUE: &str = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 9000
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {pool: spot}, topologyName: rack}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: research
  namespaceSelector: {}
  flavorFungibility: {whenCanPreempt: Preempt}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: spot
      resources: [{name: cpu, nominalQuota: 4}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: own, namespace: team}
spec: {clusterQueue: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: train, namespace: team}
spec:
  queueName: own
  priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: urgent}
  podSets: [{name: main, count: 2, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}]
";

fn converted(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let folder = TempDir::new().unwrap();
    let (file, own) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    fs::write(&file, KUEUE).unwrap();
    let output = lockkeeper::output(&[
        "check",
        "--as",
        "lockkeeper.dev",
        "--converted",
        own.to_str().unwrap(),
        file.to_str().unwrap(),
    ]);
    assert!(
        output.contains("spec.topologyName: Forbidden: it is lost"),
        "{output}"
    );
    let own = fs::read_to_string(own).unwrap();
    kubectl.apply(&own, &[]).expect_accepted_without_warning();
    let stored = kubectl.get(&["workloads.lockkeeper.dev", "train", "-n", "team"]);
    assert_eq!(stored["spec"]["preemptionPriorityClassName"], "urgent");
    let stored = kubectl.get(&["clusterqueues.lockkeeper.dev", "team"]);
    assert_eq!(
        stored["spec"]["flavorFungibility"]["whenCanPreempt"],
        "MayStopSearch"
    );
}
