//! Which workloads preempt and are preempted: preemption priorities, classes that never preempt, limits of preemption,
//! and resources without quota.

use serde_json::{Value, json};

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;

pub const TRIALS: [Trial; 6] = [
    (
        "a high preemption priority protects a workload",
        preemption_priority_protects,
    ),
    (
        "a class with preemptionPolicy Never preempts no workload",
        never_preempts,
    ),
    (
        "a workload preempts after it has waited for delaySeconds",
        preempts_after_delay,
    ),
    (
        "a workload is protected until its minimum run time",
        minimum_run_time_protects,
    ),
    ("the condition names an uncovered resource", uncovered),
    ("an excluded resource needs no quota", excluded),
];

/// The message of the condition `QuotaReserved`.
fn message(workload: &Value) -> &str {
    let condition = render::condition(workload, "QuotaReserved");
    condition
        .and_then(|it| it["message"].as_str())
        .unwrap_or_default()
}

/// Waits until the message of a pending workload has this part.
#[track_caller]
fn wait_for_message(site: &ControllerFixture<'_>, job: &str, part: &str) {
    site.wait_for_workload(job, |it| message(it).contains(part));
}

/// Two queues: `b` borrows from `a`, which reclaims quota from lower priorities.
fn preemption_priority_protects(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let reclaim =
        json!({"cohortName": "lab", "preemption": {"reclaimWithinCohort": "LowerPriority"}});
    site.queue("a", 4, &reclaim);
    site.queue("b", 0, &json!({"cohortName": "lab"}));
    let protected =
        json!({"metadata": {"labels": {"lockkeeper.dev/preemption-priority-class": "high"}}});
    site.job("protected", "b", 2, "low", &protected);
    let workload = site.wait_until_running("protected");
    assert_eq!(workload["status"]["priority"], 100);
    assert_eq!(workload["status"]["preemptionPriority"], 1000);
    site.job("plain", "b", 2, "low", &json!({}));
    site.wait_until_running("plain");

    site.job("owner", "a", 2, "mid", &json!({}));
    site.wait_until_stopped("plain");
    site.wait_until_running("owner");
    site.job("second", "a", 2, "mid", &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    let workload = site.wait_until_running("protected");
    assert_eq!(render::condition(&workload, "Evicted"), None);
    site.stop();
}

fn never_preempts(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.objects.create(&json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "polite"},
        "value": 1000,
        "preemptionPolicy": "Never",
    }));
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    site.job("low", "q", 4, "low", &json!({}));
    site.wait_until_running("low");
    site.job("polite", "q", 4, "polite", &json!({}));
    wait_for_message(&site, "polite", "preemptionPolicy Never");
    let workload = site.wait_until_running("low");
    assert_eq!(render::condition(&workload, "Evicted"), None);
    // It is still the first of its queue.
    site.job("mid", "q", 4, "mid", &json!({}));
    site.wait_until_stopped("low");
    site.objects.delete("Job", "mid");
    site.wait_until_running("polite");
    site.stop();
}

fn preempts_after_delay(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let delay = |seconds: u32| json!({"preemption": {"limits": {"delaySeconds": seconds}}});
    let mut preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    merge(&mut preemption, &delay(3600));
    site.queue("q", 4, &preemption);
    site.job("low", "q", 4, "low", &json!({}));
    site.wait_until_running("low");
    site.job("high", "q", 4, "high", &json!({}));
    wait_for_message(&site, "high", "preemption.limits.delaySeconds");
    let spec = json!({"spec": delay(8)});
    site.objects.patch("ClusterQueue", "q", &spec);
    // No event marks the end of the delay: the controller wakes up by itself.
    site.wait_until_stopped("low");
    let high = site.wait_until_running("high");
    let created = render::second(&high["metadata"]["creationTimestamp"]);
    let reserved = render::condition(&high, "QuotaReserved").unwrap();
    assert!(render::second(&reserved["lastTransitionTime"]) >= created + 8);
    site.stop();
}

/// The default of the configuration applies to a queue that sets no limit; a limit of 0 switches it off.
fn minimum_run_time_protects(stage: &mut Fixture) {
    let config = "preemption: {limits: {withinMinRunSeconds: 3600}}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    site.job("low", "q", 4, "low", &json!({}));
    site.wait_until_running("low");
    site.job("high", "q", 4, "high", &json!({}));
    wait_for_message(&site, "high", "withinMinRunSeconds");
    let off = json!({"spec": {"preemption": {"limits": {"withinMinRunSeconds": 0}}}});
    site.objects.patch("ClusterQueue", "q", &off);
    site.wait_until_stopped("low");
    site.wait_until_running("high");
    site.stop();
}

/// The pods of a Job request a GPU too.
fn with_gpu() -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{
        "name": "train",
        "image": "registry.example.com/train:1",
        "resources": {
            "requests": {"cpu": 1, "example.com/gpu": 1},
            "limits": {"example.com/gpu": 1},
        },
    }]}}}})
}

fn uncovered(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    site.job("train", "q", 1, "", &with_gpu());
    let workload = site.wait_until_pending("train", "ResourceNotCovered");
    assert_eq!(
        message(&workload),
        "Resource not covered: pod set main requests example.com/gpu, which ClusterQueue q does not cover; remove the \
         request, or add example.com/gpu to spec.resourceGroups of the ClusterQueue"
    );
    let groups = json!({"spec": {"resourceGroups": [{
        "coveredResources": ["cpu", "example.com/gpu"],
        "flavors": [{"name": "default", "resources": [
            {"name": "cpu", "nominalQuota": 4},
            {"name": "example.com/gpu", "nominalQuota": 0},
        ]}],
    }]}});
    site.objects.patch("ClusterQueue", "q", &groups);
    site.wait_until_pending("train", "WaitingForQuota");
    wait_for_message(
        &site,
        "train",
        "requests 1 example.com/gpu, and the maximum capacity is 0",
    );
    site.stop();
}

fn excluded(stage: &mut Fixture) {
    let config = "resources: {excludePrefixes: [example.com/]}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    site.job("train", "q", 1, "", &with_gpu());
    let workload = site.wait_for_workload("train", |it| render::has_status(it, "Admitted", "True"));
    let usage = &workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"];
    assert_eq!(*usage, json!({"cpu": "1"}));
    site.stop();
}
