//! Older versions of other projects' kinds, and releases of Kubernetes.

use super::super::Arguments;
use super::run;
use clap::{Args, Command};

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

/// A PodGroup of the version that only Kubernetes 1.36 serves.
const FORMER_GROUP: &str = "\
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: former, namespace: team}
spec:
  podGroupTemplateRef: {workload: {workloadName: train, podGroupTemplateName: workers}}
  schedulingPolicy: {basic: {}, gang: {minCount: 1}}
";

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

#[test]
fn versions_with_rules_are_those_of_the_release() {
    let files = [("group.yaml", FORMER_GROUP)];
    for (release, expected) in [
        (
            "1.35",
            "group.yaml:1:1: error[SC001]: PodGroup team/former: apiVersion: Invalid value: \"scheduling.k8s.io/v1alpha2\": Kubernetes 1.35 does not serve this version of PodGroup; 1.36 does",
        ),
        (
            "1.36",
            "group.yaml:6:3: error[PG006]: PodGroup team/former: spec.schedulingPolicy: Invalid value: \"basic, gang\": give only one of them",
        ),
        (
            "1.37",
            "group.yaml:1:1: error[SC001]: PodGroup team/former: apiVersion: Invalid value: \"scheduling.k8s.io/v1alpha2\": Kubernetes 1.37 and newer do not serve this version of PodGroup; write scheduling.k8s.io/v1beta1",
        ),
    ] {
        let (text, code) = run(&files, &["--kubernetes-version", release]);
        assert_eq!(text.lines().next(), Some(expected), "{text}");
        assert!(text.contains("\n1 error, "), "{text}");
        assert_eq!(code, 1);
    }
    assert!(run(&files, &[]).0.contains("Kubernetes 1.37 and newer"));
}

#[test]
fn built_in_kinds_are_checked_as_the_release_does() {
    let objects = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  hostnameOverride: db
  hostnameOveride: db
  containers:
  - {name: a, image: b}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {}}
";
    let files = [("objects.yaml", objects)];
    for release in ["1.33", "v1.33.4"] {
        let (text, code) = run(&files, &["--kubernetes-version", release]);
        insta::allow_duplicates! { insta::assert_snapshot!(text) };
        assert_eq!(code, 1);
    }
    let (text, _) = run(&files, &["--kubernetes-version", "1.34"]);
    assert_eq!(text.matches(": error[").count(), 1, "{text}");
    assert_eq!(text, run(&files, &[]).0);
}

#[test]
fn unsupported_releases_are_usage_errors() {
    let command = Arguments::augment_args(Command::new("check"));
    for (version, reason) in [
        (
            "1.32",
            "unsupported version; use one of 1.33, 1.34, 1.35, 1.36, 1.37",
        ),
        ("1.38.0", "unsupported version"),
        ("latest", "not a version; write it as 1.36 or v1.36.2"),
    ] {
        let words = ["check", "--kubernetes-version", version, "a.yaml"];
        let error = command.clone().try_get_matches_from(words).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}
