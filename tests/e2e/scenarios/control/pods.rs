//! Pods with the queue label: they wait with a scheduling gate, run when admitted, and are deleted when preempted.

use std::cell::Cell;

use serde_json::{Value, json};

use super::fixture::{self, ControllerFixture};
use super::quota_use::pod_cpu;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;
use crate::wait;

pub const TRIALS: [Trial; 10] = [
    (
        "a pod waits for quota and runs on the nodes of its flavor",
        runs_on_flavor,
    ),
    ("a pod that ends releases its quota", ends),
    (
        "a preempted pod is deleted and marked as disrupted",
        preempted,
    ),
    ("the class of a pod is its priority", priority_of_pod),
    (
        "a Deployment is scaled up and down within its quota",
        deployment_scales,
    ),
    ("a StatefulSet starts its pods in order", stateful_set),
    (
        "a pod without the gate or without its label is deleted",
        without_gate,
    ),
    ("a pod is deleted at its maximum time", maximum_time),
    (
        "a deleted pod keeps its quota until it has terminated",
        terminating,
    ),
    (
        "a pod on a dead node keeps no quota after its grace period",
        dead_node,
    ),
];

const GATE: &str = "lockkeeper.dev/admission";

/// A queue `q` of 4 cpu.
pub(super) fn open(stage: &mut Fixture) -> ControllerFixture<'_> {
    let site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 4, &json!({}));
    site
}

/// The same queue, in which a higher priority preempts a lower one.
pub(super) fn open_with_preemption(stage: &mut Fixture) -> ControllerFixture<'_> {
    let site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    site
}

/// A pod of this many cpus; `more` is merged into it.
pub(super) fn pod(name: &str, cpu: u32, class: &str, more: &Value) -> Value {
    let mut pod = pod_template("q", cpu);
    merge(
        &mut pod,
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}),
    );
    if !class.is_empty() {
        pod["metadata"]["labels"]["lockkeeper.dev/priority-class"] = class.into();
    }
    merge(&mut pod, more);
    pod
}

pub(super) fn pod_template(queue: &str, cpu: u32) -> Value {
    json!({
        "metadata": {"labels": {"lockkeeper.dev/queue-name": queue, "app": "a"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "serve",
                "image": "registry.example.com/serve:1",
                "resources": {"requests": {"cpu": cpu}},
            }],
        },
    })
}

pub(super) fn is_gated(pod: &Value) -> bool {
    let gates = pod["spec"]["schedulingGates"].as_array();
    gates.into_iter().flatten().any(|it| it["name"] == GATE)
}

pub(super) fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

fn wait_until_running(site: &ControllerFixture<'_>, name: &str) -> Value {
    site.objects.wait_until("Pod", name, is_running)
}

/// Waits until the workload of a pod is pending for this reason.
fn wait_until_pending(site: &ControllerFixture<'_>, name: &str, reason: &str) {
    let workload = site.workload_of("Pod", name);
    site.objects.wait_until("Workload", &workload, |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["status"] == "False" && it["reason"] == reason)
    });
    assert!(is_gated(&site.objects.get("Pod", name)));
}

/// Waits until this many cpus of the queue are used.
pub(super) fn wait_for_usage(site: &ControllerFixture<'_>, cpu: &str) {
    site.objects.wait_until("ClusterQueue", "q", |it| {
        it["status"]["flavorsUsage"][0]["resources"][0]["total"] == cpu
    });
}

fn runs_on_flavor(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    let tolerations =
        json!([{"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]);
    site.objects.create(&fixture::flavor(
        "default",
        &json!({"nodeLabels": {"test.lockkeeper.dev/kind": "spot"}, "tolerations": tolerations}),
    ));
    site.queue("q", 4, &json!({}));
    let other_gate = json!({"spec": {"schedulingGates": [{"name": "example.com/other"}]}});
    site.objects.create(&pod("first", 3, "", &json!({})));
    let first = wait_until_running(&site, "first");
    assert_eq!(first["spec"]["nodeName"], "spot-0", "{first:#}");
    assert!(!is_gated(&first));
    site.objects.create(&pod("second", 2, "", &json!({})));
    wait_until_pending(&site, "second", "WaitingForQuota");
    site.objects.delete("Pod", "first");
    wait_until_running(&site, "second");
    // The gates of others stay.
    site.objects.create(&pod("third", 2, "", &other_gate));
    let third = site
        .objects
        .wait_until("Pod", "third", |it| !it.is_null() && !is_gated(it));
    assert_eq!(
        third["spec"]["schedulingGates"],
        json!([{"name": "example.com/other"}])
    );
    site.stop();
}

fn ends(stage: &mut Fixture) {
    let mut site = open(stage);
    let ends = json!({
        "metadata": {"annotations": {"test.lockkeeper.dev/run-for": "0s"}},
        "spec": {"restartPolicy": "Never"},
    });
    let mut fails = ends.clone();
    fails["metadata"]["annotations"]["test.lockkeeper.dev/exit-code"] = "1".into();
    for (name, more, reason) in [("good", &ends, "Succeeded"), ("bad", &fails, "Failed")] {
        site.objects.create(&pod(name, 4, "", more));
        let workload = site.workload_of("Pod", name);
        let finished = site.objects.wait_until("Workload", &workload, |it| {
            render::has_status(it, "Finished", "True")
        });
        assert_eq!(render::reason(&finished, "Finished"), reason);
    }
    wait_for_usage(&site, "0");
    // A deleted pod takes its workload along.
    let workload = site.workload_of("Pod", "good");
    site.objects.delete("Pod", "good");
    site.objects.wait_until_gone("Workload", &workload);
    site.stop();
}

fn preempted(stage: &mut Fixture) {
    let mut site = open_with_preemption(stage);
    let pods = site.watch("Pod");
    site.objects.create(&pod("low", 4, "low", &json!({})));
    wait_until_running(&site, "low");
    site.objects.create(&pod("high", 4, "high", &json!({})));
    site.objects.wait_until_gone("Pod", "low");
    wait_until_running(&site, "high");
    let versions = pods.versions();
    let mut of_low = versions.iter().filter(|it| it["metadata"]["name"] == "low");
    let is_marked = |it: &&Value| {
        let condition = render::condition(it, "DisruptionTarget");
        condition.is_some_and(|it| it["status"] == "True" && it["reason"] == "EvictedByLockkeeper")
    };
    assert!(of_low.any(|it| is_marked(&it)), "{versions:#?}");
    site.stop();
}

fn priority_of_pod(stage: &mut Fixture) {
    let mut site = open(stage);
    site.objects.create(&pod("first", 4, "", &json!({})));
    wait_until_running(&site, "first");
    let class = |name: &str| json!({"spec": {"priorityClassName": name}});
    site.objects.create(&pod("low", 4, "", &class("low")));
    site.objects.create(&pod("high", 4, "", &class("high")));
    wait_until_pending(&site, "low", "WaitingForQuota");
    wait_until_pending(&site, "high", "WaitingForQuota");
    site.objects.delete("Pod", "first");
    wait_until_running(&site, "high");
    assert!(is_gated(&site.objects.get("Pod", "low")));
    site.stop();
}

/// The pods with the label `app`.
fn app_pods(site: &ControllerFixture<'_>) -> Vec<Value> {
    let mut pods = site.objects.list("Pod");
    pods.retain(|it| it["metadata"]["deletionTimestamp"].is_null());
    pods
}

/// Waits until so many pods run and so many wait, with no more cpus in use than the queue has.
#[track_caller]
fn wait_for_pods(site: &ControllerFixture<'_>, running: usize, waiting: usize) {
    let last = Cell::new((0, 0));
    let found = wait::until(
        || {
            let pods = app_pods(site);
            let cpus = pods.iter().filter(|it| !is_gated(it)).map(pod_cpu);
            let cpus: u64 = cpus.sum();
            if cpus > 4 {
                return Err(format!("{cpus} cpus of pods run on 4 of quota"));
            }
            last.set((
                pods.iter().filter(|it| is_running(it)).count(),
                pods.iter().filter(|it| is_gated(it)).count(),
            ));
            Ok((last.get() == (running, waiting)).then_some(()))
        },
        || {
            let (runs, waits) = last.get();
            format!("{runs} pods run and {waits} wait, not {running} and {waiting}")
        },
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn workload_object(kind: &str, replicas: u32, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "serve", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "a"}},
            "template": pod_template("q", 1),
        },
    });
    merge(&mut object, more);
    object
}

fn deployment_scales(stage: &mut Fixture) {
    let mut site = open(stage);
    site.objects
        .create(&workload_object("Deployment", 6, &json!({})));
    wait_for_pods(&site, 4, 2);
    let scale = |replicas: u32| {
        let change = json!({"spec": {"replicas": replicas}});
        site.objects.patch("Deployment", "serve", &change);
    };
    // The ReplicaSet deletes the pods that wait first.
    scale(3);
    wait_for_pods(&site, 3, 0);
    wait_for_usage(&site, "3");
    scale(5);
    wait_for_pods(&site, 4, 1);
    scale(0);
    wait_for_pods(&site, 0, 0);
    wait_for_usage(&site, "0");
    site.stop();
}

fn stateful_set(stage: &mut Fixture) {
    let mut site = open(stage);
    let more = json!({"spec": {"serviceName": "serve"}});
    site.objects
        .create(&workload_object("StatefulSet", 5, &more));
    wait_for_pods(&site, 4, 1);
    assert!(is_gated(&site.objects.get("Pod", "serve-4")));
    // The pod of the same name that replaces it queues again.
    site.objects.delete("Pod", "serve-0");
    wait_for_pods(&site, 4, 1);
    site.stop();
}

fn without_gate(stage: &mut Fixture) {
    let mut site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    // Created while the webhook is down, without admission policies.
    site.objects.create(&pod("free", 1, "", &json!({})));
    site.objects.wait_until_gone("Pod", "free");
    let gated = json!({"spec": {"schedulingGates": [{"name": GATE}]}});
    site.objects.create(&pod("queued", 3, "", &gated));
    wait_until_running(&site, "queued");
    site.objects.create(&pod("waiting", 4, "", &gated));
    wait_until_pending(&site, "waiting", "WaitingForQuota");
    let ungated = json!({"spec": {"schedulingGates": null}});
    site.objects.patch("Pod", "waiting", &ungated);
    site.objects.wait_until_gone("Pod", "waiting");
    let unlabelled = json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": null}}});
    site.objects.patch("Pod", "queued", &unlabelled);
    site.objects.wait_until_gone("Pod", "queued");
    wait_for_usage(&site, "0");
    site.stop();
}

fn maximum_time(stage: &mut Fixture) {
    let mut site = open(stage);
    let label = json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": "2"}}});
    site.objects.create(&pod("first", 4, "", &label));
    wait_until_running(&site, "first");
    site.objects.wait_until_gone("Pod", "first");
    wait_for_usage(&site, "0");
    site.stop();
}

fn terminating(stage: &mut Fixture) {
    let mut site = open(stage);
    let lingers = json!({
        "metadata": {"annotations": {"test.lockkeeper.dev/linger": "5s"}},
        "spec": {"terminationGracePeriodSeconds": 600},
    });
    site.objects.create(&pod("first", 4, "", &lingers));
    wait_until_running(&site, "first");
    site.objects.create(&pod("next", 4, "", &json!({})));
    wait_until_pending(&site, "next", "WaitingForQuota");
    site.objects.delete("Pod", "first");
    let was_terminating = Cell::new(false);
    let found = wait::until(
        || {
            // One list shows both pods at one moment.
            let pods = site.objects.list("Pod");
            let is_there = pods.iter().any(|it| it["metadata"]["name"] == "first");
            let waits = pods.iter().any(is_gated);
            if !waits && is_there {
                return Err("a pod is admitted while another with its quota terminates".to_owned());
            }
            was_terminating.set(was_terminating.get() || is_there);
            Ok((!waits).then_some(()))
        },
        || "the next pod is not admitted".to_owned(),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
    assert!(was_terminating.get(), "the pod did not terminate slowly");
    site.stop();
}

fn dead_node(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, "controller: {jobResponseSeconds: 3}\n");
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    let lingers = json!({"metadata": {"finalizers": ["example.com/node-is-dead"]}});
    site.objects.create(&pod("stuck", 4, "", &lingers));
    wait_until_running(&site, "stuck");
    site.objects.create(&pod("next", 4, "", &json!({})));
    wait_until_pending(&site, "next", "WaitingForQuota");
    site.objects.delete("Pod", "stuck");
    wait_until_running(&site, "next");
    let stuck = site.objects.get("Pod", "stuck");
    assert!(
        !stuck["metadata"]["deletionTimestamp"].is_null(),
        "{stuck:#}"
    );
    site.stop();
}
