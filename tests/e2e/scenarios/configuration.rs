//! Servers with other configurations, and objects that are older than a rule.

use super::Scenario;
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::{Kubectl, KubectlOutput};
use crate::lockkeeper::Protocol;
use crate::manifests::{self, CLUSTER_OBJECTS};
use crate::snapshot;

const WARN: &str = "rules: {actions: {WL004: warn}}\n";
const WARN_IN_DEV: &str = "rules: {namespaces: {dev: {actions: {WL004: warn}}}}\n";
const OFF: &str = "rules: {actions: {WL004: off}}\n";
const CAPS: &str = "
priority:
  maxPreemptionAboveScheduling: 1000
  separatePreemptionAllowedFor: [high]
";

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a rule that only warns lets the object pass",
            warning_rule_accepts,
        ),
        Scenario::new(
            "a rule can warn in a single namespace",
            warning_in_one_namespace,
        ),
        Scenario::new("the limits on priority are enforced", priority_caps),
        Scenario::new(
            "an object older than a rule can still be changed",
            ratcheting,
        ),
    ]
}

fn warning_rule_accepts(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, WARN);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let workload = manifests::workload_of_class("team", "train", "unheard-of");
    let reply = kubectl.apply(&workload, &[]).expect_accepted();
    assert!(reply.stderr.starts_with("Warning: "), "{}", reply.stderr);
    snapshot::check("rule-that-only-warns", &reply.stderr);
    let stored = kubectl.get(&["workloads.lockkeeper.dev", "train", "-n", "team"]);
    assert_eq!(stored["spec"]["priorityClassName"], "unheard-of");
}

fn warning_in_one_namespace(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, WARN_IN_DEV);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let here = manifests::workload_of_class("dev", "train", "unheard-of");
    let reply = kubectl.apply(&here, &[]).expect_accepted();
    assert!(reply.stderr.starts_with("Warning: "), "{}", reply.stderr);
    let elsewhere = manifests::workload_of_class("team", "train", "unheard-of");
    kubectl.apply(&elsewhere, &[]).expect_rejected();
}

fn priority_caps(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, CAPS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let workload = |class: &str, preemption: &str| {
        format!(
            "{}  preemptionPriorityClassName: {preemption}\n",
            manifests::workload_of_class("team", "train", class)
        )
    };
    let dry_run = ["--dry-run=server"];
    kubectl
        .apply(&workload("low", "low"), &dry_run)
        .expect_accepted_without_warning();
    let reply = kubectl
        .apply(&workload("low", "high"), &dry_run)
        .expect_rejected();
    snapshot::check("class-without-separate-preemption", &reply.stderr);
    let reply = kubectl
        .apply(&workload("high", "system-cluster-critical"), &dry_run)
        .expect_rejected();
    snapshot::check("preemption-too-far-above-scheduling", &reply.stderr);
}

/// The object names a class that does not exist; it was created while the rule was
/// off. Its old errors are not reported, and new ones are.
fn ratcheting(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, OFF);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let held = manifests::workload_of_class("team", "old", "unheard-of")
        .replace("metadata: {", "metadata: {finalizers: [example.com/hold], ");
    kubectl.apply(&held, &[]).expect_accepted_without_warning();

    let kubectl = stage.register_server(protocol, DEFAULTS);
    let new = manifests::workload_of_class("team", "new", "unheard-of");
    kubectl.apply(&new, &["--dry-run=server"]).expect_rejected();

    patch(&kubectl, r#"{"metadata":{"labels":{"team":"vision"}}}"#)
        .expect_accepted_without_warning();
    patch(&kubectl, r#"{"metadata":{"finalizers":null}}"#).expect_accepted_without_warning();
    patch(&kubectl, r#"{"spec":{"active":false}}"#).expect_accepted_without_warning();
    let reply = patch(&kubectl, MIXED_POD_SETS).expect_rejected();
    snapshot::check("old-object-made-worse", &reply.stderr);

    let stored = kubectl.get(&["workloads.lockkeeper.dev", "old", "-n", "team"]);
    assert!(stored["metadata"]["finalizers"].is_null());
    assert_eq!(stored["metadata"]["labels"]["team"], "vision");
    assert_eq!(stored["spec"]["active"], false);
}

/// Two pod sets: one is preemptible and one is not.
const MIXED_POD_SETS: &str = r#"{"spec":{"podSets":[
    {"name":"main","template":{
        "metadata":{"labels":{"quota.scheduling.koordinator.sh/preemptible":"true"}},
        "spec":{"containers":[{"name":"train","image":"registry.example.com/train:1"}]}}},
    {"name":"second","template":{
        "metadata":{"labels":{"quota.scheduling.koordinator.sh/preemptible":"false"}},
        "spec":{"containers":[{"name":"train","image":"registry.example.com/train:1"}]}}}]}}"#;

#[track_caller]
fn patch(kubectl: &Kubectl, patch: &str) -> KubectlOutput {
    let old = [
        "patch",
        "-n",
        "team",
        "workloads.lockkeeper.dev",
        "old",
        "--type=merge",
    ];
    let mut arguments = old.to_vec();
    arguments.extend(["--patch", patch]);
    kubectl.run(&arguments)
}
