//! Pods that are not ready in time (KEP-1282): stories 1 to 3, and related cases.

use serde_json::{Value, json};

use super::fixture::{ControllerFixture, pods_with};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::snapshot;

pub const TRIALS: [Trial; 7] = [
    ("an evicted workload starts on another flavor", other_flavor),
    (
        "a workload that is never ready backs off, is deactivated, and is reactivated",
        deactivated_at_requeue_limit,
    ),
    (
        "with timestamp Eviction it is requeued behind the others",
        by_eviction,
    ),
    ("with timestamp Creation it keeps its position", by_creation),
    (
        "with blockAdmission one workload is admitted at a time",
        block_admission,
    ),
    ("a workload that is no longer ready is evicted", recovery),
    (
        "a deactivated workload is stopped and can be reactivated",
        evicted_by_hand,
    ),
];

/// Pods of this node selector are never scheduled, however much quota there is.
fn unschedulable_flavor() -> Value {
    json!({"spec": {"template": {"spec": {"nodeSelector": {"test.lockkeeper.dev/kind": "none"}}}}})
}

/// Story 1: the nodes of one flavor are out of stock; while the workload is pending again, quota of another flavor
/// becomes free.
fn other_flavor(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, timeout: 5s, \
                  requeuingStrategy: {backoffBaseSeconds: 2}}\n";
    let mut site = ControllerFixture::open(stage, config);
    for kind in ["plain", "none"] {
        let labels = json!({"nodeLabels": {"test.lockkeeper.dev/kind": kind}});
        site.objects.create(&super::fixture::flavor(kind, &labels));
    }
    let flavor =
        |name: &str| json!({"name": name, "resources": [{"name": "cpu", "nominalQuota": 2}]});
    let groups = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [flavor("plain"), flavor("none")],
    }]});
    site.queue("q", 0, &groups);
    site.job("blocker", "q", 2, "", &json!({}));
    site.wait_until_running("blocker");
    site.job("train", "q", 2, "", &json!({}));
    let flavor_of = |workload: &Value| {
        let assigned = &workload["status"]["admission"]["podSetAssignments"][0];
        assigned["flavors"]["cpu"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    site.wait_for_workload("train", |it| flavor_of(it) == "none");
    let evicted = site.wait_for_workload("train", |it| render::has_status(it, "Evicted", "True"));
    assert_eq!(render::reason(&evicted, "Evicted"), "PodsReadyTimeout");
    assert_eq!(evicted["status"]["requeueState"]["count"], 1);
    site.finish("blocker");
    site.wait_until_stopped("train");
    let workload = site.wait_until_running("train");
    assert_eq!(flavor_of(&workload), "plain");
    // The number of earlier attempts depends on the machine.
    assert_ne!(workload["status"]["requeueState"]["count"], 0);
    for pod in site.pods("train") {
        let selector = &pod["spec"]["nodeSelector"];
        assert_eq!(*selector, json!({"test.lockkeeper.dev/kind": "plain"}));
    }
    site.stop();
}

/// Stories 2 and 3: no node fits the pods. The backoff grows, and other workloads run meanwhile; at the limit the
/// workload is deactivated, and a user who has fixed it reactivates it without creating it again.
fn deactivated_at_requeue_limit(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, timeout: 1s, requeuingStrategy: \
                  {backoffBaseSeconds: 1, backoffLimitCount: 2, timestamp: Creation}}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("train", "q", 2, "", &unschedulable_flavor());
    for (count, least_s) in [(1, 1), (2, 2)] {
        let waits = site.wait_for_workload("train", |workload| {
            workload["status"]["requeueState"]["count"] == count
                && workload["status"]["requeueState"]["requeueAt"].is_string()
        });
        let evicted = render::condition(&waits, "Evicted").unwrap();
        let from = render::second(&evicted["lastTransitionTime"]);
        let to = render::second(&waits["status"]["requeueState"]["requeueAt"]);
        // The time has whole seconds and some jitter.
        assert!((least_s..=least_s + 1).contains(&(to - from)), "{waits:#}");
        assert_eq!(evicted["reason"], "PodsReadyTimeout");
    }
    site.wait_for_workload("train", |it| it["spec"]["active"] == false);
    let workload = site.wait_until_stopped("train");
    assert!(workload["status"]["requeueState"].is_null(), "{workload:#}");
    site.wait_until_pending("train", "Inadmissible");
    site.check_workloads("control-gave-up", &["train"]);
    let name = site.workload_name("train");
    let mut events = site.wait_for_events(&name, 3);
    events.dedup();
    snapshot::check("control-gave-up-events", &events.join("\n"));

    // The pod template of a suspended Job may change. This time there is no timeout.
    let fixed = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
    site.objects.patch("Job", "train", &fixed);
    site.stop();
    site.start_controller(DEFAULTS, &[super::fixture::NO_LEADER_ELECTION]);
    site.objects
        .patch("Workload", &name, &json!({"spec": {"active": true}}));
    site.wait_until_running("train");
    site.check_workloads("control-revived", &["train"]);
    site.stop();
}

fn by_eviction(stage: &mut Fixture) {
    requeue_position(stage, "Eviction", "third", "first");
}

fn by_creation(stage: &mut Fixture) {
    requeue_position(stage, "Creation", "first", "third");
}

/// Three workloads, one of which runs at a time. The first is evicted, the second runs with a higher priority, and
/// then either the first or the third, of equal priority, is next.
fn requeue_position(stage: &mut Fixture, timestamp: &str, next: &str, last: &str) {
    let config = format!(
        "waitForPodsReady: {{enable: true, timeout: 5s, \
         requeuingStrategy: {{backoffBaseSeconds: 1, timestamp: {timestamp}}}}}\n"
    );
    let mut site = ControllerFixture::open(stage, &config);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    let unready = pods_with(&json!({"test.lockkeeper.dev/unready": "true"}));
    site.job("first", "q", 2, "", &unready);
    site.wait_for_workload("first", |it| render::has_status(it, "Admitted", "True"));
    site.classes();
    site.job("second", "q", 2, "low", &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    site.wait_until_next_second("first");
    site.job("third", "q", 2, "", &json!({}));
    site.wait_for_workload("first", |it| render::has_status(it, "Evicted", "True"));
    site.wait_until_running("second");
    site.wait_for_workload("first", |workload| {
        render::reason(workload, "Requeued") == "BackoffFinished"
    });
    site.finish("second");
    site.wait_for_workload(next, |it| render::has_status(it, "QuotaReserved", "True"));
    let name = site.workload_name(last);
    let last = site.objects.get("Workload", &name);
    assert!(
        !render::has_status(&last, "QuotaReserved", "True"),
        "{last:#}"
    );
    site.stop();
}

/// Both fit, and the second is not admitted before the pods of the first are ready.
fn block_admission(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, blockAdmission: true}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    site.queue("other", 4, &json!({}));
    let unready = pods_with(&json!({"test.lockkeeper.dev/unready": "true"}));
    site.job("first", "q", 2, "", &unready);
    site.wait_for_workload("first", |it| render::has_status(it, "Admitted", "True"));
    site.job("second", "q", 2, "", &json!({}));
    site.job("third", "other", 2, "", &json!({}));
    for job in ["second", "third"] {
        site.wait_until_pending(job, "Pending");
    }
    site.check_workloads("control-blocked", &["second", "third"]);
    crate::wait::until(
        || Ok((site.pods("first").len() == 1).then_some(())),
        || "the Job has no pod".to_owned(),
    )
    .unwrap();
    site.annotate_pods("first", &json!({"test.lockkeeper.dev/unready": null}));
    for job in ["first", "second", "third"] {
        site.wait_until_running(job);
    }
    site.stop();
}

fn recovery(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, recoveryTimeout: 1s, \
                  requeuingStrategy: {backoffBaseSeconds: 1}}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("train", "q", 2, "", &json!({}));
    site.wait_until_running("train");
    // Unready and ready again within the timeout has no effect.
    site.annotate_pods("train", &json!({"test.lockkeeper.dev/unready": "true"}));
    let workload = site.wait_for_workload("train", |it| render::has_status(it, "Evicted", "True"));
    assert_eq!(render::reason(&workload, "Evicted"), "PodsReadyTimeout");
    let unready = render::condition(&workload, "PodsReady");
    if let Some(unready) = unready {
        assert_eq!(unready["reason"], "WaitForRecovery", "{workload:#}");
    }
    // Its new pods do not have the annotation.
    site.wait_for_workload("train", |it| it["status"]["admission"].is_null());
    site.wait_until_running("train");
    site.check_workloads("control-recovered", &["train"]);
    site.stop();
}

fn evicted_by_hand(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("train", "q", 2, "", &json!({}));
    site.wait_until_running("train");
    let name = site.workload_name("train");
    site.objects
        .patch("Workload", &name, &json!({"spec": {"active": false}}));
    site.wait_until_stopped("train");
    site.wait_until_pending("train", "Inadmissible");
    site.check_workloads("control-by-hand", &["train"]);
    site.objects
        .patch("Workload", &name, &json!({"spec": {"active": true}}));
    site.wait_until_running("train");
    site.check_workloads("control-by-hand-again", &["train"]);
    site.stop();
}
