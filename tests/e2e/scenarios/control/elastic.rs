//! Elastic ClusterQueues: the user stories of Koordinator's job-level preemption, and non-preemptible workloads.

use serde_json::{Value, json};

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};

pub const TRIALS: [Trial; 3] = [
    (
        "a non-preemptible workload is not preempted",
        non_preemptible_stays,
    ),
    (
        "preemption makes room for the pods of a job that do not fit",
        preempts_for_remaining_pods,
    ),
    (
        "a job that preemption cannot place as a whole preempts nothing",
        preempts_all_or_nothing,
    ),
];

/// Creates an elastic queue of 8 cpu.
fn open(stage: &mut Fixture) -> ControllerFixture<'_> {
    let site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 8, &json!({"elastic": {}}));
    site
}

/// A change that sets the label `preemptible` of the pods of a Job.
fn preemptible(value: &str) -> Value {
    let labels = json!({"quota.scheduling.koordinator.sh/preemptible": value});
    json!({"spec": {"template": {"metadata": {"labels": labels}}}})
}

/// A change that gives a Job this many pods.
fn pods(count: u32) -> Value {
    json!({"spec": {"parallelism": count, "completions": count}})
}

/// Fails if a Job was ever evicted.
#[track_caller]
fn assert_never_evicted(site: &ControllerFixture<'_>, job: &str) {
    let workload = site.objects.get("Workload", &site.workload_name(job));
    assert_eq!(
        render::condition(&workload, "Evicted"),
        None,
        "{workload:#}"
    );
}

fn non_preemptible_stays(stage: &mut Fixture) {
    let mut site = open(stage);
    site.job("protected", "q", 4, "low", &preemptible("false"));
    site.wait_until_running("protected");
    site.job("low", "q", 4, "low", &preemptible("true"));
    site.wait_until_running("low");
    // The queue is at its max.
    site.job("high", "q", 4, "high", &preemptible("true"));
    site.wait_until_stopped("low");
    site.wait_until_running("high");
    site.job("second", "q", 4, "high", &preemptible("true"));
    site.wait_until_pending("second", "WaitingForQuota");
    site.wait_until_running("protected");
    assert_never_evicted(&site, "protected");
    assert_never_evicted(&site, "high");
    site.stop();
}

/// Story 1: 4 of 6 pods fit; preemption makes room for the other two.
fn preempts_for_remaining_pods(stage: &mut Fixture) {
    let mut site = open(stage);
    site.job("low", "q", 4, "low", &json!({}));
    site.wait_until_running("low");
    site.job("high", "q", 1, "high", &pods(6));
    site.wait_until_stopped("low");
    site.wait_until_running("high");
    assert_eq!(site.pods("high").len(), 6);
    site.stop();
}

/// Story 2: with its only victim gone, 4 of 6 pods would fit, so no workload is evicted.
fn preempts_all_or_nothing(stage: &mut Fixture) {
    let mut site = open(stage);
    site.job("protected", "q", 4, "low", &preemptible("false"));
    site.wait_until_running("protected");
    site.job("low", "q", 2, "low", &preemptible("true"));
    site.wait_until_running("low");
    site.job("high", "q", 1, "high", &pods(6));
    site.wait_until_pending("high", "WaitingForQuota");
    site.finish("protected");
    site.wait_until_running("high");
    site.wait_until_running("low");
    assert_never_evicted(&site, "low");
    site.stop();
}
