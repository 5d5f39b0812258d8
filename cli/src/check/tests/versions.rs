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

/// The definition of a ClusterQueue as an older or a newer Kueue has it: one version, fewer values, and a field of its own.
const GIVEN_DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterqueues.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {kind: ClusterQueue, plural: clusterqueues, singular: clusterqueue, listKind: ClusterQueueList}
  scope: Cluster
  versions:
  - name: v1beta1
    served: true
    storage: true
    deprecated: true
    deprecationWarning: This version is deprecated.
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cohort: {type: string}
              tenancy: {type: string}
              preemption:
                type: object
                properties:
                  reclaimWithinCohort: {type: string}
                  borrowWithinCohort: {type: object, properties: {policy: {type: string}}}
              flavorFungibility:
                type: object
                default: {}
                properties:
                  whenCanBorrow: {type: string, enum: [Borrow, TryNextFlavor], default: Borrow}
";

#[test]
fn given_definition_takes_the_place_of_the_schema_of_a_kueue_kind() {
    let queue = |version: &str, spec: &str| {
        format!(
            "apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\nmetadata: {{name: team}}\nspec: {spec}\n"
        )
    };
    let check = |object: &str| {
        let files = [("crd.yaml", GIVEN_DEFINITION), ("queue.yaml", object)];
        run(&files, &[]).0
    };
    let deprecated = "This version is deprecated";
    // A field that only the given release has.
    let text = check(&queue("v1beta1", "{tenancy: shared}"));
    assert!(
        !text.contains("SC005") && text.contains(deprecated),
        "{text}"
    );
    // A value and a version that it does not have.
    let newer = "{flavorFungibility: {whenCanBorrow: MayStopSearch}}";
    let text = check(&queue("v1beta1", newer));
    assert!(
        text.contains("Unsupported value: \"MayStopSearch\""),
        "{text}"
    );
    let text = check(&queue("v1beta2", "{}"));
    assert!(text.contains("there is no such version"), "{text}");
    // The rules run, also on an object with a field that would be dropped.
    let eager = "{kohort: a, preemption: {reclaimWithinCohort: Never, borrowWithinCohort: {policy: LowerPriority}}}";
    let text = check(&queue("v1beta1", eager));
    assert!(text.contains("SC005") && text.contains("[CQ022]"), "{text}");
    // The built-in schema knows the newest release.
    let alone = queue("v1beta1", "{tenancy: shared}");
    let text = run(&[("queue.yaml", &alone)], &[]).0;
    assert!(text.contains("spec.tenancy"), "{text}");
}

#[test]
fn pod_templates_of_workloads_are_checked() {
    for version in ["lockkeeper.dev/v1alpha1", "kueue.x-k8s.io/v1beta2"] {
        let workload = format!(
            "apiVersion: {version}
kind: Workload
metadata: {{name: typo, namespace: team}}
spec:
  podSets:
  - name: main
    count: 1
    template:
      metdata: {{labels: {{a: b}}}}
      spec:
        containers:
        - {{name: c, image: a, resourcess: {{requests: {{cpu: 1}}}}, ports: [{{containerPort: http}}]}}
"
        );
        let (text, code) = run(&[("workload.yaml", &workload)], &[]);
        for expected in [
            "workload.yaml:9:7: error[SC005]: Workload team/typo: spec.podSets[0].template.metdata",
            "workload.yaml:12:31: error[SC005]: Workload team/typo: spec.podSets[0].template.spec.containers[0].resourcess",
            "did you mean resources?",
            "spec.podSets[0].template.spec.containers[0].ports[0].containerPort",
        ] {
            assert!(text.contains(expected), "{version}: {expected}: {text}");
        }
        assert_eq!(code, 1);
    }
}
