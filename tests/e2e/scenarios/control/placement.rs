//! Queues that place workloads on nodes: victims stop before a workload is admitted, all or none.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::explain::{self, json_answer};
use super::fixture::{ControllerFixture, NO_LEADER_ELECTION, local_queue};
use super::pods::{is_gated, is_running, pod};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::nodes::Nodes;
use crate::objects::merge;

pub const TRIALS: [Trial; 9] = [
    (
        "a gang waits until all preempted pods are gone from its nodes",
        gang_preempts_pods,
    ),
    (
        "no pod is preempted for a gang that fits only in part",
        fits_in_part,
    ),
    (
        "a controller that restarts continues with the nominated nodes",
        restart,
    ),
    (
        "a Job preempts a workload on nodes as a whole",
        job_preempts_workload,
    ),
    (
        "a pod without a disruption budget is preempted first",
        budget_respected,
    ),
    (
        "a pod is deleted despite its disruption budget if no other victim is left",
        budget_violated,
    ),
    ("a workload gets quota and room on nodes", quota_and_nodes),
    (
        "pods with another priority than their workload are reported",
        other_priorities,
    ),
    (
        "pods that use one port of their node run on different nodes",
        host_ports,
    ),
];

/// The finalizer of a pod that takes a while to stop.
const STOPPING: &str = "example.com/stopping";

const KIND: &str = "test.lockkeeper.dev/kind";

/// A queue `q` that places workloads on `count` nodes of 4 cpu, without quota limits.
pub(super) fn open(stage: &mut Fixture, count: usize) -> ControllerFixture<'_> {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.classes();
    add_nodes(&mut site, "small", count);
    site.objects.create(&json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "placement": {"policy": "Nodes"}},
    }));
    site.objects.create(&local_queue("q", "q"));
    site
}

/// Pods select these nodes: the other nodes of the cluster have room for everything.
pub(super) fn add_nodes(site: &mut ControllerFixture<'_>, name: &str, count: usize) {
    site.stage.cluster().add_nodes(&Nodes {
        name,
        count,
        labels: &[(KIND, "small")],
        capacity: &[("cpu", "4"), ("memory", "64Gi"), ("pods", "110")],
    });
}

/// Creates a pod of 3 cpu that no queue manages, and waits until it runs.
pub(super) fn run_unmanaged(site: &ControllerFixture<'_>, name: &str, class: &str, node: &str) {
    let mut victim = pod(name, 3, "", &on_small_nodes());
    victim["metadata"]["labels"] = json!({"app": name});
    victim["metadata"]["finalizers"] = json!([STOPPING]);
    victim["spec"]["priorityClassName"] = class.into();
    victim["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node.into();
    site.objects.create(&victim);
    site.objects.wait_until("Pod", name, is_running);
}

pub(super) fn on_small_nodes() -> Value {
    json!({"spec": {"nodeSelector": {KIND: "small"}}})
}

/// Creates a gang `train` of two pods, `a` and `b`, of 3 cpu each.
fn create_gang(site: &ControllerFixture<'_>) {
    let mut more = on_small_nodes();
    merge(
        &mut more,
        &json!({"metadata": {
            "labels": {"lockkeeper.dev/pod-group-name": "train"},
            "annotations": {"lockkeeper.dev/pod-group-total-count": "2"},
        }}),
    );
    for name in ["a", "b"] {
        site.objects.create(&pod(name, 3, "high", &more));
    }
}

fn is_terminating(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

pub(super) fn stop(site: &ControllerFixture<'_>, name: &str) {
    let change = json!({"metadata": {"finalizers": null}});
    site.objects.patch("Pod", name, &change);
}

/// Waits until the workload of the gang has nominated nodes.
fn wait_until_nominated(site: &ControllerFixture<'_>) {
    for name in ["a", "b"] {
        site.objects.wait_until("Pod", name, |it| {
            it["status"]["nominatedNodeName"].is_string()
        });
    }
    let workloads = site.objects.list("Workload");
    let admitted = render::condition(&workloads[0], "Admitted").unwrap();
    assert_eq!(admitted["status"], "False", "{workloads:#?}");
    assert_eq!(admitted["reason"], "WaitingForVictims", "{workloads:#?}");
}

/// Waits until the pods of the gang run, each on the node that it was directed to.
pub(super) fn wait_until_placed(site: &ControllerFixture<'_>) {
    let nodes = ["a", "b"].map(|name| {
        let pod = site.objects.wait_until("Pod", name, is_running);
        pod["spec"]["nodeName"].as_str().unwrap().to_owned()
    });
    assert_eq!(nodes, ["small-0", "small-1"]);
}

/// Waits until a workload does not fit on nodes.
pub(super) fn wait_until_waiting_for_nodes(site: &ControllerFixture<'_>) {
    let is_waiting = |it: &Value| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["reason"] == "WaitingForNodes")
    };
    let found = crate::wait::until(
        || {
            let all = site.objects.list("Workload");
            Ok(all.iter().any(is_waiting).then_some(()))
        },
        || "no workload waits for nodes".to_owned(),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn gang_preempts_pods(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    run_unmanaged(&site, "p0", "low", "small-0");
    run_unmanaged(&site, "p1", "low", "small-1");
    create_gang(&site);
    wait_until_nominated(&site);
    for name in ["p0", "p1"] {
        let victim = site.objects.wait_until("Pod", name, is_terminating);
        let reason = render::reason(&victim, "DisruptionTarget");
        assert_eq!(reason, "EvictionByEvictionAPI", "{victim:#}");
        let events = site.wait_for_events(name, 1);
        let why = "due to prioritization on nodes; preemptor: default/podgroup-train-";
        assert!(events.iter().any(|it| it.contains(why)), "{events:#?}");
    }
    stop(&site, "p0");
    site.objects.wait_until_gone("Pod", "p0");
    for name in ["a", "b"] {
        assert!(is_gated(&site.objects.get("Pod", name)), "{name}");
    }
    stop(&site, "p1");
    wait_until_placed(&site);
    site.stop();
}

fn fits_in_part(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    run_unmanaged(&site, "p0", "low", "small-0");
    run_unmanaged(&site, "p1", "high", "small-1");
    create_gang(&site);
    wait_until_waiting_for_nodes(&site);
    for name in ["p0", "p1"] {
        assert!(!is_terminating(&site.objects.get("Pod", name)), "{name}");
    }
    // With room for the second pod, the first one preempts.
    add_nodes(&mut site, "spare", 1);
    site.objects.wait_until("Pod", "p0", is_terminating);
    stop(&site, "p0");
    for name in ["a", "b"] {
        site.objects.wait_until("Pod", name, is_running);
    }
    assert!(!is_terminating(&site.objects.get("Pod", "p1")));
    site.stop();
}

fn restart(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    run_unmanaged(&site, "p0", "low", "small-0");
    run_unmanaged(&site, "p1", "low", "small-1");
    create_gang(&site);
    site.objects.wait_until("Pod", "p0", is_terminating);
    site.objects.wait_until("Pod", "p1", is_terminating);
    // Killed: nothing of its state is left but the objects.
    drop(site.controller.take());
    stop(&site, "p0");
    site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
    stop(&site, "p1");
    wait_until_placed(&site);
    site.stop();
}

fn job_preempts_workload(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    let gang = json!({"spec": {"parallelism": 2, "completions": 2, "template": on_small_nodes()}});
    site.job("serve", "q", 3, "low", &gang);
    site.wait_until_running("serve");
    let one = json!({"spec": {"template": on_small_nodes()}});
    site.job("train", "q", 3, "high", &one);
    let evicted =
        site.wait_for_workload("serve", |it| render::reason(it, "Preempted") == "OnNodes");
    assert_eq!(
        render::reason(&evicted, "Evicted"),
        "Preempted",
        "{evicted:#}"
    );
    let placed = site.wait_until_running("train");
    let nodes = &placed["status"]["nominatedPlacement"]["podSets"][0]["nodes"];
    assert_eq!(nodes.as_object().unwrap().len(), 1, "{placed:#}");
    let waiting = site.wait_for_workload("serve", |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["reason"] == "WaitingForNodes")
    });
    // The command decides as the controller does, from the same nodes.
    let answer = json_answer(&mut site, &["explain", "job/serve"]);
    let condition = render::condition(&waiting, "QuotaReserved").unwrap();
    assert_eq!(answer["reason"], condition["reason"], "{answer:#}");
    assert_eq!(answer["message"], condition["message"], "{answer:#}");
    assert_eq!(answer["placement"]["result"], "DoesNotFit", "{answer:#}");
    let dump = dumped_kinds(&mut site);
    assert_eq!(dump["Node"], site.objects.list("Node").len(), "{dump:?}");
    assert!(dump["Pod"] > 0, "{dump:?}");
    // It runs again when there is room for both pods.
    add_nodes(&mut site, "spare", 1);
    site.wait_until_running("serve");
    site.stop();
}

/// The number of objects of each kind in a dump of the cluster.
#[track_caller]
fn dumped_kinds(site: &mut ControllerFixture<'_>) -> BTreeMap<String, usize> {
    let output = explain::run(site, &["dump"]);
    let dump: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut kinds = BTreeMap::new();
    for object in dump["items"].as_array().unwrap() {
        let kind = object["kind"].as_str().unwrap().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// Protects the pods of an app from evictions.
fn protect(site: &ControllerFixture<'_>, app: &str) {
    site.objects.create(&json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }));
    site.objects.wait_until("PodDisruptionBudget", app, |it| {
        it["status"]["currentHealthy"] == 1
    });
}

fn budget_respected(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    run_unmanaged(&site, "guarded", "low", "small-0");
    run_unmanaged(&site, "other", "low", "small-1");
    protect(&site, "guarded");
    site.objects.create(&pod("a", 3, "high", &on_small_nodes()));
    site.objects.wait_until("Pod", "other", is_terminating);
    stop(&site, "other");
    site.objects.wait_until("Pod", "a", is_running);
    assert!(!is_terminating(&site.objects.get("Pod", "guarded")));
    site.stop();
}

fn budget_violated(stage: &mut Fixture) {
    let mut site = open(stage, 1);
    run_unmanaged(&site, "guarded", "low", "small-0");
    protect(&site, "guarded");
    site.objects.create(&pod("a", 3, "high", &on_small_nodes()));
    let victim = site.objects.wait_until("Pod", "guarded", is_terminating);
    let reason = render::reason(&victim, "DisruptionTarget");
    assert_eq!(reason, "PreemptedByLockkeeper", "{victim:#}");
    stop(&site, "guarded");
    site.objects.wait_until("Pod", "a", is_running);
    site.stop();
}

fn quota_and_nodes(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    add_nodes(&mut site, "small", 2);
    site.queue("q", 3, &json!({"placement": {"policy": "Nodes"}}));
    let one = json!({"spec": {"template": on_small_nodes()}});
    site.job("first", "q", 3, "high", &one);
    site.wait_until_running("first");
    // There is room, and no quota.
    site.job("second", "q", 3, "high", &one);
    site.wait_for_workload("second", |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["reason"] == "WaitingForQuota")
    });
    site.stop();
}

/// Waits until kubectl prints a warning about an object, as the stores of the webhook follow the cluster.
fn wait_for_warning(kubectl: &Kubectl, object: &Value, warning: &str) {
    let dry_run = ["create", "--dry-run=server", "-f", "-"];
    let object = object.to_string();
    let found = crate::wait::until(
        || {
            let reply = kubectl.with_input(&dry_run, &object).expect_accepted();
            Ok(reply.stderr.contains(warning).then_some(()))
        },
        || format!("kubectl does not print {warning}"),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn other_priorities(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    let other = pod("other", 1, "high", &on_small_nodes());
    let kubectl = site.stage.cluster().kubectl().clone();
    wait_for_warning(&kubectl, &other, "Warning: QU006");
    site.objects.create(&other);
    let mut same = pod("same", 1, "high", &on_small_nodes());
    same["spec"]["priorityClassName"] = "high".into();
    site.objects.create(&same);
    for name in ["other", "same"] {
        site.objects.wait_until("Pod", name, is_running);
    }
    let workload = site.workload_of("Pod", "other");
    let reported = site.objects.wait_until("Workload", &workload, |it| {
        render::has_status(it, "PodsNotMatchingPriority", "True")
    });
    let condition = render::condition(&reported, "PodsNotMatchingPriority").unwrap();
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.contains("The workload has the priority 1000, and its pod other has 0"),
        "{message}"
    );
    let workload = site.workload_of("Pod", "same");
    let ready = site.objects.wait_until("Workload", &workload, |it| {
        render::has_status(it, "PodsReady", "True")
    });
    assert!(render::condition(&ready, "PodsNotMatchingPriority").is_none());
    site.stop();
}

/// A pod without requests runs, too, and the Workload of no pod is written a second time: its template is that of the pod.
fn host_ports(stage: &mut Fixture) {
    let mut site = open(stage, 2);
    let with_port = |name| {
        let mut pod = pod(name, 1, "", &on_small_nodes());
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 29500}]);
        pod
    };
    let mut nodes = BTreeSet::new();
    for name in ["a", "b"] {
        site.objects.create(&with_port(name));
        let pod = site.objects.wait_until("Pod", name, is_running);
        nodes.insert(pod["spec"]["nodeName"].as_str().unwrap().to_owned());
    }
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    let mut bare = pod("bare", 1, "", &on_small_nodes());
    bare["spec"]["containers"][0]["resources"] = json!({});
    site.objects.create(&bare);
    site.objects.wait_until("Pod", "bare", is_running);
    site.objects.create(&with_port("c"));
    let workload = site.workload_of("Pod", "c");
    let waiting = site.objects.wait_until("Workload", &workload, |it| {
        render::condition(it, "QuotaReserved").is_some_and(|it| it["reason"] == "WaitingForNodes")
    });
    let condition = render::condition(&waiting, "QuotaReserved").unwrap();
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.contains("2 nodes have host port 29500/TCP in use"),
        "{message}"
    );
    site.objects.delete("Pod", "a");
    site.objects.wait_until("Pod", "c", is_running);
    let mut writes = |what: &str| {
        let series = format!("writes_total{{what=\"{what}\",result=\"done\"}}");
        site.controller().metric(&series)
    };
    assert_eq!(writes("create_workload"), Some(4));
    assert_eq!(writes("update_workload").unwrap_or_default(), 0);
    site.stop();
}
