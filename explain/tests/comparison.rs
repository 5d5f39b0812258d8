//! The effect of a change of a ClusterQueue on workloads.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{
    Affected, Comparison, World, WorldBuilder, WorldSettings, compare, quota_rows,
};
use serde_json::{Value, json};

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn cluster_queue(name: &str, cpu: u32, preemption: Value) -> Value {
    let flavor =
        json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu.to_string()}]});
    let spec = json!({
        "cohortName": "lab",
        "namespaceSelector": {},
        "preemption": preemption,
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    });
    object("ClusterQueue", name, spec)
}

fn workload(name: &str, queue: &str, cpu: u32, is_admitted: bool) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}});
    let template = json!({"spec": {"containers": [container]}});
    let mut workload = object(
        "Workload",
        name,
        json!({"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": template}]}),
    );
    workload["metadata"]["namespace"] = json!("ns");
    workload["metadata"]["uid"] = json!(name);
    workload["status"] = json!({"priority": 0});
    if is_admitted {
        workload["status"]["admission"] = json!({
            "clusterQueue": queue,
            "podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "default"},
                "resourceUsage": {"cpu": cpu.to_string()}}],
        });
    }
    workload
}

/// Queues `a` and `b` of 4 cpu each; a workload of `b` uses 6 of them, one of `a` waits for 4.
fn base() -> WorldBuilder {
    let mut builder = WorldBuilder::new();
    builder.add(object("ResourceFlavor", "default", json!({})));
    for name in ["a", "b"] {
        builder.add(cluster_queue(name, 4, json!({})));
        let mut local = object("LocalQueue", name, json!({"clusterQueue": name}));
        local["metadata"]["namespace"] = json!("ns");
        builder.add(local);
    }
    builder.add(workload("borrows", "b", 6, true));
    builder.add(workload("waits", "a", 4, false));
    builder
}

fn build(builder: WorldBuilder) -> World {
    builder.build(WorldSettings::default())
}

#[track_caller]
fn change(change: impl FnOnce(&mut WorldBuilder)) -> Comparison {
    let mut changed = base();
    change(&mut changed);
    let comparison = compare(&build(base()), &build(changed.clone()));
    // The reverse change has the reverse effect.
    let reverse = compare(&build(changed), &build(base()));
    assert_eq!(names(&reverse.no_longer_starts), names(&comparison.starts));
    assert_eq!(
        names(&reverse.no_longer_preempted),
        names(&comparison.preempted)
    );
    assert_eq!(
        names(&reverse.reclaimable),
        names(&comparison.no_longer_reclaimable)
    );
    assert_eq!(names(&reverse.queued), names(&comparison.not_queued));
    comparison
}

fn names(affected: &[Affected]) -> Vec<&str> {
    affected.iter().map(|it| it.workload.as_str()).collect()
}

#[test]
fn equal_worlds_have_no_effect() {
    let comparison = change(|_| {});
    assert!(
        comparison.is_empty() && !comparison.is_harmful(),
        "{comparison:?}"
    );
}

#[test]
fn more_quota_starts_a_workload() {
    let comparison = change(|it| it.replace(cluster_queue("a", 6, json!({}))));
    assert_eq!(names(&comparison.starts), ["ns/waits"]);
    assert!(!comparison.is_harmful(), "{comparison:?}");
}

#[test]
fn preemption_policy_preempts_a_running_workload() {
    let comparison =
        change(|it| it.replace(cluster_queue("a", 4, json!({"reclaimWithinCohort": "Any"}))));
    assert_eq!(names(&comparison.preempted), ["ns/borrows"]);
    assert_eq!(
        comparison.preempted[0].preemptor.as_deref(),
        Some("ns/waits")
    );
    assert_eq!(names(&comparison.starts), ["ns/waits"]);
    assert!(comparison.is_harmful());
}

#[test]
fn less_quota_makes_running_workloads_reclaimable() {
    let mut larger = base();
    larger.replace(cluster_queue("b", 6, json!({})));
    let comparison = compare(&build(larger), &build(base()));
    assert_eq!(names(&comparison.reclaimable), ["ns/borrows"]);
    assert_eq!(names(&comparison.no_longer_starts), ["ns/waits"]);
}

#[test]
fn removed_queue_leaves_its_pending_workloads() {
    let comparison = change(|it| it.remove(&cluster_queue("a", 4, json!({}))));
    assert_eq!(names(&comparison.not_queued), ["ns/waits"]);
    assert_eq!(comparison.not_queued[0].cluster_queue, "a");
    assert!(comparison.is_harmful());
}

#[test]
fn invalid_queue_is_reported() {
    let comparison = change(|it| {
        let mut invalid = cluster_queue("b", 4, json!({}));
        *invalid
            .pointer_mut("/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota")
            .unwrap() = json!("-1");
        it.replace(invalid);
    });
    assert_eq!(comparison.invalid.len(), 1, "{comparison:?}");
    assert!(
        comparison.invalid[0].starts_with("ClusterQueue b"),
        "{comparison:?}"
    );
}

#[test]
fn quota_of_cohorts_is_part_of_their_rows() {
    let mut builder = base();
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "3"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    builder.add(object(
        "Cohort",
        "lab",
        json!({"parentName": "root", "resourceGroups": groups.clone()}),
    ));
    builder.add(object("Cohort", "root", json!({"resourceGroups": groups})));
    let rows = quota_rows(&builder.build(WorldSettings::default()));
    let nominal: Vec<(&str, &str)> = rows
        .iter()
        .map(|it| (it.path.as_str(), it.nominal.as_str()))
        .collect();
    let expected = [
        ("/root", "14"),
        ("/root/lab", "11"),
        ("/root/lab/a", "4"),
        ("/root/lab/b", "4"),
    ];
    assert_eq!(nominal, expected);
}
