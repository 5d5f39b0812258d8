//! Job-level preemption on nodes: both stories of Koordinator's proposal, with an operator that deletes marked pods.

use serde_json::{Value, json};

use super::Trial;
use super::fixture::{ControllerFixture, NO_LEADER_ELECTION, local_queue};
use super::placement::{
    add_nodes, on_small_nodes, wait_until_placed, wait_until_waiting_for_nodes,
};
use super::pods::{is_gated, is_running, pod};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;

pub const TRIALS: [Trial; 4] = [
    (
        "the pods of a job that do not fit preempt, and an operator deletes the victims",
        job_preempts_for_its_rest,
    ),
    (
        "no pod is marked if only a part of the job fits after preemption",
        part_of_job_fits,
    ),
    (
        "the switch of the queue has victims deleted",
        victims_are_deleted,
    ),
    (
        "a job at the max of its queue has the pods of its queue marked",
        queue_at_its_max,
    ),
];

/// The label and the annotation of a victim.
const SOFT_EVICTION: &str = "scheduling.koordinator.sh/soft-eviction";

/// An elastic queue `q` on two nodes of 4 cpu. `spec` is merged into its spec.
fn open<'a>(stage: &'a mut Fixture, spec: &Value) -> ControllerFixture<'a> {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    add_nodes(&mut site, "small", 2);
    let mut queue = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"namespaceSelector": {}, "placement": {"policy": "Nodes"}, "elastic": {}},
    });
    merge(&mut queue["spec"], spec);
    site.objects.create(&queue);
    site.objects.create(&local_queue("q", "q"));
    site
}

/// A pod of 3 cpu that is queued alone.
fn single_pod(name: &str, class: &str, node: &str, preemptible: &str) -> Value {
    let mut more = on_small_nodes();
    let own = json!({
        "metadata": {"labels": {"quota.scheduling.koordinator.sh/preemptible": preemptible}},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": node}},
    });
    merge(&mut more, &own);
    pod(name, 3, class, &more)
}

/// Creates the job `train` of the pods `a` and `b`, with 3 cpu each and Koordinator's label.
fn create_job(site: &ControllerFixture<'_>) {
    let mut more = on_small_nodes();
    let labels = json!({
        "pod-group.scheduling.sigs.k8s.io": "train",
        "pod-group.scheduling.sigs.k8s.io/name": "train",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    });
    merge(&mut more, &json!({"metadata": {"labels": labels}}));
    for name in ["a", "b"] {
        site.objects.create(&pod(name, 3, "high", &more));
    }
}

fn is_marked(pod: &Value) -> bool {
    pod["metadata"]["labels"][SOFT_EVICTION].is_string()
}

fn job_preempts_for_its_rest(stage: &mut Fixture) {
    let mut site = open(stage, &json!({}));
    // One pod of the job fits beside it, the other one does not.
    site.objects
        .create(&single_pod("victim", "low", "small-1", "true"));
    site.objects.wait_until("Pod", "victim", is_running);
    create_job(&site);
    let victim = site.objects.wait_until("Pod", "victim", is_marked);
    assert_eq!(victim["metadata"]["labels"][SOFT_EVICTION], "train");
    assert_eq!(
        victim["metadata"]["annotations"][SOFT_EVICTION],
        r#"{"preemptJob":"train","namespace":"default"}"#
    );
    // One of its eviction, one of its mark.
    let events = site.wait_for_events("victim", 2);
    let is_marked_by = |it: &String| it.contains("another component deletes the pod");
    assert!(events.iter().any(is_marked_by), "{events:#?}");
    // A restart while the operator saves the work of the victim.
    drop(site.controller.take());
    site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
    site.objects
        .create(&single_pod("late", "low", "small-0", "true"));
    site.objects.wait_until("Pod", "a", |it| {
        it["status"]["nominatedNodeName"].is_string()
    });
    for name in ["a", "b"] {
        assert!(is_gated(&site.objects.get("Pod", name)), "{name}");
    }
    assert!(is_running(&site.objects.get("Pod", "victim")));
    site.objects.delete("Pod", "victim");
    wait_until_placed(&site);
    assert!(!is_marked(&site.objects.get("Pod", "late")));
    site.stop();
}

fn part_of_job_fits(stage: &mut Fixture) {
    let mut site = open(stage, &json!({}));
    for (name, node, preemptible) in [
        ("victim", "small-0", "true"),
        ("protected", "small-1", "false"),
    ] {
        site.objects
            .create(&single_pod(name, "low", node, preemptible));
        site.objects.wait_until("Pod", name, is_running);
    }
    create_job(&site);
    wait_until_waiting_for_nodes(&site);
    assert!(!is_marked(&site.objects.get("Pod", "victim")));
    // The rest fits: now the job preempts.
    site.objects.delete("Pod", "protected");
    site.objects.wait_until("Pod", "victim", is_marked);
    site.objects.delete("Pod", "victim");
    wait_until_placed(&site);
    site.stop();
}

fn victims_are_deleted(stage: &mut Fixture) {
    let switch = json!({"elastic": {"podShouldBeDeletedWhenPreempted": true}});
    let mut site = open(stage, &switch);
    site.objects
        .create(&single_pod("victim", "low", "small-1", "true"));
    site.objects.wait_until("Pod", "victim", is_running);
    create_job(&site);
    site.objects.wait_until_gone("Pod", "victim");
    wait_until_placed(&site);
    site.stop();
}

fn queue_at_its_max(stage: &mut Fixture) {
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": 6}]});
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [flavor]}]);
    let mut site = open(stage, &json!({"resourceGroups": groups}));
    site.objects
        .create(&single_pod("victim", "low", "small-1", "true"));
    site.objects.wait_until("Pod", "victim", is_running);
    create_job(&site);
    site.objects.wait_until("Pod", "victim", is_marked);
    assert!(is_gated(&site.objects.get("Pod", "a")));
    site.objects.delete("Pod", "victim");
    wait_until_placed(&site);
    site.stop();
}
