//! Preemption while borrowing (KEP-1337): Story 1, its table and its four scenarios.

use serde_json::json;

use super::Trial;
use super::fixture::ControllerFixture;
use crate::fixture::{DEFAULTS, Fixture};

pub const TRIALS: [Trial; 4] = [
    ("a borrower preempts a lower priority", less_important),
    ("a borrower waits for a higher priority", more_important),
    (
        "a borrower waits for a priority above the threshold",
        above_threshold,
    ),
    (
        "a borrower waits for a workload within nominal quota",
        no_borrower,
    ),
];

/// Borrowers never preempt Jobs with a priority above this.
const THRESHOLD: i32 = 100;

/// Two teams with a queue for important work and one for best-effort work, all without nominal quota, and a queue
/// with 100 cpus that all borrow from. `running` runs in a queue with a priority, and a workload with another
/// priority arrives in `a-standard`; both together do not fit.
fn story<'a>(stage: &'a mut Fixture, running: (&str, i32), priority: i32) -> ControllerFixture<'a> {
    let site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    for team in ["a", "b"] {
        let standard = json!({"preemption": {
            "reclaimWithinCohort": "LowerPriority",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": THRESHOLD},
        }});
        assert_borrows(&site, &format!("{team}-standard"), &standard);
        assert_borrows(&site, &format!("{team}-best-effort"), &json!({}));
    }
    let mut shared = limited(100, 0);
    shared["cohortName"] = "teams".into();
    site.queue("shared", 0, &shared);
    let (queue, of_running) = running;
    site.class("running", of_running);
    site.class("coming", priority);
    site.job("running", queue, 60, "running", &json!({}));
    site.wait_until_running("running");
    site.job("coming", "a-standard", 60, "coming", &json!({}));
    site
}

fn assert_borrows(site: &ControllerFixture<'_>, name: &str, more: &serde_json::Value) {
    let mut spec = limited(0, 100);
    spec["cohortName"] = "teams".into();
    crate::objects::merge(&mut spec, more);
    site.queue(name, 0, &spec);
}

fn limited(nominal: u32, borrowing: u32) -> serde_json::Value {
    json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default", "resources": [
            {"name": "cpu", "nominalQuota": nominal, "borrowingLimit": borrowing},
        ]}],
    }]})
}

fn less_important(stage: &mut Fixture) {
    let mut site = story(stage, ("b-best-effort", THRESHOLD), 201);
    site.wait_until_running("coming");
    site.wait_until_stopped("running");
    site.wait_until_pending("running", "WaitingForQuota");
    site.check_workloads("control-story-preempts", &["coming", "running"]);
    // The preempted workload does not preempt in turn: it runs when there is room.
    site.finish("coming");
    site.wait_until_running("running");
    site.stop();
}

fn more_important(stage: &mut Fixture) {
    assert_waits(
        story(stage, ("b-best-effort", 90), 80),
        "control-story-higher",
    );
}

fn above_threshold(stage: &mut Fixture) {
    assert_waits(
        story(stage, ("b-standard", THRESHOLD + 1), 250),
        "control-story-threshold",
    );
}

fn no_borrower(stage: &mut Fixture) {
    assert_waits(story(stage, ("shared", 10), 250), "control-story-nominal");
}

/// The new workload waits for the running one.
#[track_caller]
fn assert_waits(mut site: ControllerFixture<'_>, snapshot: &str) {
    site.wait_until_pending("coming", "WaitingForQuota");
    site.check_workloads(snapshot, &["coming", "running"]);
    site.finish("running");
    site.wait_until_running("coming");
    site.stop();
}
