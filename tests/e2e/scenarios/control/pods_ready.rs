//! Pods that are not ready in time (KEP-1282): stories 1 to 3, and what goes with them.

use serde_json::{Value, json};

use super::fixture::{ControllerFixture, pods_with};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::snapshot;

pub const TRIALS: [Trial; 7] = [
    ("who is evicted comes back on another flavor", other_flavor),
    (
        "who is never ready waits longer, gives up, and is revived",
        deactivated_at_requeue_limit,
    ),
    ("by eviction it comes back behind the others", by_eviction),
    ("by creation it comes back where it was", by_creation),
    (
        "one at a time is admitted where that is asked for",
        block_admission,
    ),
    ("who is ready no more is evicted", recovery),
    (
        "who is deactivated by hand is stopped and comes back",
        evicted_by_hand,
    ),
];

/// Pods of this node selector are never scheduled, however much quota there is.
fn unschedulable_flavor() -> Value {
    json!({"spec": {"template": {"spec": {"nodeSelector": {"test.lockkeeper.dev/kind": "none"}}}}})
}

/// Story 1: there is a stock-out of the nodes of one flavor; while its workload waits again, quota of
/// another flavor gets free.
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
    let flavor_of = |it: &Value| {
        let assigned = &it["status"]["admission"]["podSetAssignments"][0];
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
    // How often it has tried meanwhile is for the machine to say.
    assert_ne!(workload["status"]["requeueState"]["count"], 0);
    for pod in site.pods("train") {
        let selector = &pod["spec"]["nodeSelector"];
        assert_eq!(*selector, json!({"test.lockkeeper.dev/kind": "plain"}));
    }
    site.stop();
}

/// Stories 2 and 3: no node can take it. Each time it waits longer, and others have their turn; at the
/// limit it is deactivated, and who has mended it has it tried again without making it anew.
fn deactivated_at_requeue_limit(stage: &mut Fixture) {
    let config = "waitForPodsReady: {enable: true, timeout: 1s, requeuingStrategy: \
                  {backoffBaseSeconds: 1, backoffLimitCount: 2, timestamp: Creation}}\n";
    let mut site = ControllerFixture::open(stage, config);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("train", "q", 2, "", &unschedulable_flavor());
    for (count, least_s) in [(1, 1), (2, 2)] {
        let waits = site.wait_for_workload("train", |it| {
            it["status"]["requeueState"]["count"] == count
                && it["status"]["requeueState"]["requeueAt"].is_string()
        });
        let evicted = render::condition(&waits, "Evicted").unwrap();
        let from = render::second(&evicted["lastTransitionTime"]);
        let to = render::second(&waits["status"]["requeueState"]["requeueAt"]);
        // The time is cut to whole seconds, and there is a little chance in it.
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

    // While it is stopped its pods may be told to go elsewhere. It takes no timeout to be ready now.
    let mended = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
    site.objects.patch("Job", "train", &mended);
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

/// Three, one of which runs at a time. The first is evicted, the second runs, which is more important, and
/// when it is done either the first or the third is next, which are equals.
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
    site.wait_for_workload("first", |it| {
        render::reason(it, "Requeued") == "BackoffFinished"
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

/// Both would fit, and the second is not admitted before the pods of the first are ready.
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
        || "there is no pod".to_owned(),
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
    // Unready, and ready again: nothing comes of it as long as there is time.
    site.annotate_pods("train", &json!({"test.lockkeeper.dev/unready": "true"}));
    let workload = site.wait_for_workload("train", |it| render::has_status(it, "Evicted", "True"));
    assert_eq!(render::reason(&workload, "Evicted"), "PodsReadyTimeout");
    let unready = render::condition(&workload, "PodsReady");
    if let Some(unready) = unready {
        assert_eq!(unready["reason"], "WaitForRecovery", "{workload:#}");
    }
    // Its new pods are not told to be unready.
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
