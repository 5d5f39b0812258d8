//! Answers in each situation, as text.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{
    Project, Selector, Situation, World, WorldBuilder, WorldSettings, explain, write_answer,
};
use serde_json::{Value, json};

/// ClusterQueues `a` and `b` of 4 cpu each in the cohort `lab`, with one LocalQueue each in the namespace `ns`.
fn builder() -> WorldBuilder {
    let mut builder = WorldBuilder::new();
    builder.add(object("ResourceFlavor", "default", json!({})));
    for name in ["a", "b"] {
        builder.add(cluster_queue(name, json!({})));
        builder.add(namespaced(
            "LocalQueue",
            name,
            json!({"clusterQueue": name}),
        ));
    }
    builder
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn namespaced(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = object(kind, name, spec);
    object["metadata"]["namespace"] = json!("ns");
    object
}

/// A ClusterQueue with 4 cpu; `spec` is merged into its spec.
fn cluster_queue(name: &str, spec: Value) -> Value {
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]});
    let mut whole = json!({
        "cohortName": "lab",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
    });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    object("ClusterQueue", name, whole)
}

fn workload(name: &str, queue: &str, cpu: u32) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}});
    let template = json!({"spec": {"containers": [container]}});
    let mut workload = namespaced(
        "Workload",
        name,
        json!({"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": template}]}),
    );
    workload["metadata"]["uid"] = json!(name);
    workload["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    workload["status"] = json!({"priority": 0, "conditions": []});
    workload
}

fn admitted(name: &str, queue: &str, cpu: u32) -> Value {
    let mut workload = workload(name, queue, cpu);
    workload["status"]["admission"] = json!({
        "clusterQueue": queue,
        "podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "default"},
            "resourceUsage": {"cpu": cpu.to_string()}}],
    });
    workload
}

fn condition(of: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": of, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T01:00:00Z"})
}

#[track_caller]
fn text(world: &World, key: &str) -> String {
    let mut text = String::new();
    write_answer(&mut text, &explain(world, key).unwrap()).unwrap();
    text
}

fn build(builder: WorldBuilder) -> World {
    builder.build(WorldSettings::default())
}

#[test]
fn workload_behind_others_waits_for_them() {
    let mut builder = builder();
    builder.add(cluster_queue(
        "a",
        json!({"queueingStrategy": "StrictFIFO", "cohortName": null}),
    ));
    builder.add(workload("large", "a", 5));
    let mut second = workload("small", "a", 1);
    second["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:05Z");
    builder.add(second);
    insta::assert_snapshot!(text(&build(builder), "ns/small"));
}

#[test]
fn victims_and_candidates_have_reasons() {
    let mut builder = builder();
    let policy = json!({"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"});
    builder.add(cluster_queue("a", json!({"preemption": policy})));
    builder.add(admitted("borrows", "b", 6));
    builder.add(admitted("own", "a", 1));
    builder.add(workload("owner", "a", 3));
    insta::assert_snapshot!(text(&build(builder), "ns/owner"));
}

#[test]
fn borrowing_limit_is_named_as_the_limit() {
    let mut builder = builder();
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4", "borrowingLimit": "1"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    builder.add(cluster_queue("a", json!({"resourceGroups": groups})));
    builder.add(workload("wide", "a", 7));
    insta::assert_snapshot!(text(&build(builder), "ns/wide"));
}

/// The request fits while nothing runs, so the answer is not that it never fits.
#[test]
fn used_borrowing_limit_is_named_in_the_answer() {
    let mut builder = builder();
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4", "borrowingLimit": "1"}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    builder.add(cluster_queue("a", json!({"resourceGroups": groups})));
    builder.add(admitted("runs", "a", 2));
    builder.add(workload("waits", "a", 4));
    let text = text(&build(builder), "ns/waits");
    let first = "ns/waits needs 1 more cpu of flavor default, limited by the borrowing limit of ClusterQueue a";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn running_workload_names_its_preemptors() {
    let mut builder = builder();
    builder.add(cluster_queue(
        "a",
        json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    ));
    builder.add(cluster_queue(
        "b",
        json!({"preemption": {"reclaimWithinCohort": "Any"}}),
    ));
    let mut running = admitted("runs", "a", 6);
    running["status"]["priority"] = json!(10);
    builder.add(running);
    insta::assert_snapshot!(text(&build(builder), "ns/runs"));
}

#[test]
fn preempted_workload_shows_its_history() {
    let mut builder = builder();
    builder.add(admitted("other", "a", 8));
    let mut evicted = workload("evicted", "a", 2);
    evicted["status"]["conditions"] = json!([
        condition(
            "Evicted",
            "True",
            "Preempted",
            "Preempted to accommodate a workload"
        ),
        condition(
            "Preempted",
            "True",
            "InClusterQueue",
            "preemptor path: /lab/a; preemptee path: /lab/a"
        ),
    ]);
    builder.add(evicted);
    insta::assert_snapshot!(text(&build(builder), "ns/evicted"));
}

#[test]
fn workloads_that_are_not_queued_say_why() {
    let mut builder = builder();
    builder.add(workload("no-queue", "missing", 1));
    let mut inactive = workload("inactive", "a", 1);
    inactive["spec"]["active"] = json!(false);
    builder.add(inactive);
    let mut finished = workload("finished", "a", 1);
    finished["status"]["conditions"] = json!([condition("Finished", "True", "Succeeded", "done")]);
    builder.add(finished);
    builder.add(cluster_queue("b", json!({"stopPolicy": "Hold"})));
    builder.add(workload("held", "b", 1));
    let mut uncovered = workload("uncovered", "a", 1);
    let requests = "/spec/podSets/0/template/spec/containers/0/resources/requests";
    *uncovered.pointer_mut(requests).unwrap() = json!({"gpu": "1"});
    builder.add(uncovered);
    let world = build(builder);
    for (name, situation, summary) in [
        (
            "no-queue",
            Situation::NotQueued,
            "is not queued: LocalQueue missing does not exist in its namespace",
        ),
        (
            "inactive",
            Situation::NotQueued,
            "is not queued: The workload is deactivated (spec.active is false)",
        ),
        ("finished", Situation::Finished, "has finished"),
        (
            "held",
            Situation::Pending,
            "waits: ClusterQueue b is stopped (spec.stopPolicy)",
        ),
    ] {
        let answer = explain(&world, &format!("ns/{name}")).unwrap();
        assert_eq!(
            (answer.situation, answer.summary.as_str()),
            (situation, summary)
        );
    }
    let uncovered = explain(&world, "ns/uncovered").unwrap();
    assert_eq!(uncovered.reason, "ResourceNotCovered");
    assert!(
        uncovered.summary.contains("requests gpu"),
        "{}",
        uncovered.summary
    );
    assert_eq!(explain(&world, "ns/none"), None);
}

#[test]
fn admitted_workload_without_its_queue_is_explained() {
    let mut builder = WorldBuilder::new();
    builder.add(admitted("lost", "gone", 1));
    let answer = explain(&build(builder), "ns/lost").unwrap();
    assert_eq!(answer.situation, Situation::Running);
}

#[test]
fn invalid_objects_are_reported_and_the_rest_is_considered() {
    let mut builder = builder();
    let mut invalid = workload("invalid", "a", 1);
    invalid["spec"]["podSets"] = json!("none");
    builder.add(invalid);
    let mut negative = workload("negative", "a", 1);
    let cpu = "/spec/podSets/0/template/spec/containers/0/resources/requests/cpu";
    *negative.pointer_mut(cpu).unwrap() = json!("-1");
    builder.add(negative);
    builder.add(json!("text"));
    builder.add(json!({"kind": "List", "items": [workload("fits", "a", 1), {"kind": 5}]}));
    let world = build(builder);
    let unreadable: Vec<&str> = world
        .unreadable()
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(unreadable, ["ns/invalid", "ns/negative"]);
    assert_eq!(
        explain(&world, "ns/negative").unwrap().situation,
        Situation::Invalid
    );
    assert_eq!(
        explain(&world, "ns/fits").unwrap().summary,
        "is admitted in the next cycle"
    );
}

/// An account may list namespaces and not flavors.
#[test]
fn queues_without_known_flavors_are_active() {
    let mut builder = WorldBuilder::new();
    builder.add(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}));
    builder.add(cluster_queue("a", json!({})));
    builder.add(namespaced("LocalQueue", "a", json!({"clusterQueue": "a"})));
    builder.add(workload("fits", "a", 1));
    let answer = explain(&build(builder), "ns/fits").unwrap();
    assert_eq!(answer.summary, "is admitted in the next cycle");
    assert_eq!(answer.missing, ["ResourceFlavor default of ClusterQueue a"]);
}

#[test]
fn cohort_cycles_and_unknown_parents_end() {
    let mut builder = builder();
    builder.add(object("Cohort", "lab", json!({"parentName": "outer"})));
    builder.add(object("Cohort", "outer", json!({"parentName": "lab"})));
    builder.add(workload("waits", "a", 1));
    let answer = explain(&build(builder), "ns/waits").unwrap();
    assert_eq!(answer.situation, Situation::Pending);
}

#[test]
fn selectors_find_workloads_by_name_and_job() {
    let mut builder = builder();
    for namespace in ["ns", "other"] {
        let mut owned = workload("job-train-1", "a", 1);
        owned["metadata"]["namespace"] = json!(namespace);
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": true}]);
        builder.add(owned);
    }
    builder.add(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain", "namespace": "ns"}}));
    let world = build(builder);
    let find = |argument: &str, namespace: Option<&str>| {
        let selector = Selector::parse(argument, namespace).map_err(|it| it.to_string())?;
        world
            .find(&selector)
            .map(str::to_owned)
            .map_err(|it| it.to_string())
    };
    for argument in [
        "job-train-1",
        "job/train",
        "Jobs/train",
        "jobs.batch/train",
        "workload/job-train-1",
    ] {
        assert_eq!(
            find(argument, Some("ns")).unwrap(),
            "ns/job-train-1",
            "{argument}"
        );
    }
    for (argument, namespace, message) in [
        (
            "job/train",
            None,
            "\"train\" is in several namespaces (ns, other); choose one with --namespace",
        ),
        (
            "train",
            Some("ns"),
            "there is no Workload \"train\" in namespace ns; did you mean job/train?",
        ),
        (
            "job-train-1",
            Some("none"),
            "there is no Workload \"job-train-1\" in namespace none; there is one in namespace ns",
        ),
        (
            "job/plain",
            Some("ns"),
            "job/plain has no Workload: it names no queue; set the label lockkeeper.dev/queue-name",
        ),
        (
            "job/none",
            Some("ns"),
            "job/none has no Workload: no Workload has such an owner in namespace ns, and the job is not in the input",
        ),
    ] {
        assert_eq!(find(argument, namespace).unwrap_err(), message);
    }
    for argument in ["", "/", "job/", "/name", "a/b/c"] {
        assert!(
            find(argument, None)
                .unwrap_err()
                .contains("is not a workload"),
            "{argument}"
        );
    }
}

#[test]
fn objects_of_kueue_are_read_in_both_versions() {
    for (version, cohort) in [("v1beta1", "cohort"), ("v1beta2", "cohortName")] {
        let mut builder = WorldBuilder::new();
        let api = format!("kueue.x-k8s.io/{version}");
        let mut add = |mut object: Value| {
            object["apiVersion"] = json!(api);
            builder.add(object);
        };
        add(object("ResourceFlavor", "default", json!({})));
        for name in ["a", "b"] {
            let mut queue = cluster_queue(name, json!({"admissionChecks": ["check"]}));
            let spec = queue["spec"].as_object_mut().unwrap();
            let parent = spec.remove("cohortName").unwrap();
            spec.insert(cohort.to_owned(), parent);
            add(queue);
            add(namespaced(
                "LocalQueue",
                name,
                json!({"clusterQueue": name}),
            ));
        }
        add(admitted("holds", "b", 7));
        let mut waits = workload("waits", "a", 2);
        waits["spec"]["priority"] = json!(5);
        add(waits);
        let world = build(builder);
        assert_eq!(world.project(), Project::Kueue);
        assert_eq!(world.unreadable(), [], "{version}");
        let answer = explain(&world, "ns/waits").unwrap();
        assert_eq!(answer.workload.path.as_deref(), Some("/lab/a"), "{version}");
        assert_eq!(
            (answer.workload.priority, answer.quota[0].short.as_str()),
            (5, "1")
        );
        assert!(
            answer
                .assumptions
                .iter()
                .any(|it| it.starts_with("ClusterQueue.spec.admissionChecks")),
            "{:?}",
            answer.assumptions
        );
    }
}
