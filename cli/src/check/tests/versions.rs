//! Older versions of other projects' kinds.

use super::run;

#[test]
fn rules_apply_to_older_kueue_versions() {
    let queue = "\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  cohort: research
  preemption: {reclaimWithinCohort: Never, borrowWithinCohort: {policy: Never, maxPriorityThreshold: 7}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: spot
      resources: [{name: cpu, nominalQuota: -1}]
";
    let (text, code) = run(&[("queue.yaml", queue)], &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}

#[test]
fn rules_apply_to_each_workload_and_pod_group_version() {
    let objects = "\
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: train, namespace: team}
spec:
  podGroupTemplates:
  - {name: workers, schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: {single: {}, all: {}}}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: PodGroup
metadata: {name: workers-0, namespace: team}
spec:
  workloadRef: {workloadName: train, templateName: worker}
  schedulingPolicy: {gang: {minCount: 0}}
  disruptionMode: PodGroup
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: former, namespace: team}
spec:
  podGroupTemplateRef: {workload: {workloadName: train, podGroupTemplateName: workers}}
  schedulingPolicy: {basic: {}, gang: {minCount: 1}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: good, namespace: team}
spec:
  workloadRef: {workloadName: train, templateName: workers}
  schedulingPolicy: {gang: {minCount: 4}}
";
    let (text, code) = run(&[("groups.yaml", objects)], &[]);
    insta::assert_snapshot!(text);
    assert_eq!(code, 1);
}
