//! What nobody should write, on a cluster where nobody reviews what is written: a condition says what is
//! wrong, and the rest goes on.

use serde_json::{Value, json};

use super::site::{self, ALONE, Site};
use super::{Trial, told};
use crate::snapshot;
use crate::stage::{DEFAULTS, Stage};

pub const TRIALS: [Trial; 8] = [
    ("a workload is edited by hand", edited),
    ("a status is cleared", cleared),
    ("a queue is deleted under running work", deleted_queue),
    ("a circle of cohorts", circle),
    ("a Job gets another label", relabelled),
    ("a class or a flavor is missing", missing),
    ("quota is lowered below what is used", lowered),
    ("what cannot be read", unreadable),
];

/// A site where the queue `good` has room for one Job of 2 cpu, and goes on whatever happens beside it.
#[track_caller]
fn open(stage: &mut Stage) -> Site<'_> {
    let site = Site::unguarded(stage, DEFAULTS);
    site.flavor("default");
    site.queue("good", 2, &json!({}));
    site
}

/// What is wrong elsewhere is nothing to this queue.
#[track_caller]
fn rest_goes_on(site: &Site<'_>) {
    site.job("good", "good", 2, "", &json!({}));
    site.until_runs("good");
}

/// Somebody makes the workload of a running Job larger than its quota, and of a waiting one smaller.
fn edited(stage: &mut Stage) {
    let mut site = open(stage);
    site.queue("q", 4, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.until_runs("runs");
    site.job("waits", "q", 4, "", &json!({}));
    site.until_waits("waits", "WaitingForQuota");
    // It follows its Job: what was written by hand is put back.
    let name = site.workload_name("waits");
    let mut pod_sets = site.objects.get("Workload", &name)["spec"]["podSets"].clone();
    pod_sets[0]["count"] = 3.into();
    site.objects.patch(
        "Workload",
        &name,
        &json!({"spec": {"podSets": pod_sets, "queueName": "good"}}),
    );
    site.objects.until("Workload", &name, |it| {
        it["spec"]["podSets"][0]["count"] == 1 && it["spec"]["queueName"] == "q"
    });
    // Quota taken by hand counts, and is not a way to more than there is: nobody else comes in.
    let workload = site.workload_name("runs");
    let mut admission = site.objects.get("Workload", &workload)["status"]["admission"].clone();
    admission["podSetAssignments"][0]["resourceUsage"]["cpu"] = "3".into();
    site.objects.patch_status(
        "Workload",
        &workload,
        &json!({"status": {"admission": admission}}),
    );
    site.objects.until("ClusterQueue", "q", |it| {
        it["status"]["flavorsUsage"][0]["resources"][0]["total"] == "3"
    });
    rest_goes_on(&site);
    site.finish("runs");
    site.until_runs("waits");
    site.close();
}

/// Without a status nobody knows that a Job was admitted: it is stopped, and admitted again when it fits.
fn cleared(stage: &mut Stage) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.until_runs("runs");
    let name = site.workload_name("runs");
    let uid = site.objects.get("Workload", &name)["metadata"]["uid"].clone();
    let empty = json!({"status": {
        "admission": null, "conditions": null, "priority": null, "preemptionPriority": null,
    }});
    site.objects.patch_status("Workload", &name, &empty);
    site.until_runs("runs");
    let workload = site.objects.get("Workload", &name);
    assert_eq!(workload["metadata"]["uid"], uid);
    assert_eq!(workload["status"]["priority"], 0);

    // Of a queue it is written anew.
    let empty = json!({"status": {"conditions": null, "admittedWorkloads": 7, "flavorsUsage": null,
        "flavorsReservation": null}});
    site.objects.patch_status("ClusterQueue", "q", &empty);
    let queue = site.until_counts("ClusterQueue", "q", 0, 1);
    assert!(told::is(&queue, "Active", "True"), "{queue:#}");
    rest_goes_on(&site);
    site.close();
}

/// Who runs runs on; nobody else is admitted, and it is said why. The queue comes back, and all is well.
fn deleted_queue(stage: &mut Stage) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.job("runs", "q", 2, "", &json!({}));
    site.until_runs("runs");
    site.objects.delete("ClusterQueue", "q");
    site.objects.until_gone("ClusterQueue", "q");
    site.job("waits", "q", 1, "", &json!({}));
    let waits = site.until_waits("waits", "Inadmissible");
    let local = site.objects.until("LocalQueue", "q", |it| {
        told::is(it, "Active", "False") && it["status"]["pendingWorkloads"] == 1
    });
    let text = told::workload(&waits) + &told::queue(&local);
    snapshot::check("control-deleted-queue", &text);
    let runs = site.objects.get("Job", "runs");
    assert_eq!(runs["spec"]["suspend"], false, "{runs:#}");
    rest_goes_on(&site);

    site.objects.make(&site::cluster_queue("q", 3, &json!({})));
    site.until_runs("waits");
    site.until_runs("runs");
    let queue = site.until_counts("ClusterQueue", "q", 0, 2);
    snapshot::check("control-deleted-queue-back", &told::queue(&queue));

    // The door is gone: who waits is told so.
    site.objects.delete("LocalQueue", "q");
    site.job("late", "q", 1, "", &json!({}));
    let late = site.until_waits("late", "Inadmissible");
    snapshot::check("control-no-local-queue", &told::workload(&late));
    site.close();
}

/// Three cohorts are each other's parents. Nobody in them is admitted, and each says why.
fn circle(stage: &mut Stage) {
    let mut site = open(stage);
    for (name, parent) in [("a", "b"), ("b", "c"), ("c", "a")] {
        site.objects.make(&json!({
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Cohort",
            "metadata": {"name": name},
            "spec": {"parentName": parent},
        }));
    }
    site.queue("q", 2, &json!({"cohortName": "a"}));
    site.job("train", "q", 2, "", &json!({}));
    let cohort = site
        .objects
        .until("Cohort", "b", |it| told::is(it, "Misconfigured", "True"));
    let queue = site.objects.until("ClusterQueue", "q", is_misconfigured);
    let workload = site.until_waits("train", "Inadmissible");
    let text = [
        told::queue(&cohort),
        told::queue(&queue),
        told::workload(&workload),
    ];
    snapshot::check("control-circle", &text.concat());
    rest_goes_on(&site);

    site.objects
        .patch("Cohort", "c", &json!({"spec": {"parentName": null}}));
    site.until_runs("train");
    for name in ["a", "b", "c"] {
        site.objects
            .until("Cohort", name, |it| told::is(it, "Misconfigured", "False"));
    }
    site.close();
}

/// Says what is wrong with it, and has counted the one that waits.
fn is_misconfigured(queue: &Value) -> bool {
    told::is(queue, "Misconfigured", "True") && queue["status"]["pendingWorkloads"] == 1
}

/// A Job that runs in one queue is labelled for another, or for none.
fn relabelled(stage: &mut Stage) {
    let mut site = open(stage);
    site.queue("q", 2, &json!({}));
    site.queue("other", 2, &json!({}));
    let label =
        |queue: Option<&str>| json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": queue}}});
    // While it waits it goes to the other queue.
    site.job("runs", "q", 2, "", &json!({}));
    site.until_runs("runs");
    site.job("waits", "q", 2, "", &json!({}));
    site.until_waits("waits", "WaitingForQuota");
    site.objects.patch("Job", "waits", &label(Some("other")));
    let workload = site.until_runs("waits");
    assert_eq!(workload["status"]["admission"]["clusterQueue"], "other");

    // While it runs it keeps the quota that it has.
    site.objects.patch("Job", "runs", &label(Some("nowhere")));
    rest_goes_on(&site);
    let workload = site.until_runs("runs");
    assert_eq!(workload["status"]["admission"]["clusterQueue"], "q");

    // Without a label it is nobody's business here: its quota is free again.
    let name = site.workload_name("waits");
    site.objects.patch("Job", "waits", &label(None));
    site.objects.until_gone("Workload", &name);
    site.until_counts("ClusterQueue", "other", 0, 0);
    site.close();
}

fn missing(stage: &mut Stage) {
    let mut site = open(stage);
    // A class that is not there.
    site.job("classless", "good", 1, "absent", &json!({}));
    let classless = site.until_waits("classless", "Inadmissible");
    // A flavor that is not there.
    let flavor = json!({"resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "absent", "resources": [{"name": "cpu", "nominalQuota": 2}]}],
    }]});
    site.queue("q", 2, &flavor);
    site.job("train", "q", 2, "", &json!({}));
    let train = site.until_waits("train", "Inadmissible");
    let queue = site.objects.until("ClusterQueue", "q", is_misconfigured);
    let text = [
        told::workload(&classless),
        told::workload(&train),
        told::queue(&queue),
    ];
    snapshot::check("control-missing", &text.concat());
    rest_goes_on(&site);
    site.finish("good");

    // As soon as they are there they are used.
    site.class("absent", 7);
    let workload = site.until_runs("classless");
    assert_eq!(workload["status"]["priority"], 7);
    site.flavor("absent");
    site.until_runs("train");
    site.close();
}

/// Nobody is stopped for it, and nobody admitted, before there is room in what is left.
fn lowered(stage: &mut Stage) {
    let mut site = open(stage);
    site.queue("q", 4, &json!({}));
    site.job("first", "q", 2, "", &json!({}));
    site.job("second", "q", 2, "", &json!({}));
    site.until_runs("first");
    site.until_runs("second");
    let spec = site::cluster_queue("q", 2, &json!({}))["spec"].clone();
    site.objects
        .patch("ClusterQueue", "q", &json!({"spec": spec}));
    site.job("third", "q", 1, "", &json!({}));
    site.until_waits("third", "WaitingForQuota");
    site.check_workloads("control-lowered", &["first", "third"]);
    let queue = site.until_counts("ClusterQueue", "q", 1, 2);
    snapshot::check("control-lowered-queue", &told::queue(&queue));
    rest_goes_on(&site);
    site.finish("first");
    // 2 of 2 are used still.
    site.until_counts("ClusterQueue", "q", 1, 1);
    let third = site.workload_name("third");
    let third = site.objects.get("Workload", &third);
    assert!(told::is(&third, "QuotaReserved", "False"), "{third:#}");
    site.finish("second");
    site.until_runs("third");
    site.close();
}

/// Objects from before a definition was made stricter. They are told of, and hold up nothing; not even a
/// controller that starts on them.
fn unreadable(stage: &mut Stage) {
    let mut site = open(stage);
    let mut broken = site::job("broken", "good", 1, "", &json!({}));
    broken["metadata"]["annotations"] = json!({"lockkeeper.dev/job-min-parallelism": "many"});
    site.objects.make(&broken);
    // A Job says what it says: an annotation that is no number is none.
    site.until_runs("broken");
    // A template is decoded when it is used: no definition says what is in it.
    site.objects.make(&json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "garbled", "namespace": "default"},
        "spec": {"queueName": "good", "podSets": [{"template": {"spec": {"containers": "none"}}}]},
    }));
    let told = site.until_events("garbled", 1);
    snapshot::check("control-unreadable", &told.join("\n"));
    site.finish("broken");
    rest_goes_on(&site);
    site.close();
    site.control(DEFAULTS, &[ALONE]);
    site.finish("good");
    site.job("after", "good", 2, "", &json!({}));
    site.until_runs("after");
    site.close();
}
