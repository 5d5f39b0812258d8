//! Requests that the API server adds to new pods: a job needs quota for them.

use crate::test_cluster::{Cluster, admitted, fields, pending};
use crate::{object, yaml};
use k8s_openapi::api::core::v1::LimitRange;
use k8s_openapi::api::node::v1::RuntimeClass;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_cluster_state::journal::{apply, restart_journal, take_events};
use lockkeeper_cluster_state::pod_default_objects::{
    remove_limit_range, remove_runtime_class, set_limit_range, set_runtime_class,
};
use lockkeeper_cluster_state::{Completeness, WorkloadPhase};
use lockkeeper_preemption::Options;
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

/// A `LimitRange` with these items.
fn limit_range(namespace: &str, name: &str, limits: &str) -> LimitRange {
    let limits: Value = yaml(limits);
    object(&json!({"apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"namespace": namespace, "name": name}, "spec": {"limits": limits}}))
}

fn runtime_class(name: &str, cpu: &str) -> RuntimeClass {
    object(
        &json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
        "handler": "h", "overhead": {"podFixed": {"cpu": cpu}}}),
    )
}

/// A workload of two pods in the queue `q`.
fn workload(pod: &str) -> Value {
    let mut workload = pending("w", "q", 0, 0);
    workload["spec"]["podSets"] = json!([{"count": 2, "template": {"spec": fields(pod)}}]);
    workload
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.set_queue("q", &[("f", "nominalQuota: 100")], "");
    cluster
}

/// The requests for cpu of a workload, in milli.
fn requests(objects: &ClusterState, name: &str) -> Option<i64> {
    let state = objects.state();
    let id = state.workload(&format!("ns/{name}"))?;
    let requests = &state.workload_view(id).pod_sets()[0].requests;
    let cpu = |id| state.resource_name(id) == "cpu";
    requests
        .iter()
        .find(|(id, _)| cpu(*id))
        .map(|(_, it)| it.get())
}

/// The requests of two pods with one pod spec in a namespace with a `LimitRange`.
#[track_caller]
fn check_requests(cases: &[(&str, &str, i64)]) {
    for (limits, pod, expected) in cases {
        let mut cluster = cluster();
        set_limit_range(&mut cluster.objects, &limit_range("ns", "l", limits));
        // One of another namespace.
        set_limit_range(
            &mut cluster.objects,
            &limit_range("ns2", "l", "[{type: Container, defaultRequest: {cpu: 50}}]"),
        );
        cluster.set_workload(&workload(pod));
        assert_eq!(
            requests(&cluster.objects, "w").unwrap_or_default(),
            *expected,
            "{limits} {pod}"
        );
    }
}

#[test]
fn containers_get_the_default_requests_of_their_namespace() {
    const DEFAULTS: &str = "[{type: Container, defaultRequest: {cpu: 2}}]";
    check_requests(&[
        (DEFAULTS, "containers: [{name: a}]", 4_000),
        (DEFAULTS, "containers: [{name: a}, {name: b}]", 8_000),
        // What a container requests, also by a limit, stays.
        (
            DEFAULTS,
            "containers: [{name: a, resources: {requests: {cpu: 1}}}]",
            2_000,
        ),
        (
            DEFAULTS,
            "containers: [{name: a, resources: {limits: {cpu: 3}}}]",
            6_000,
        ),
        (
            DEFAULTS,
            "containers: [{name: a, resources: {requests: {cpu: 0}}}]",
            0,
        ),
        (
            DEFAULTS,
            "containers: [{name: a, resources: {requests: {memory: 1Gi}}}]",
            4_000,
        ),
        // Init containers run before the others, sidecars beside them.
        (
            DEFAULTS,
            "containers: [{name: a}], initContainers: [{name: i}]",
            4_000,
        ),
        (
            DEFAULTS,
            "containers: [{name: a}], initContainers: [{name: i, restartPolicy: Always}]",
            8_000,
        ),
        // Pod-level requests replace those of the containers.
        (
            DEFAULTS,
            "containers: [{name: a}], resources: {requests: {cpu: 5}}",
            10_000,
        ),
    ]);
}

#[test]
fn defaults_of_a_limit_range_are_completed() {
    check_requests(&[
        // The default limit is the maximum, and the default request the default limit, or the minimum.
        (
            "[{type: Container, default: {cpu: 3}}]",
            "containers: [{name: a}]",
            6_000,
        ),
        (
            "[{type: Container, max: {cpu: 4}}]",
            "containers: [{name: a}]",
            8_000,
        ),
        (
            "[{type: Container, min: {cpu: 500m}}]",
            "containers: [{name: a}]",
            1_000,
        ),
        (
            "[{type: Container, defaultRequest: {cpu: 1}, default: {cpu: 2}, max: {cpu: 3}, min: {cpu: 500m}}]",
            "containers: [{name: a}]",
            2_000,
        ),
        // Limits of other types have no defaults.
        ("[{type: Pod, max: {cpu: 4}}]", "containers: [{name: a}]", 0),
        (
            "[{type: Container, maxLimitRequestRatio: {cpu: 2}}]",
            "containers: [{name: a}]",
            0,
        ),
        (
            "[{type: Container, defaultRequest: {cpu: 1}}, {type: Container, defaultRequest: {cpu: 3}}]",
            "containers: [{name: a}]",
            6_000,
        ),
    ]);
}

#[test]
fn pods_get_the_overhead_of_their_runtime_class() {
    const CONTAINER: &str = "containers: [{name: a, resources: {requests: {cpu: 1}}}]";
    let mut cluster = cluster();
    set_runtime_class(&mut cluster.objects, &runtime_class("slow", "250m"));
    for (more, expected) in [
        ("", 2_000),
        (", runtimeClassName: slow", 2_500),
        (", runtimeClassName: unknown", 2_000),
        // That of a pod was added already.
        (", runtimeClassName: slow, overhead: {cpu: 100m}", 2_200),
        (", runtimeClassName: slow, overhead: {}", 2_500),
        (", overhead: {cpu: 100m}", 2_200),
    ] {
        cluster.set_workload(&workload(&format!("{CONTAINER}{more}")));
        assert_eq!(requests(&cluster.objects, "w"), Some(expected), "{more}");
    }
}

/// Workloads follow their defaults; quota that is reserved stays.
#[test]
fn changes_of_defaults_change_requests() {
    let mut cluster = cluster();
    let pod = "runtimeClassName: slow, containers: [{name: a}]";
    cluster.set_workload(&workload(pod));
    let mut running = admitted(&pending("running", "q", 7, 0), "q");
    running["spec"]["podSets"][0]["template"]["spec"] = fields(pod);
    cluster.set_workload(&running);
    let objects = &mut cluster.objects;
    assert_eq!(requests(objects, "w"), None);
    set_limit_range(
        objects,
        &limit_range("ns", "l", "[{type: Container, defaultRequest: {cpu: 2}}]"),
    );
    assert_eq!(requests(objects, "w"), Some(4_000));
    set_runtime_class(objects, &runtime_class("slow", "500m"));
    assert_eq!(requests(objects, "w"), Some(5_000));
    set_limit_range(
        objects,
        &limit_range("ns", "l", "[{type: Container, defaultRequest: {cpu: 3}}]"),
    );
    assert_eq!(requests(objects, "w"), Some(7_000));
    remove_runtime_class(objects, "slow");
    assert_eq!(requests(objects, "w"), Some(6_000));
    remove_limit_range(objects, "ns", "l");
    assert_eq!(requests(objects, "w"), None);
    let id = objects.state().workload("ns/running").unwrap();
    let reserved = objects.state().workload_view(id).reservation().unwrap();
    assert_eq!(reserved.usage[0].1.get(), 7_000);
    assert_eq!(
        objects.phase("ns/running"),
        Some(Ok(WorkloadPhase::Admitted))
    );
}

/// A workload whose pods get more than its quota waits, and the message says how much it needs.
#[test]
fn defaults_need_quota() {
    let mut cluster = Cluster::new();
    cluster.set_queue("q", &[("f", "nominalQuota: 3")], "");
    set_limit_range(
        &mut cluster.objects,
        &limit_range("ns", "l", "[{type: Container, defaultRequest: {cpu: 2}}]"),
    );
    cluster.set_workload(&workload("containers: [{name: a}]"));
    assert_eq!(cluster.run_cycle(), ["w NoFit"]);
    remove_limit_range(&mut cluster.objects, "ns", "l");
    assert_eq!(cluster.run_cycle(), ["w Admit"]);
}

/// A log of the events makes the same requests.
#[test]
fn events_have_the_defaults() {
    let empty = || {
        ClusterState::new(
            Options::default(),
            RequeueSettings::default(),
            Completeness::Partial,
        )
    };
    let mut cluster = cluster();
    let pod = "runtimeClassName: slow, containers: [{name: a}]";
    set_limit_range(
        &mut cluster.objects,
        &limit_range("ns", "l", "[{type: Container, default: {cpu: 2}}]"),
    );
    set_runtime_class(&mut cluster.objects, &runtime_class("slow", "500m"));
    cluster.set_workload(&workload(pod));
    restart_journal(&mut cluster.objects, empty());
    let mut again = empty();
    let mut replay = |cluster: &mut Cluster, expected| {
        for event in take_events(&mut cluster.objects) {
            apply(&mut again, &event);
        }
        assert_eq!(requests(&cluster.objects, "w"), expected);
        assert_eq!(requests(&again, "w"), expected);
    };
    replay(&mut cluster, Some(5_000));
    set_limit_range(
        &mut cluster.objects,
        &limit_range("ns", "l", "[{type: Container, default: {cpu: 3}}]"),
    );
    replay(&mut cluster, Some(7_000));
    remove_runtime_class(&mut cluster.objects, "slow");
    replay(&mut cluster, Some(6_000));
    set_runtime_class(&mut cluster.objects, &runtime_class("slow", "1"));
    remove_limit_range(&mut cluster.objects, "ns", "l");
    replay(&mut cluster, Some(2_000));
}
