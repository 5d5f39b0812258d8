//! Invalid scenarios of pods and pod groups.

use crate::error;
use lockkeeper_scenario::gang::GangScenario;

#[track_caller]
fn check(yaml: &str, expected: &str) {
    assert_eq!(error(yaml).to_string(), expected);
}

#[test]
fn duplicate_names_are_rejected() {
    check(
        "{nodes: [{name: a}, {name: a}]}",
        "nodes[1]: duplicate node name \"a\"; use unique names",
    );
    check(
        "{pods: [{name: p}, {name: p, namespace: x}, {name: p}]}",
        "pods[2]: duplicate pod name \"p\"; use unique names",
    );
    check(
        "{pods: [{name: p}], preemptor: {pod: {name: p}}}",
        "preemptor.pod: duplicate pod name \"p\"; use unique names",
    );
    check(
        "{pod_groups: [{name: g}, {name: g}]}",
        "pod_groups[1]: duplicate group name \"g\"; use unique names",
    );
}

#[test]
fn invalid_amounts_are_rejected() {
    check(
        "{nodes: [{name: a, allocatable: {cpu: -1}}]}",
        "nodes[0].allocatable[cpu]: an amount must be zero or more",
    );
    check(
        "{pods: [{name: a, requests: {memory: 9223372036854775806}}, {name: b, requests: {memory_bytes: 1}}]}",
        "pods[1].requests[memory_bytes]: the amount is too large; all of a resource together must stay below 2^63",
    );
    check(
        "{pods: [{name: a, spec: {containers: [{name: c, resources: {requests: {cpu: much}}}]}}]}",
        "pods[0].spec: Pod a: spec.containers[0].resources.requests[cpu]: not a quantity; accepted is a number with an optional suffix, as in 500m, 4 or 16Gi",
    );
    check(
        "{pods: [{name: a, requests: {cpu: 1}, spec: {containers: []}}]}",
        "pods[0].requests: requests and spec are mutually exclusive; omit one",
    );
}

#[test]
fn preemption_priority_below_priority_is_rejected() {
    check(
        "{pod_groups: [{name: g, priority: 2, preemption_priority: 1}]}",
        "pod_groups[0].preemption_priority: the preemption priority 1 is below the priority 2; set it to at least that",
    );
}

#[test]
fn preemptor_must_be_exactly_one() {
    check(
        "{preemptor: {pod: {name: a}, pod_group: {name: g}}}",
        "preemptor: set exactly one of pod, pod_group and composite_pod_group",
    );
    check(
        "{preemptor: {}}",
        "preemptor: set exactly one of pod, pod_group and composite_pod_group",
    );
    check(
        "{preemptor: {pod_group: {name: g, priority: 1}, priority: 2}}",
        "preemptor.priority: must be the priority of the group; omit it",
    );
}

#[test]
fn unknown_kubernetes_values_are_rejected() {
    check(
        "{pdbs: [{name: b, selector: {match_expressions: [{key: a, op: Is}]}}]}",
        "pdbs[0].selector: unknown operator \"Is\"; use In, NotIn, Exists or DoesNotExist",
    );
    check(
        "{nodes: [{name: a, taints: [{key: k, effect: Never}]}]}",
        "nodes[0].taints[0].effect: unknown effect \"Never\"; use NoSchedule, PreferNoSchedule or NoExecute",
    );
    check(
        "{placement_strategy: any}",
        "placement_strategy: must start with first_fit, best_fit or both",
    );
}

#[test]
fn unknown_key_is_rejected() {
    for yaml in [
        "{node: []}",
        "{nodes: [{nam: a}]}",
        "{pods: [{name: a, nodes: b}]}",
        "{pod_groups: [{name: g, policy: {gang: {minCount: 1}}}]}",
        "{kind: pod_group_domains}",
    ] {
        assert!(
            serde_saphyr::from_str::<GangScenario>(yaml).is_err(),
            "{yaml}"
        );
    }
}
