//! A write is on its way while its sender is paused or killed: another controller continues, and the late write breaks
//! no sum.

use serde_json::{Value, json};

use super::fixture::{self, ControllerFixture};
use super::invariants::{self, Limits};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::proxy::{Proxy, WritePattern};
use crate::wait;
use crate::watcher::Watch;

pub const TRIALS: [Trial; 2] = [
    (
        "an admission of a paused leader arrives when another leads",
        late_admission,
    ),
    (
        "a controller dies in each step of stopping a Job",
        death_while_stopping,
    ),
];

const LIMITS: Limits<'_> = Limits {
    queues: &[("q", 4)],
    total: 4,
};

/// Short Lease durations, so that a Lease expires soon.
const TERMS: &str = "controller: {leaderElection: \
    {leaseSeconds: 3, renewSeconds: 2, retrySeconds: 1}}\n";

/// The writes that stop the Job of a workload, in their order.
const STEPS: [(&str, WritePattern); 5] = [
    ("evict", status("/workloads/", r#""type":"Evicted""#)),
    ("suspend", patch(r#""suspend":true"#)),
    ("reset", status("/jobs/", r#""startTime":null"#)),
    ("restore", RESTORE),
    ("release", status("/workloads/", r#""admission":null"#)),
];

const RESTORE: WritePattern = patch(r#""lockkeeper.dev/original-placement":null"#);

const fn status(path: &'static str, body: &'static str) -> WritePattern {
    WritePattern {
        method: "PATCH",
        path,
        body,
    }
}

/// A patch of a Job, not of its status.
const fn patch(body: &'static str) -> WritePattern {
    WritePattern {
        method: "PATCH",
        path: "/jobs/",
        body,
    }
}

/// The watches that the invariants need.
struct History {
    workloads: Watch,
    jobs: Watch,
    pods: Watch,
}

impl History {
    #[track_caller]
    fn begin(site: &mut ControllerFixture<'_>) -> Self {
        Self {
            workloads: site.watch("Workload"),
            jobs: site.watch("Job"),
            pods: site.watch("Pod"),
        }
    }

    #[track_caller]
    fn check(&self) {
        let seen = invariants::check_history(
            &self.workloads.versions(),
            &self.jobs.versions(),
            &self.pods.versions(),
            &LIMITS,
        );
        println!("  {seen:?}");
    }
}

/// A queue of 4 cpus whose flavor selects nodes, so that stopping a Job restores its template.
#[track_caller]
fn queue_behind_proxy(stage: &mut Fixture) -> (ControllerFixture<'_>, Proxy) {
    stage.without_webhook();
    let mut site = ControllerFixture::without_controller(stage);
    let proxy = site.proxy();
    let labels = json!({"nodeLabels": {"test.lockkeeper.dev/kind": "plain"}});
    site.objects.create(&fixture::flavor("default", &labels));
    site.classes();
    let preemption = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 4, &preemption);
    (site, proxy)
}

#[track_caller]
fn wait_until_held(proxy: &Proxy, step: &str) {
    wait::until(
        || Ok(proxy.is_holding().then_some(())),
        || format!("no write to hold: {step}"),
    )
    .unwrap_or_else(|e| panic!("{e}"));
}

/// Releases the held write, and returns the status of the API server's answer.
#[track_caller]
fn answer_to_released(proxy: &Proxy) -> u16 {
    proxy.release();
    wait::until(
        || Ok(proxy.take_answer_to_held()),
        || "the held write got no answer".to_owned(),
    )
    .unwrap_or_else(|e| panic!("{e}"))
}

/// Sets the start time of a suspended Job while its restoration is held, so that the next write is the reset. The job
/// controller removes the start time itself in most cases.
#[track_caller]
fn hold_reset(site: &ControllerFixture<'_>, proxy: &Proxy, job: &str, reset: WritePattern) {
    let started = json!({"status": {"startTime": "2026-01-01T00:00:00Z"}});
    site.objects.patch_status("Job", job, &started);
    proxy.hold(reset);
    assert_eq!(answer_to_released(proxy), 409);
    wait_until_held(proxy, "reset");
}

fn late_admission(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    let history = History::begin(&mut site);
    let first = site.start_another_through(&proxy, TERMS, &[]);
    proxy.hold(status("/workloads/", r#""admission":{"#));
    site.job("early", "q", 4, "low", &json!({}));
    wait_until_held(&proxy, "admission");
    first.freeze();
    // The same quota, before the workload whose admission is on its way.
    site.job("other", "q", 4, "high", &json!({}));
    site.start_controller(TERMS, &[]);
    site.wait_until_running("other");
    site.wait_until_pending("early", "WaitingForQuota");
    assert_eq!(answer_to_released(&proxy), 409);
    first.resume();
    wait::until(
        || Ok((first.metric("leading") == Some(0)).then_some(())),
        || "the controller does not notice that it lost the Lease".to_owned(),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    site.finish("other");
    site.wait_until_running("early");
    history.check();
    first.stop().unwrap();
    site.stop();
}

fn death_while_stopping(stage: &mut Fixture) {
    let (mut site, proxy) = queue_behind_proxy(stage);
    let history = History::begin(&mut site);
    for (step, pattern) in STEPS {
        println!("  {step}");
        site.start_controller_through(&proxy, DEFAULTS);
        let (victim, preemptor) = (format!("victim-{step}"), format!("preemptor-{step}"));
        site.job(&victim, "q", 4, "low", &json!({}));
        site.wait_until_running(&victim);
        let is_reset = step == "reset";
        proxy.hold(if is_reset { RESTORE } else { pattern });
        site.job(&preemptor, "q", 4, "high", &json!({}));
        wait_until_held(&proxy, step);
        if is_reset {
            hold_reset(&site, &proxy, &victim, pattern);
        }
        // SIGKILL.
        drop(site.controller.take());
        site.start_controller(DEFAULTS, &[fixture::NO_LEADER_ELECTION]);
        site.wait_until_running(&preemptor);
        site.wait_until_stopped(&victim);
        let job = site.objects.get("Job", &victim);
        assert_eq!(
            job["spec"]["template"]["spec"]["nodeSelector"],
            Value::Null,
            "the template is not restored: {job:#}"
        );
        assert_eq!(answer_to_released(&proxy), 409, "{step}");
        site.finish(&preemptor);
        let workload = site.wait_until_running(&victim);
        assert!(render::has_status(&workload, "QuotaReserved", "True"));
        site.finish(&victim);
        site.stop();
    }
    history.check();
}
