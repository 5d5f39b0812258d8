//! Invalid objects on a cluster without the webhook: a condition reports the problem, and other queues are not
//! affected.

use serde_json::{Value, json};

use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::snapshot;

pub const TRIALS: [Trial; 9] = [
    ("a user edits a workload", edited),
    ("a user clears a status", cleared_status),
    ("a queue is deleted while its workloads run", deleted_queue),
    ("cohorts form a cycle", cohort_cycle),
    ("a Job gets another label", relabelled),
    ("a class or a flavor is missing", missing_references),
    ("a class is not allowed in a queue", disallowed_class),
    ("quota is lowered below what is used", lowered_quota),
    ("objects that cannot be decoded", unreadable),
];

/// A cluster where the queue `good` has room for one Job of 2 cpu and must stay unaffected.
#[track_caller]
fn open(stage: &mut Fixture) -> ControllerFixture<'_> {
    let site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    site.flavor("default");
    site.queue("good", 2, &json!({}));
    site
}

/// The queue `good` is not affected by errors elsewhere.
#[track_caller]
fn others_are_admitted(site: &ControllerFixture<'_>) {
    site.job("good", "good", 2, "", &json!({}));
    site.wait_until_running("good");
}

/// A user makes the workload of a running Job larger than its quota, and that of a pending Job smaller.
fn edited(stage: &mut Fixture) {
    let mut site = open(stage);
    site.queue("q", 4, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.wait_until_running("runs");
    site.job("waits", "q", 4, "", &json!({}));
    site.wait_until_pending("waits", "WaitingForQuota");
    // The workload follows its Job: the controller reverts the edit.
    let name = site.workload_name("waits");
    let mut pod_sets = site.objects.get("Workload", &name)["spec"]["podSets"].clone();
    pod_sets[0]["count"] = 3.into();
    site.objects.patch(
        "Workload",
        &name,
        &json!({"spec": {"podSets": pod_sets, "queueName": "good"}}),
    );
    site.objects.wait_until("Workload", &name, |workload| {
        workload["spec"]["podSets"][0]["count"] == 1 && workload["spec"]["queueName"] == "q"
    });
    // Quota that a user adds to an admission counts as usage: no other workload is admitted.
    let workload = site.workload_name("runs");
    let mut admission = site.objects.get("Workload", &workload)["status"]["admission"].clone();
    admission["podSetAssignments"][0]["resourceUsage"]["cpu"] = "3".into();
    site.objects.patch_status(
        "Workload",
        &workload,
        &json!({"status": {"admission": admission}}),
    );
    site.objects.wait_until("ClusterQueue", "q", |queue| {
        queue["status"]["flavorsUsage"][0]["resources"][0]["total"] == "3"
    });
    others_are_admitted(&site);
    site.finish("runs");
    site.wait_until_running("waits");
    site.stop();
}

/// Without a status the admission of a Job is lost: the controller stops it, and admits it again when it fits.
fn cleared_status(stage: &mut Fixture) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.wait_until_running("runs");
    let name = site.workload_name("runs");
    let uid = site.objects.get("Workload", &name)["metadata"]["uid"].clone();
    let empty = json!({"status": {
        "admission": null, "conditions": null, "priority": null, "preemptionPriority": null,
    }});
    site.objects.patch_status("Workload", &name, &empty);
    site.wait_until_running("runs");
    let workload = site.objects.get("Workload", &name);
    assert_eq!(workload["metadata"]["uid"], uid);
    assert_eq!(workload["status"]["priority"], 0);

    // The status of a queue is written again.
    let empty = json!({"status": {"conditions": null, "admittedWorkloads": 7, "flavorsUsage": null,
        "flavorsReservation": null}});
    site.objects.patch_status("ClusterQueue", "q", &empty);
    let queue = site.wait_for_counts("ClusterQueue", "q", 0, 1);
    assert!(render::has_status(&queue, "Active", "True"), "{queue:#}");
    others_are_admitted(&site);
    site.stop();
}

/// Running workloads continue, no other workload is admitted, and a condition gives the reason. A recreated queue
/// works.
fn deleted_queue(stage: &mut Fixture) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.wait_until_running("runs");
    site.objects.delete("ClusterQueue", "q");
    let queue = site.objects.wait_until("ClusterQueue", "q", |queue| {
        render::has_status(queue, "Active", "False")
    });
    assert!(queue["metadata"]["deletionTimestamp"].is_string());
    // An administrator removes the finalizer, which would keep the queue until its workloads have ended.
    let finalizers = json!({"metadata": {"finalizers": null}});
    site.objects.patch("ClusterQueue", "q", &finalizers);
    site.objects.wait_until_gone("ClusterQueue", "q");
    site.job("waits", "q", 1, "", &json!({}));
    let waits = site.wait_until_pending("waits", "Inadmissible");
    let local = site.objects.wait_until("LocalQueue", "q", |queue| {
        render::has_status(queue, "Active", "False") && queue["status"]["pendingWorkloads"] == 1
    });
    let text = render::render_workload(&waits) + &render::render_queue(&local);
    snapshot::check("control-deleted-queue", &text);
    let runs = site.objects.get("Job", "runs");
    assert_eq!(runs["spec"]["suspend"], false, "{runs:#}");
    others_are_admitted(&site);

    site.objects
        .create(&fixture::cluster_queue("q", 3, &json!({})));
    site.wait_until_running("waits");
    site.wait_until_running("runs");
    let queue = site.wait_for_counts("ClusterQueue", "q", 0, 2);
    snapshot::check("control-deleted-queue-back", &render::render_queue(&queue));

    // Without the LocalQueue the pending workload is inadmissible.
    site.objects.delete("LocalQueue", "q");
    site.job("late", "q", 1, "", &json!({}));
    let late = site.wait_until_pending("late", "Inadmissible");
    snapshot::check("control-no-local-queue", &render::render_workload(&late));
    site.stop();
}

/// Three cohorts are each other's parents. No workload in them is admitted, and a condition gives the reason.
fn cohort_cycle(stage: &mut Fixture) {
    let mut site = open(stage);
    for (name, parent) in [("a", "b"), ("b", "c"), ("c", "a")] {
        site.objects.create(&json!({
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Cohort",
            "metadata": {"name": name},
            "spec": {"parentName": parent},
        }));
    }
    site.queue("q", 2, &json!({"cohortName": "a"}));
    site.job("train", "q", 2, "", &json!({}));
    let cohort = site.objects.wait_until("Cohort", "b", |cohort| {
        render::has_status(cohort, "Misconfigured", "True")
    });
    let queue = site
        .objects
        .wait_until("ClusterQueue", "q", is_misconfigured);
    let workload = site.wait_until_pending("train", "Inadmissible");
    let text = [
        render::render_queue(&cohort),
        render::render_queue(&queue),
        render::render_workload(&workload),
    ];
    snapshot::check("control-circle", &text.concat());
    others_are_admitted(&site);

    site.objects
        .patch("Cohort", "c", &json!({"spec": {"parentName": null}}));
    site.wait_until_running("train");
    for name in ["a", "b", "c"] {
        site.objects.wait_until("Cohort", name, |cohort| {
            render::has_status(cohort, "Misconfigured", "False")
        });
    }
    site.stop();
}

/// Whether the queue reports the misconfiguration and counts one pending workload.
fn is_misconfigured(queue: &Value) -> bool {
    render::has_status(queue, "Misconfigured", "True") && queue["status"]["pendingWorkloads"] == 1
}

/// A Job that runs in one queue is labelled for another, or for none.
fn relabelled(stage: &mut Fixture) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.queue("other", 2, &json!({}));
    let label =
        |queue: Option<&str>| json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": queue}}});
    // A pending Job moves to the other queue.
    site.job("runs", "q", 2, "", &json!({}));
    site.wait_until_running("runs");
    site.job("waits", "q", 2, "", &json!({}));
    site.wait_until_pending("waits", "WaitingForQuota");
    site.objects.patch("Job", "waits", &label(Some("other")));
    let workload = site.wait_until_running("waits");
    assert_eq!(workload["status"]["admission"]["clusterQueue"], "other");

    // A running Job is stopped, and waits for the queue that its label names.
    site.objects.patch("Job", "runs", &label(Some("nowhere")));
    others_are_admitted(&site);
    site.wait_until_pending("runs", "Inadmissible");
    let runs = site.wait_until_stopped("runs");
    assert_eq!(runs["spec"]["queueName"], "nowhere");

    // Without the label a running Job is stopped before its quota is released.
    let name = site.workload_name("waits");
    site.objects.patch("Job", "waits", &label(None));
    site.objects.wait_until_gone("Workload", &name);
    let waits = site.objects.get("Job", "waits");
    assert_eq!(waits["spec"]["suspend"], true, "{waits:#}");
    assert_eq!(site.pods("waits").len(), 0);
    site.wait_for_counts("ClusterQueue", "other", 0, 0);
    site.stop();
}

fn missing_references(stage: &mut Fixture) {
    let mut site = open(stage);
    // A PriorityClass that does not exist.
    site.job("classless", "good", 1, "absent", &json!({}));
    let classless = site.wait_until_pending("classless", "Inadmissible");
    // A ResourceFlavor that does not exist.
    let flavor = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "absent", "resources": [{"name": "cpu", "nominalQuota": 2}]}],
    }]});
    site.queue("q", 2, &flavor);
    site.job("train", "q", 2, "", &json!({}));
    let train = site.wait_until_pending("train", "Inadmissible");
    let queue = site
        .objects
        .wait_until("ClusterQueue", "q", is_misconfigured);
    let text = [
        render::render_workload(&classless),
        render::render_workload(&train),
        render::render_queue(&queue),
    ];
    snapshot::check("control-missing", &text.concat());
    others_are_admitted(&site);
    site.finish("good");

    // The workloads are admitted as soon as both exist.
    site.class("absent", 7);
    let workload = site.wait_until_running("classless");
    assert_eq!(workload["status"]["priority"], 7);
    site.flavor("absent");
    site.wait_until_running("train");
    site.stop();
}

/// No workload is evicted for it, and none is admitted before the lower quota has room.
fn lowered_quota(stage: &mut Fixture) {
    let mut site = open(stage);
    site.queue("q", 4, &json!({}));
    site.job("first", "q", 2, "", &json!({}));
    site.job("second", "q", 2, "", &json!({}));
    site.wait_until_running("first");
    site.wait_until_running("second");
    let spec = fixture::cluster_queue("q", 2, &json!({}))["spec"].clone();
    site.objects
        .patch("ClusterQueue", "q", &json!({"spec": spec}));
    site.job("third", "q", 1, "", &json!({}));
    site.wait_until_pending("third", "WaitingForQuota");
    site.check_workloads("control-lowered", &["first", "third"]);
    let queue = site.wait_for_counts("ClusterQueue", "q", 1, 2);
    snapshot::check("control-lowered-queue", &render::render_queue(&queue));
    others_are_admitted(&site);
    site.finish("first");
    // 2 of 2 cpus are still in use.
    site.wait_for_counts("ClusterQueue", "q", 1, 1);
    let third = site.workload_name("third");
    let third = site.objects.get("Workload", &third);
    assert!(
        render::has_status(&third, "QuotaReserved", "False"),
        "{third:#}"
    );
    site.finish("second");
    site.wait_until_running("third");
    site.stop();
}

/// Objects that were stored before a stricter definition. Events report them, and they block neither other workloads
/// nor the start of a controller.
fn unreadable(stage: &mut Fixture) {
    let mut site = open(stage);
    let mut broken = fixture::job("broken", "good", 1, "", &json!({}));
    broken["metadata"]["annotations"] = json!({"lockkeeper.dev/job-min-parallelism": "many"});
    site.objects.create(&broken);
    // A Job is used as it is: an annotation that is not a number is ignored.
    site.wait_until_running("broken");
    // A template is decoded when it is used: the schema does not cover it.
    site.objects.create(&json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "garbled", "namespace": "default"},
        "spec": {"queueName": "good", "podSets": [{"template": {"spec": {"containers": "none"}}}]},
    }));
    let events = site.wait_for_events("garbled", 1);
    snapshot::check("control-unreadable", &events.join("\n"));
    site.finish("broken");
    others_are_admitted(&site);
    site.stop();
    site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
    site.finish("good");
    site.job("after", "good", 2, "", &json!({}));
    site.wait_until_running("after");
    site.stop();
}

/// A tenant labels a Job with a class that its queue does not allow. The webhook is down, so the controller decides.
fn disallowed_class(stage: &mut Fixture) {
    let mut site = open(stage);
    site.class("low", 100);
    site.queue("q", 8, &json!({}));
    site.job("top", "q", 8, "system-node-critical", &json!({}));
    let workload = site.wait_until_pending("top", "Inadmissible");
    let condition = render::condition(&workload, "QuotaReserved").unwrap();
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.starts_with("PriorityClass system-node-critical is not allowed in LocalQueue q"),
        "{message}"
    );
    assert_eq!(site.objects.get("Job", "top")["spec"]["suspend"], true);
    assert!(site.pods("top").is_empty());
    // The queue names the class, and the other class no longer.
    let allow = json!({"spec": {"allowedPriorityClasses": ["system-node-critical"]}});
    site.objects.patch("ClusterQueue", "q", &allow);
    site.wait_until_running("top");
    site.finish("top");
    site.job("other", "q", 8, "low", &json!({}));
    site.wait_until_pending("other", "Inadmissible");
    // A LocalQueue only narrows the list.
    let both = json!({"spec": {"allowedPriorityClasses": ["system-node-critical", "low"]}});
    site.objects.patch("ClusterQueue", "q", &both);
    site.wait_until_running("other");
    others_are_admitted(&site);
    site.stop();
}
