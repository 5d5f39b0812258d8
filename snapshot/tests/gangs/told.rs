//! What is told, as people and programs see it.

use crate::answered;
use insta::{assert_json_snapshot, assert_snapshot};
use lockkeeper_preemption::gang::Compatibility;
use lockkeeper_snapshot::gang::{tell, told};

/// The scenario of docs/scenario.md: a gang of three, nodes with a replica, a protected pod and an important one.
const PAGE: &str = include_str!("../../../docs/scenario.md");

fn page() -> String {
    let after = PAGE
        .split("```yaml\n")
        .find(|it| it.contains("pod_groups:"))
        .unwrap();
    after.split("```").next().unwrap().to_owned()
}

fn text(yaml: &str, compatibility: Option<Compatibility>) -> String {
    let (loaded, answer) = answered(yaml, compatibility);
    let mut out = String::new();
    tell(&mut out, &loaded, &answer).unwrap();
    out
}

#[test]
fn the_page_as_people_see_it() {
    assert_snapshot!(text(&page(), None));
}

#[test]
fn the_page_as_kube_scheduler_does_it() {
    assert_snapshot!(text(&page(), Some(Compatibility::KubeScheduler)));
}

#[test]
fn the_page_for_programs() {
    let (loaded, answer) = answered(&page(), None);
    assert_json_snapshot!(told(&loaded, &answer));
}

#[test]
fn the_page_pod_by_pod() {
    assert_snapshot!(text(&format!("pod_by_pod: true\n{}", page()), None));
}

const NODES: &str = "
nodes:
- {name: a, allocatable: {cpu: '4'}}
- {name: b, allocatable: {cpu: '2'}, unschedulable: true}
- {name: c, allocatable: {cpu: '4'}, taints: [{key: gpu, effect: NoSchedule}]}
- {name: d, allocatable: {cpu: '1'}}
";

#[test]
fn why_no_node_will_do() {
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
fn which_node_is_best() {
    // The victim on `a` would preempt the one on `c` when it comes back; that one preempts nobody.
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

/// Whoever goes from `b` would come back and preempt `z`; `x` asks for more than anybody below it could leave. So the
/// higher priority goes; kube-scheduler does not look so far.
#[test]
fn what_preempts_no_further_goes_first() {
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
    assert_snapshot!(text(yaml, Some(Compatibility::KubeScheduler)));
}

/// As Kubernetes counts it: the sidecar beside the others, the largest init container before them.
#[test]
fn a_pod_as_kubernetes_writes_it() {
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

const GOING: &str = "
nodes:
- {name: a, allocatable: {cpu: '4'}}
pods:
- {name: old, node: a, priority: 1, requests: {cpu: '3'}, terminating: true, disruption_target: {reason: PreemptionByScheduler, status: 'True'}}
preemptor:
  pod: {name: new, priority: 5, requests: {cpu: '2'}, nominated_node: a}
";

#[test]
fn it_waits_while_its_victims_go() {
    assert_snapshot!(text(GOING, None));
    assert_snapshot!(text(GOING, Some(Compatibility::KubeScheduler)));
}

#[test]
fn a_nomination_that_is_lost_is_dropped() {
    let taken = GOING.replace(
        "preemptor:",
        "- {name: sooner, node: a, priority: 9, requests: {cpu: '3'}}\npreemptor:",
    );
    assert_snapshot!(text(&taken, None));
}

#[test]
fn what_is_preempted_as_one_where_nobody_wants_in() {
    let yaml = page().split("preemptor:").next().unwrap().to_owned();
    assert_snapshot!(text(&yaml, None));
}

#[test]
fn pods_with_another_priority_than_their_workload() {
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
