//! Older versions of other projects' kinds.

use super::run;

#[test]
fn rules_hold_for_older_versions_of_kueues_kinds() {
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
