//! Usage and evictions in statuses and metrics, reclaimable pods, and the retention of finished workloads.

use serde_json::json;

use super::fixture::ControllerFixture;
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::wait;

pub const TRIALS: [Trial; 4] = [
    ("succeeded pods release quota", succeeded_pods),
    ("evictions and usage are reported", evictions_and_usage),
    (
        "a finished workload is deleted after its retention",
        retention,
    ),
    (
        "a queue that selects no namespace causes a warning",
        no_namespace_selected,
    ),
];

/// Waits until a series has this value.
#[track_caller]
pub fn wait_for_metric(site: &ControllerFixture<'_>, series: &str, value: &str) {
    let controller = site.controller.as_ref().unwrap();
    let mut last = None;
    let found = wait::until(
        || {
            last = controller.metric_text(series);
            Ok((last.as_deref() == Some(value)).then_some(()))
        },
        || format!("{series} is never {value}"),
    );
    found.unwrap_or_else(|e| panic!("{e}; last: {last:?}"));
}

fn succeeded_pods(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 3, &json!({}));
    let three = json!({"spec": {"parallelism": 3, "completions": 3}});
    site.job("wide", "q", 1, "", &three);
    site.wait_until_running("wide");
    site.job("waits", "q", 2, "", &json!({}));
    site.wait_until_pending("waits", "WaitingForQuota");
    for pod in site.pods("wide").iter().take(2) {
        let ends = json!({"metadata": {"annotations": {"test.lockkeeper.dev/run-for": "0s"}}});
        let name = pod["metadata"]["name"].as_str().unwrap();
        site.objects.patch("Pod", name, &ends);
    }
    site.wait_until_running("waits");
    let wide = site.wait_for_workload("wide", |it| {
        it["status"]["reclaimablePods"] == json!([{"name": "main", "count": 2}])
    });
    assert!(render::has_status(&wide, "Admitted", "True"), "{wide}");
    site.finish("wide");
    site.finish("waits");
    site.wait_for_counts("ClusterQueue", "q", 0, 0);
    site.stop();
}

fn evictions_and_usage(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue(
        "q",
        2,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    site.job("low", "q", 1, "low", &json!({}));
    site.wait_until_running("low");
    let quota = "{cluster_queue=\"q\",flavor=\"default\",resource=\"cpu\"}";
    wait_for_metric(&site, &format!("resource_nominal_quota{quota}"), "2.0");
    wait_for_metric(&site, &format!("resource_usage{quota}"), "1.0");

    for round in 1..=2 {
        let high = format!("high-{round}");
        site.job(&high, "q", 2, "high", &json!({}));
        site.wait_until_running(&high);
        let low = site.wait_until_pending("low", "WaitingForQuota");
        assert_eq!(
            low["status"]["schedulingStats"],
            json!({"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": round}]})
        );
        let labels = "{cluster_queue=\"q\",reason=\"Preempted\",underlying_cause=\"\"}";
        wait_for_metric(
            &site,
            &format!("evictions_total{labels}"),
            &round.to_string(),
        );
        wait_for_metric(&site, &format!("first_evictions_total{labels}"), "1");
        let waiting = "unadmitted_workloads{cluster_queue=\"q\",reason=\"WaitingForQuota\"}";
        wait_for_metric(&site, waiting, "1");
        wait_for_metric(&site, &format!("resource_usage{quota}"), "2.0");
        site.finish(&high);
        site.wait_until_running("low");
    }
    site.stop();
}

fn retention(stage: &mut Fixture) {
    let config = "controller: {finishedWorkloadRetentionSeconds: 1}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.classes();
    site.queue("q", 2, &json!({}));
    for name in ["ends", "runs"] {
        site.job(name, "q", 1, "low", &json!({}));
        site.wait_until_running(name);
    }
    let ended = site.workload_name("ends");
    site.finish("ends");
    site.objects.wait_until_gone("Workload", &ended);
    // The Job stays, and gets no other workload.
    site.objects.get("Job", "ends");
    site.wait_for_counts("ClusterQueue", "q", 0, 1);
    assert_eq!(site.objects.list("Workload").len(), 1);
    site.wait_until_running("runs");
    site.stop();
}

fn no_namespace_selected(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    let queue = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue",
        "metadata": {"name": "closed"}, "spec": {},
    });
    let kubectl = site.stage.cluster().kubectl().clone();
    let reply = kubectl.apply(&queue.to_string(), &[]).expect_accepted();
    assert!(reply.stderr.contains("Warning: CQ032"), "{}", reply.stderr);
    let mut open = queue.clone();
    open["spec"] = json!({"namespaceSelector": {}});
    kubectl
        .apply(&open.to_string(), &[])
        .expect_accepted_without_warning();
    site.stop();
}
