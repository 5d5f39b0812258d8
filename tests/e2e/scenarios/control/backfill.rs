//! Backfill: workloads behind the head of a StrictFIFO queue start if they do not delay it.

use serde_json::{Value, json};

use super::explain::json_answer;
use super::fixture::ControllerFixture;
use super::statistics::wait_for_metric;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};

pub const TRIALS: [Trial; 2] = [
    (
        "a workload starts ahead of the head if it does not delay it",
        starts_ahead_of_the_head,
    ),
    (
        "backfill without effect causes a warning",
        warns_without_effect,
    ),
];

/// A Job with a maximum execution time.
fn limited(seconds: u32) -> Value {
    json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": seconds.to_string()}}})
}

fn message(workload: &Value) -> &str {
    let condition = render::condition(workload, "QuotaReserved");
    condition
        .and_then(|it| it["message"].as_str())
        .unwrap_or_default()
}

fn starts_ahead_of_the_head(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    let backfill = json!({"queueingStrategy": "StrictFIFO", "backfill": {"policy": "Easy"}});
    site.queue("q", 4, &backfill);
    site.job("long", "q", 2, "mid", &limited(3_600));
    site.wait_until_running("long");
    site.job("wide", "q", 4, "mid", &limited(60));
    let planned = "unless workloads of higher priority arrive (backfill)";
    site.wait_for_workload("wide", |it| message(it).contains(planned));
    let pending = json_answer(&mut site, &["explain", "job/wide"]);
    let bound = &pending["startsBy"]["time"];
    let bound = format!("starts by {}", bound.as_str().unwrap());
    site.wait_for_workload("wide", |it| message(it).contains(&bound));
    // Workloads of the same second are in the order of their uids.
    site.wait_until_next_second("wide");
    // It may run longer than `long`, and does not fit beside `wide`.
    site.job("unlimited", "q", 1, "mid", &json!({}));
    site.job("short", "q", 1, "mid", &limited(600));
    let short = site.wait_until_running("short");
    let expected = "ahead of the head of the queue, without delaying it (backfill)";
    assert!(message(&short).ends_with(expected), "{short}");
    wait_for_metric(&site, "backfilled_total", "1");
    site.wait_until_pending("unlimited", "Pending");
    // A tenant gains nothing by a longer limit afterwards.
    let longer = json!({"metadata": {"labels": limited(86_400)["metadata"]["labels"]}});
    site.objects.patch("Job", "short", &longer);

    // The head starts as soon as it fits, before the others.
    site.job("last", "q", 1, "mid", &json!({}));
    site.wait_until_pending("last", "Pending");
    let short = site.wait_until_running("short");
    assert_eq!(short["spec"]["maximumExecutionTimeSeconds"], 600);
    site.finish("short");
    site.finish("long");
    site.wait_until_running("wide");
    site.wait_until_pending("unlimited", "WaitingForQuota");
    site.finish("wide");
    let unlimited = site.wait_until_running("unlimited");
    assert!(!message(&unlimited).contains("backfill"), "{unlimited}");
    site.stop();
}

fn warns_without_effect(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    let queue = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "open"},
        "spec": {"namespaceSelector": {}, "backfill": {"policy": "Conservative", "maxWorkloads": 10}},
    });
    let kubectl = site.stage.cluster().kubectl().clone();
    let reply = kubectl.apply(&queue.to_string(), &[]).expect_accepted();
    assert!(reply.stderr.contains("Warning: CQ033"), "{}", reply.stderr);
    let mut none = queue;
    none["spec"]["backfill"]["maxWorkloads"] = json!(0);
    let reply = kubectl.apply(&none.to_string(), &[]).expect_rejected();
    assert!(
        reply.stderr.contains("spec.backfill.maxWorkloads"),
        "{}",
        reply.stderr
    );
    site.stop();
}
