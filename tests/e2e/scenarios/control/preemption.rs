//! Quota preemption (KEP-83): nominal quota is got back, the more important goes first, and nobody borrows
//! what another is owed.

use serde_json::json;

use super::site::Site;
use super::{Trial, told};
use crate::snapshot;
use crate::stage::{DEFAULTS, Stage};

pub const TRIALS: [Trial; 7] = [
    ("nominal quota is reclaimed in a cohort", reclaims),
    ("the more important goes first in a queue", by_priority),
    ("equals wait for each other", equals),
    ("nobody borrows what a StrictFIFO queue is owed", strict),
    (
        "nobody borrows what a BestEffortFIFO queue is owed",
        best_effort,
    ),
    (
        "in a StrictFIFO queue the head holds up the rest",
        head_of_strict,
    ),
    (
        "in a BestEffortFIFO queue who fits goes on",
        rest_of_best_effort,
    ),
];

/// Two queues of 4 cpu each; `b` has lent from `a`, and gives back when `a` needs it.
fn reclaims(stage: &mut Stage) {
    let mut site = Site::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let reclaim = json!({"cohortName": "lab", "preemption": {"reclaimWithinCohort": "Any"}});
    site.queue("a", 4, &reclaim);
    site.queue("b", 4, &json!({"cohortName": "lab"}));
    site.job("stays", "b", 4, "mid", &json!({}));
    site.until_runs("stays");
    site.job("victim", "b", 2, "low", &json!({}));
    let workload = site.until_runs("victim");
    assert_eq!(workload["status"]["priority"], 100);
    let lent = site.until_counts("ClusterQueue", "b", 0, 2);
    snapshot::check("control-reclaim-lent", &told::queue(&lent));

    site.job("owner", "a", 4, "low", &json!({}));
    site.until_stopped("victim");
    site.until_runs("owner");
    site.until_runs("stays");
    site.until_waits("victim", "WaitingForQuota");
    site.check_workloads("control-reclaim", &["owner", "stays", "victim"]);
    let victim = site.workload_name("victim");
    let events = site.until_events(&victim, 1);
    snapshot::check("control-reclaim-events", &events.join("\n"));
    let queues = [
        ("ClusterQueue", "a", 0, 1),
        ("ClusterQueue", "b", 1, 1),
        ("LocalQueue", "b", 1, 1),
    ];
    let queues = queues.map(|(kind, name, pending, admitted)| {
        told::queue(&site.until_counts(kind, name, pending, admitted))
    });
    snapshot::check("control-reclaim-queues", &queues.concat());

    // It comes back by itself, and nothing of its eviction is in the way.
    site.finish("owner");
    site.until_runs("victim");
    site.check_workloads("control-reclaim-back", &["owner", "victim"]);
    site.close();
}

fn by_priority(stage: &mut Stage) {
    let mut site = Site::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    site.job("low", "q", 2, "low", &json!({}));
    site.job("mid", "q", 2, "mid", &json!({}));
    site.until_runs("low");
    site.until_runs("mid");

    site.job("high", "q", 2, "high", &json!({}));
    site.until_runs("high");
    site.until_stopped("low");
    site.until_runs("mid");
    site.until_waits("low", "WaitingForQuota");
    site.check_workloads("control-priority", &["high", "mid", "low"]);

    site.finish("high");
    site.until_runs("low");
    site.close();
}

/// With `LowerPriority` nobody goes for who is no more important than he is.
fn equals(stage: &mut Stage) {
    let mut site = Site::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 2, &preemption);
    site.job("first", "q", 2, "mid", &json!({}));
    site.until_runs("first");
    site.job("second", "q", 2, "mid", &json!({}));
    site.until_waits("second", "WaitingForQuota");
    site.check_workloads("control-equals", &["first", "second"]);

    site.finish("first");
    site.until_runs("second");
    site.close();
}

fn strict(stage: &mut Stage) {
    owed_while_victims_go(stage, "StrictFIFO", "Quota");
    owed_without_victims(stage);
}

fn best_effort(stage: &mut Stage) {
    owed_while_victims_go(stage, "BestEffortFIFO", "Cohort");
}

/// As KEP-83 wants it tested: a workload that fits within the nominal quota of its queue waits for others
/// that run, and meanwhile nobody borrows that quota, however well he would fit.
fn owed_while_victims_go(stage: &mut Stage, strategy: &str, gate: &str) {
    let config = format!("preemption: {{borrowingGate: {gate}}}\n");
    let mut site = Site::open(stage, &config);
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
    site.until_runs("stays");
    // Its pods take their time to go: so says who manages it, and nobody does.
    let by_hand = json!({"spec": {"managedBy": "test.lockkeeper.dev/hand"}});
    site.job("lent", "b", 2, "low", &by_hand);
    let started = site
        .objects
        .until("Job", "lent", |it| it["spec"]["suspend"] == false);
    let since = &started["metadata"]["creationTimestamp"];
    let runs = json!({"status": {"startTime": since, "active": 1, "ready": 1}});
    site.objects.patch_status("Job", "lent", &runs);
    site.until_runs("lent");
    // 2 of the 4 are left.
    site.job("owner", "a", 4, "low", &json!({}));
    site.until_waits("owner", "WaitingForPreemptedWorkloads");
    site.job("borrower", "b", 2, "low", &json!({}));
    site.until_workload("borrower", |it| told::is(it, "QuotaReserved", "False"));
    site.check_workloads(&format!("control-owed-{gate}"), &["owner", "borrower"]);

    // It is the owner who keeps the borrower out, and nothing else.
    site.objects.delete("Job", "owner");
    site.until_runs("borrower");
    let lent = site.objects.get("Job", "lent");
    assert_eq!(lent["status"]["active"], 1, "it was still there");
    site.close();
}

/// The same where nobody is to go: in a StrictFIFO queue the head is still owed its quota.
fn owed_without_victims(stage: &mut Stage) {
    let mut site = Site::open(stage, DEFAULTS);
    site.flavor("default");
    let more = json!({"cohortName": "lab", "queueingStrategy": "StrictFIFO"});
    site.queue("a", 4, &more);
    site.queue("b", 4, &more);
    site.job("lent", "b", 5, "", &json!({}));
    site.until_runs("lent");
    site.job("owner", "a", 4, "", &json!({}));
    site.until_waits("owner", "WaitingForQuota");
    site.job("borrower", "b", 3, "", &json!({}));
    site.until_waits("borrower", "Pending");
    site.check_workloads("control-owed-strict", &["owner", "borrower"]);
    site.objects.delete("Job", "owner");
    site.until_runs("borrower");
    site.close();
}

/// A large one waits, and a small one behind it that would fit waits, too.
fn head_of_strict(stage: &mut Stage) {
    let mut site = large_before_small(stage, "StrictFIFO");
    // There is nothing to wait for: it must not start. When the large one has run its turn comes.
    site.until_waits("small", "Pending");
    site.check_workloads("control-strict", &["large", "small"]);
    site.finish("runs");
    site.until_runs("large");
    let workload = site.workload_name("small");
    let small = site.objects.get("Workload", &workload);
    assert!(!told::is(&small, "QuotaReserved", "True"), "{small:#}");
    site.finish("large");
    site.until_runs("small");
    site.close();
}

fn rest_of_best_effort(stage: &mut Stage) {
    let mut site = large_before_small(stage, "BestEffortFIFO");
    site.until_runs("small");
    site.until_waits("large", "WaitingForQuota");
    site.close();
}

fn large_before_small<'a>(stage: &'a mut Stage, strategy: &str) -> Site<'a> {
    let site = Site::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 4, &json!({"queueingStrategy": strategy}));
    site.job("runs", "q", 2, "", &json!({}));
    site.until_runs("runs");
    site.job("large", "q", 4, "mid", &json!({}));
    site.until_waits("large", "WaitingForQuota");
    site.job("small", "q", 1, "low", &json!({}));
    site
}
