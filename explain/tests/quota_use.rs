//! The use of quota before and after an admission.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{QuotaUse, World, WorldBuilder, WorldSettings, quota_rows, quota_use};
use serde_json::{Value, json};

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let is_namespaced = ["LocalQueue", "Workload"].contains(&kind);
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": name, "uid": name, "namespace": is_namespaced.then_some("ns")},
    })
}

/// A queue with a LocalQueue of the same name.
fn add_queue(builder: &mut WorldBuilder, name: &str, cohort: Option<&str>) {
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]});
    let mut spec = json!({
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    });
    if let Some(cohort) = cohort {
        spec["cohortName"] = json!(cohort);
    }
    builder.add(object("ClusterQueue", name, spec));
    builder.add(object("LocalQueue", name, json!({"clusterQueue": name})));
}

fn workload(name: &str, queue: &str, cpu: u32, priority: i32, is_admitted: bool) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}});
    let pod_set =
        json!({"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}});
    let mut workload = object(
        "Workload",
        name,
        json!({"queueName": queue, "podSets": [pod_set]}),
    );
    workload["status"] = json!({"priority": priority});
    if is_admitted {
        workload["status"]["admission"] = json!({
            "clusterQueue": queue,
            "podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "default"},
                "resourceUsage": {"cpu": cpu.to_string()}}],
        });
    }
    workload
}

/// Queues `a` and `b` in a cohort, and `alone`. In `a`, 4 of 4 are used, in `b` 1.
fn world(pending: Value) -> World {
    let mut builder = WorldBuilder::new();
    builder.add(object("ResourceFlavor", "default", json!({})));
    add_queue(&mut builder, "a", Some("lab"));
    add_queue(&mut builder, "b", Some("lab"));
    add_queue(&mut builder, "alone", None);
    builder.add(workload("low", "a", 3, 0, true));
    builder.add(workload("high", "a", 1, 9, true));
    builder.add(workload("other", "b", 1, 9, true));
    builder.add(pending);
    builder.build(WorldSettings::default())
}

/// By path: the nominal quota, the use, and the use after.
fn uses(world: &World, key: &str) -> Vec<(String, i64, i64, Option<i64>)> {
    let uses = quota_use(world, key).into_iter();
    let row = |it: QuotaUse| (it.path, it.nominal, it.used, it.used_after);
    uses.map(row).collect()
}

fn tree(after: Option<[i64; 3]>) -> Vec<(String, i64, i64, Option<i64>)> {
    let rows = [
        ("/lab", 8_000, 5_000),
        ("/lab/a", 4_000, 4_000),
        ("/lab/b", 4_000, 1_000),
    ];
    let rows = rows
        .into_iter()
        .enumerate()
        .map(|(at, (path, nominal, used))| {
            (path.to_owned(), nominal, used, after.map(|it| it[at]))
        });
    rows.collect()
}

#[test]
fn use_after_has_the_workload_and_not_its_victims() {
    for (pending, after) in [
        // It borrows.
        (workload("w", "a", 2, 5, false), Some([7_000, 6_000, 1_000])),
        // It preempts the workload of lower priority.
        (workload("w", "a", 4, 5, false), Some([6_000, 5_000, 1_000])),
        // It does not fit.
        (workload("w", "a", 9, 5, false), None),
        // It has quota already, which is part of what is used.
        (workload("low", "a", 3, 0, true), None),
    ] {
        let key = format!("ns/{}", pending["metadata"]["name"].as_str().unwrap());
        let world = world(pending);
        assert_eq!(uses(&world, &key), tree(after), "{key}");
    }
}

#[test]
fn workload_outside_of_queues_has_all_trees() {
    let world = world(workload("w", "none", 1, 0, false));
    let got = uses(&world, "ns/w");
    let alone = ("/alone".to_owned(), 4_000, 0, None);
    let expected: Vec<_> = std::iter::once(alone).chain(tree(None)).collect();
    assert_eq!(got, expected);
    let listed = quota_rows(&world).into_iter().map(|it| it.path);
    assert!(listed.eq(got.into_iter().map(|it| it.0)));
}
