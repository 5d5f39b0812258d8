//! Quota preemption (KEP-83): nominal quota is got back, the more important goes first, and nobody borrows
//! what another is owed.

use serde_json::json;

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::snapshot;

pub const TRIALS: [Trial; 7] = [
    ("nominal quota is reclaimed in a cohort", reclaims),
    ("the more important goes first in a queue", by_priority),
    ("equals wait for each other", equal_priority_waits),
    ("nobody borrows what a StrictFIFO queue is owed", strict),
    (
        "nobody borrows what a BestEffortFIFO queue is owed",
        best_effort,
    ),
    (
        "in a StrictFIFO queue the head holds up the rest",
        strict_fifo_head_blocks,
    ),
    (
        "in a BestEffortFIFO queue who fits goes on",
        best_effort_fifo_continues,
    ),
];

/// Two queues of 4 cpu each; `b` has lent from `a`, and gives back when `a` needs it.
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

    // It comes back by itself, and nothing of its eviction is in the way.
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

/// With `LowerPriority` nobody goes for who is no more important than he is.
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

/// As KEP-83 wants it tested: a workload that fits within the nominal quota of its queue waits for others
/// that run, and meanwhile nobody borrows that quota, however well he would fit.
fn quota_reserved_while_victims_stop(stage: &mut Fixture, strategy: &str, gate: &str) {
    let config = format!("preemption: {{borrowingGate: {gate}}}\n");
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
    // Its pods take their time to go: so says who manages it, and nobody does.
    let by_hand = json!({"spec": {"managedBy": "test.lockkeeper.dev/hand"}});
    site.job("lent", "b", 2, "low", &by_hand);
    let started = site
        .objects
        .wait_until("Job", "lent", |it| it["spec"]["suspend"] == false);
    let since = &started["metadata"]["creationTimestamp"];
    let runs = json!({"status": {"startTime": since, "active": 1, "ready": 1}});
    site.objects.patch_status("Job", "lent", &runs);
    site.wait_until_running("lent");
    // 2 of the 4 are left.
    site.job("owner", "a", 4, "low", &json!({}));
    site.wait_until_pending("owner", "WaitingForPreemptedWorkloads");
    site.job("borrower", "b", 2, "low", &json!({}));
    site.wait_for_workload("borrower", |it| {
        render::has_status(it, "QuotaReserved", "False")
    });
    site.check_workloads(&format!("control-owed-{gate}"), &["owner", "borrower"]);

    // It is the owner who keeps the borrower out, and nothing else.
    site.objects.delete("Job", "owner");
    site.wait_until_running("borrower");
    let lent = site.objects.get("Job", "lent");
    assert_eq!(lent["status"]["active"], 1, "it was still there");
    site.stop();
}

/// The same where nobody is to go: in a StrictFIFO queue the head is still owed its quota.
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

/// A large one waits, and a small one behind it that would fit waits, too.
fn strict_fifo_head_blocks(stage: &mut Fixture) {
    let mut site = large_before_small(stage, "StrictFIFO");
    // There is nothing to wait for: it must not start. When the large one has run its turn comes.
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
