//! Explanations as text and as JSON.

use crate::evaluate_yaml;
use insta::{assert_json_snapshot, assert_snapshot};
use lockkeeper_preemption::gang::SchedulerCompatibility;
use lockkeeper_scenario::gang::{to_json, write_text};

/// The scenario of docs/scenario.md: a gang of three, nodes with a replica, a protected pod and an important one.
const DOC_PAGE: &str = include_str!("../../../docs/scenario.md");

fn doc_scenario() -> String {
    let after = DOC_PAGE
        .split("```yaml\n")
        .find(|it| it.contains("pod_groups:"))
        .unwrap();
    after.split("```").next().unwrap().to_owned()
}

fn text(yaml: &str, compatibility: Option<SchedulerCompatibility>) -> String {
    let (loaded, answer) = evaluate_yaml(yaml, compatibility);
    let mut out = String::new();
    write_text(&mut out, &loaded, &answer).unwrap();
    out
}

#[test]
fn doc_scenario_text() {
    assert_snapshot!(text(&doc_scenario(), None));
}

#[test]
fn doc_scenario_kube_scheduler_text() {
    assert_snapshot!(text(
        &doc_scenario(),
        Some(SchedulerCompatibility::KubeScheduler)
    ));
}

#[test]
fn doc_scenario_json() {
    let (loaded, answer) = evaluate_yaml(&doc_scenario(), None);
    assert_json_snapshot!(to_json(&loaded, &answer));
}

#[test]
fn doc_scenario_pod_by_pod_text() {
    assert_snapshot!(text(&format!("pod_by_pod: true\n{}", doc_scenario()), None));
}

const NODES: &str = "
nodes:
- {name: a, allocatable: {cpu: '4'}}
- {name: b, allocatable: {cpu: '2'}, unschedulable: true}
- {name: c, allocatable: {cpu: '4'}, taints: [{key: gpu, effect: NoSchedule}]}
- {name: d, allocatable: {cpu: '1'}}
";

#[test]
fn infeasible_nodes_are_explained() {
    assert_snapshot!(text(
        &format!(
            "{NODES}
pods:
- {{name: old, node: a, priority: 10, requests: {{cpu: '4'}}}}
preemptor:
  pod: {{name: new, priority: 5, requests: {{cpu: '2'}}}}
"
        ),
        None
    ));
}

#[test]
fn best_node_is_explained() {
    // The victim on `a` would preempt the pods on `c` when it is scheduled again; those preempt no pod.
    assert_snapshot!(text(
        "
nodes:
- {name: a, allocatable: {cpu: '4'}}
- {name: c, allocatable: {cpu: '4'}}
pods:
- {name: middle, node: a, priority: 5, requests: {cpu: '4'}, start_time_ns: 2}
- {name: low, node: c, priority: 1, requests: {cpu: '2'}, start_time_ns: 1}
- {name: low-too, node: c, priority: 1, requests: {cpu: '2'}, start_time_ns: 1}
preemptor:
  pod: {name: new, priority: 9, requests: {cpu: '4'}}
",
        None
    ));
}

/// A victim on `b` would preempt `z` when it is scheduled again; `x` requests more than the pods of lower priority
/// could release. So the pod of higher priority is preempted; kube-scheduler does not look at such cascades.
#[test]
fn victims_without_cascade_are_preferred() {
    let yaml = "
nodes:
- {name: a, allocatable: {cpu: '4'}}
- {name: b, allocatable: {cpu: '2'}}
- {name: c, allocatable: {cpu: '2'}, unschedulable: false, labels: {disk: slow}}
pods:
- {name: x, node: a, priority: 3, requests: {cpu: '4'}}
- {name: y, node: b, priority: 2, requests: {cpu: '2'}}
- {name: z, node: c, priority: 1, requests: {cpu: '2'}}
preemptor:
  pod:
    name: new
    priority: 9
    spec:
      containers: [{name: main, resources: {requests: {cpu: '2'}}}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: DoesNotExist}]}]
";
    assert_snapshot!(text(yaml, None));
    assert_snapshot!(text(yaml, Some(SchedulerCompatibility::KubeScheduler)));
}

/// As Kubernetes counts it: the sidecar beside the others, the largest init container before them.
#[test]
fn pod_spec_is_accepted() {
    assert_snapshot!(text(
        &format!(
            "{NODES}
pods:
- {{name: old, node: c, priority: 1, requests: {{cpu: 500m}}}}
preemptor:
  pod:
    name: new
    priority: 5
    spec:
      tolerations: [{{key: gpu, operator: Exists}}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchFields: [{{key: metadata.name, operator: In, values: [c]}}]
      initContainers:
      - {{name: sidecar, restartPolicy: Always, resources: {{requests: {{cpu: '1'}}}}}}
      - {{name: once, resources: {{requests: {{cpu: '2'}}}}}}
      containers:
      - {{name: main, resources: {{requests: {{cpu: 2500m}}}}}}
      - {{name: more, resources: {{requests: {{cpu: 250m}}}}}}
"
        ),
        None
    ));
}

const TERMINATING: &str = "
nodes:
- {name: a, allocatable: {cpu: '4'}}
pods:
- {name: old, node: a, priority: 1, requests: {cpu: '3'}, terminating: true, disruption_target: {reason: PreemptionByScheduler, status: 'True'}}
preemptor:
  pod: {name: new, priority: 5, requests: {cpu: '2'}, nominated_node: a}
";

#[test]
fn preemptor_waits_for_terminating_victims() {
    assert_snapshot!(text(TERMINATING, None));
    assert_snapshot!(text(
        TERMINATING,
        Some(SchedulerCompatibility::KubeScheduler)
    ));
}

#[test]
fn nomination_without_room_is_dropped() {
    let taken = TERMINATING.replace(
        "preemptor:",
        "- {name: sooner, node: a, priority: 9, requests: {cpu: '3'}}\npreemptor:",
    );
    assert_snapshot!(text(&taken, None));
}

#[test]
fn units_listed_without_preemptor() {
    let yaml = doc_scenario()
        .split("preemptor:")
        .next()
        .unwrap()
        .to_owned();
    assert_snapshot!(text(&yaml, None));
}

#[test]
fn pods_with_other_priority_than_workload_are_reported() {
    assert_snapshot!(text(
        "
nodes: [{name: a, allocatable: {cpu: '4'}}]
preemptor:
  pod_group: {name: gang, priority: 5, preemption_policy: Never}
  pods:
  - {name: w-0, priority: 5, requests: {cpu: '2'}}
  - {name: w-1, priority: 4, requests: {cpu: '2'}}
  - {name: w-2, requests: {cpu: '2'}}
",
        None
    ));
}
