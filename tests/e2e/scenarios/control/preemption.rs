//! Quota preemption (KEP-83): nominal quota is reclaimed, higher priorities come first, and quota that a pending
//! workload reserves is not borrowed.

use serde_json::json;

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::snapshot;

pub const TRIALS: [Trial; 7] = [
    ("nominal quota is reclaimed in a cohort", reclaims),
    ("a higher priority comes first in a queue", by_priority),
    ("equal priorities wait for each other", equal_priority_waits),
    (
        "quota reserved in a StrictFIFO queue is not borrowed",
        strict,
    ),
    (
        "quota reserved in a BestEffortFIFO queue is not borrowed",
        best_effort,
    ),
    (
        "in a StrictFIFO queue the head blocks the rest",
        strict_fifo_head_blocks,
    ),
    (
        "in a BestEffortFIFO queue a workload that fits is admitted",
        best_effort_fifo_continues,
    ),
];

/// Two queues of 4 cpu each; `b` borrows from `a`, which reclaims the quota when it needs it.
fn reclaims(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let reclaim = json!({"cohortName": "lab", "preemption": {"reclaimWithinCohort": "Any"}});
    site.queue("a", 4, &reclaim);
    site.queue("b", 4, &json!({"cohortName": "lab"}));
    site.job("stays", "b", 4, "mid", &json!({}));
    site.wait_until_running("stays");
    site.job("victim", "b", 2, "low", &json!({}));
    let workload = site.wait_until_running("victim");
    assert_eq!(workload["status"]["priority"], 100);
    let lent = site.wait_for_counts("ClusterQueue", "b", 0, 2);
    snapshot::check("control-reclaim-lent", &render::render_queue(&lent));

    site.job("owner", "a", 4, "low", &json!({}));
    site.wait_until_stopped("victim");
    site.wait_until_running("owner");
    site.wait_until_running("stays");
    site.wait_until_pending("victim", "WaitingForQuota");
    site.check_workloads("control-reclaim", &["owner", "stays", "victim"]);
    let victim = site.workload_name("victim");
    let events = site.wait_for_events(&victim, 1);
    snapshot::check("control-reclaim-events", &events.join("\n"));
    let queues = [
        ("ClusterQueue", "a", 0, 1),
        ("ClusterQueue", "b", 1, 1),
        ("LocalQueue", "b", 1, 1),
    ];
    let queues = queues.map(|(kind, name, pending, admitted)| {
        render::render_queue(&site.wait_for_counts(kind, name, pending, admitted))
    });
    snapshot::check("control-reclaim-queues", &queues.concat());

    // The victim starts again by itself; its eviction does not block it.
    site.finish("owner");
    site.wait_until_running("victim");
    site.check_workloads("control-reclaim-back", &["owner", "victim"]);
    site.stop();
}

fn by_priority(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    site.job("low", "q", 2, "low", &json!({}));
    site.job("mid", "q", 2, "mid", &json!({}));
    site.wait_until_running("low");
    site.wait_until_running("mid");

    site.job("high", "q", 2, "high", &json!({}));
    site.wait_until_running("high");
    site.wait_until_stopped("low");
    site.wait_until_running("mid");
    site.wait_until_pending("low", "WaitingForQuota");
    site.check_workloads("control-priority", &["high", "mid", "low"]);

    site.finish("high");
    site.wait_until_running("low");
    site.stop();
}

/// With `LowerPriority` a workload does not preempt another of equal priority.
fn equal_priority_waits(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 2, &preemption);
    site.job("first", "q", 2, "mid", &json!({}));
    site.wait_until_running("first");
    site.job("second", "q", 2, "mid", &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    site.check_workloads("control-equals", &["first", "second"]);

    site.finish("first");
    site.wait_until_running("second");
    site.stop();
}

fn strict(stage: &mut Fixture) {
    quota_reserved_while_victims_stop(stage, "StrictFIFO", "Quota");
    quota_reserved_without_victims(stage);
}

fn best_effort(stage: &mut Fixture) {
    quota_reserved_while_victims_stop(stage, "BestEffortFIFO", "Cohort");
}

/// The test of KEP-83: a workload that fits within the nominal quota of its queue waits for its victims to stop, and
/// meanwhile no other workload borrows that quota, even if it would fit.
fn quota_reserved_while_victims_stop(stage: &mut Fixture, strategy: &str, gate: &str) {
    let config = format!("preemption: {{borrowingGate: {gate}}}\n");
    stage.register_server(crate::lockkeeper::Protocol::Http1, DEFAULTS);
    stage.cluster_mut().install_jobset();
    let mut site = ControllerFixture::open(stage, &config);
    site.flavor("default");
    let more = json!({
        "cohortName": "lab",
        "queueingStrategy": strategy,
        "preemption": {"reclaimWithinCohort": "Any"},
    });
    site.queue("a", 4, &more);
    site.queue("b", 4, &more);
    site.classes();
    site.job("stays", "b", 4, "mid", &json!({}));
    site.wait_until_running("stays");
    // Its pods take long to stop: no controller acts on JobSets here, so the test writes the status.
    site.objects.create(&lent_job_set());
    site.objects
        .wait_until("JobSet", "lent", |it| it["spec"]["suspend"] == false);
    let running = json!({"status": {"replicatedJobsStatus": [{
        "name": "main", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0,
    }]}});
    site.objects.patch_status("JobSet", "lent", &running);
    let lent = site.workload_of("JobSet", "lent");
    site.objects.wait_until("Workload", &lent, |it| {
        render::has_status(it, "PodsReady", "True")
    });
    // 2 of the 4 cpus are free.
    site.job("owner", "a", 4, "low", &json!({}));
    site.wait_until_pending("owner", "WaitingForPreemptedWorkloads");
    site.job("borrower", "b", 2, "low", &json!({}));
    site.wait_for_workload("borrower", |workload| {
        render::has_status(workload, "QuotaReserved", "False")
    });
    site.check_workloads(&format!("control-owed-{gate}"), &["owner", "borrower"]);

    // Only the reservation of the pending workload blocks the borrower.
    site.objects.delete("Job", "owner");
    site.wait_until_running("borrower");
    let lent = site.objects.get("JobSet", "lent");
    let active = &lent["status"]["replicatedJobsStatus"][0]["active"];
    assert_eq!(*active, 1, "the victim still runs");
    site.stop();
}

/// A JobSet of one pod of 2 cpu.
fn lent_job_set() -> serde_json::Value {
    let template = super::fixture::job("x", "b", 2, "", &json!({}))["spec"]["template"].clone();
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "lent", "namespace": "default", "labels": {
            "lockkeeper.dev/queue-name": "b", "lockkeeper.dev/priority-class": "low",
        }},
        "spec": {"suspend": true, "replicatedJobs": [{
            "name": "main", "replicas": 1, "template": {"spec": {"template": template}},
        }]},
    })
}

/// The same without victims: in a StrictFIFO queue the head reserves quota.
fn quota_reserved_without_victims(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    let more = json!({"cohortName": "lab", "queueingStrategy": "StrictFIFO"});
    site.queue("a", 4, &more);
    site.queue("b", 4, &more);
    site.job("lent", "b", 5, "", &json!({}));
    site.wait_until_running("lent");
    site.job("owner", "a", 4, "", &json!({}));
    site.wait_until_pending("owner", "WaitingForQuota");
    site.job("borrower", "b", 3, "", &json!({}));
    site.wait_until_pending("borrower", "Pending");
    site.check_workloads("control-owed-strict", &["owner", "borrower"]);
    site.objects.delete("Job", "owner");
    site.wait_until_running("borrower");
    site.stop();
}

/// A large workload is pending, and a small one behind it that would fit is pending, too.
fn strict_fifo_head_blocks(stage: &mut Fixture) {
    let mut site = large_before_small(stage, "StrictFIFO");
    // A workload that must not start cannot be waited for; the test checks it after the large one has run.
    site.wait_until_pending("small", "Pending");
    site.check_workloads("control-strict", &["large", "small"]);
    site.finish("runs");
    site.wait_until_running("large");
    let workload = site.workload_name("small");
    let small = site.objects.get("Workload", &workload);
    assert!(
        !render::has_status(&small, "QuotaReserved", "True"),
        "{small:#}"
    );
    site.finish("large");
    site.wait_until_running("small");
    site.stop();
}

fn best_effort_fifo_continues(stage: &mut Fixture) {
    let mut site = large_before_small(stage, "BestEffortFIFO");
    site.wait_until_running("small");
    site.wait_until_pending("large", "WaitingForQuota");
    site.stop();
}

fn large_before_small<'a>(stage: &'a mut Fixture, strategy: &str) -> ControllerFixture<'a> {
    let site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 4, &json!({"queueingStrategy": strategy}));
    site.job("runs", "q", 2, "", &json!({}));
    site.wait_until_running("runs");
    site.job("large", "q", 4, "mid", &json!({}));
    site.wait_until_pending("large", "WaitingForQuota");
    site.job("small", "q", 1, "low", &json!({}));
    site
}
