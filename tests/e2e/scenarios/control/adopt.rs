//! `lockkeeper adopt` imports running Jobs and JobSets, with the webhook and the admission policies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION};
use super::jobs::{driver_and_workers, job_set_status};
use super::{Trial, quota_use, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::scenarios::tenants::install_policies;

pub const TRIALS: [Trial; 5] = [
    (
        "running Jobs get quota and keep their pods",
        running_jobs_are_adopted,
    ),
    (
        "a running JobSet gets quota and is not suspended",
        running_job_set_is_adopted,
    ),
    (
        "a Job that does not fit prevents all writes",
        too_large_job_prevents_writes,
    ),
    (
        "an interrupted adoption is continued",
        interrupted_adoption_continues,
    ),
    (
        "a Job is not stopped with an adoption that is evicted",
        evicted_adoption_stops_no_job,
    ),
];

/// The controller, as kubectl impersonates it.
const AS_CONTROLLER: &str = "--as=system:serviceaccount:lockkeeper-system:lockkeeper-controller";

/// Runs a trial with a queue of 4 cpu and the admission policies.
fn with_policies(stage: &mut Fixture, trial: fn(&mut ControllerFixture<'_>)) {
    let policies = lockkeeper::output(&["crds", "policies"]);
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    let kubectl = site.stage.cluster().kubectl().clone();
    install_policies(&kubectl, &policies);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    trial(&mut site);
    if site.controller.is_some() {
        site.stop();
    }
    kubectl
        .with_input(&["delete", "-f", "-"], &policies)
        .expect_accepted();
}

/// Runs `adopt` as the administrator; returns the report and the exit code.
#[track_caller]
pub(super) fn adopt(site: &mut ControllerFixture<'_>, arguments: &[&str]) -> (Value, Option<i32>) {
    let kubeconfig = site.stage.cluster().kubectl().kubeconfig().to_owned();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let with = [
        "adopt",
        "--queue",
        "q",
        "--namespace",
        "default",
        "--output",
        "json",
        "--kubeconfig",
        kubeconfig,
    ];
    let output = lockkeeper::run(&[&with[..], arguments].concat());
    let report = serde_json::from_slice(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    (
        report.unwrap_or_else(|e| panic!("{e}: {stderr}")),
        output.status.code(),
    )
}

/// The result of each Job in a report.
pub(super) fn results(report: &Value) -> Vec<(&str, &str)> {
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.map(|it| (it["name"].as_str().unwrap(), it["result"].as_str().unwrap()))
        .collect()
}

/// Creates a Job without a queue, and waits until its pods run.
#[track_caller]
fn start_job(site: &ControllerFixture<'_>, name: &str, cpu: u32, pods: u32) {
    let count = json!({"spec": {"suspend": false, "parallelism": pods, "completions": pods}});
    let mut job = fixture::job(name, "", cpu, "", &count);
    job["metadata"]["labels"] = json!({});
    site.objects.create(&job);
    site.objects
        .wait_until("Job", name, |it| it["status"]["ready"] == pods);
}

/// The uids of the pods of a Job.
fn pod_uids(site: &ControllerFixture<'_>, job: &str) -> BTreeSet<String> {
    let pods = site.pods(job);
    let uids = pods.iter().map(|it| it["metadata"]["uid"].to_string());
    uids.collect()
}

#[track_caller]
fn expect_unqueued(site: &ControllerFixture<'_>, job: &str) {
    let job = site.objects.get("Job", job);
    assert!(
        job["metadata"]["labels"]["lockkeeper.dev/queue-name"].is_null(),
        "{job:#}"
    );
    assert_ne!(job["spec"]["suspend"], true, "{job:#}");
}

fn running_jobs_are_adopted(stage: &mut Fixture) {
    with_policies(stage, |site| {
        start_job(site, "one", 1, 2);
        start_job(site, "two", 2, 1);
        let suspended = json!({"metadata": {"labels": null}});
        site.objects
            .create(&fixture::job("asleep", "q", 1, "", &suspended));
        let pods = [pod_uids(site, "one"), pod_uids(site, "two")];

        let (report, code) = adopt(site, &[]);
        let expected = [("asleep", "Skipped"), ("one", "Fits"), ("two", "Fits")];
        let mut found = results(&report);
        found.sort_unstable();
        assert_eq!(found, expected, "{report:#}");
        assert_eq!(code, Some(0));
        assert_eq!(site.objects.list("Workload").len(), 0);
        expect_unqueued(site, "one");

        // A label alone would stop the pods: it is rejected.
        let label = json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "q"}}});
        let kubectl = site.stage.cluster().kubectl().clone();
        let patch = ["patch", "job", "one", "-n", "default", "-p"];
        let reply = kubectl.run(&[&patch[..], &[&label.to_string()]].concat());
        assert!(reply.stderr.contains("JO001"), "{}", reply.stderr);

        let (report, code) = adopt(site, &["--apply"]);
        let expected = [
            ("asleep", "Skipped"),
            ("one", "Adopted"),
            ("two", "Adopted"),
        ];
        let mut found = results(&report);
        found.sort_unstable();
        assert_eq!(found, expected, "{report:#}");
        assert_eq!(code, Some(0));
        for job in ["one", "two"] {
            let workload = site.wait_until_running(job);
            assert!(
                workload["metadata"]["annotations"].is_null(),
                "{workload:#}"
            );
        }
        let queue = site.wait_for_counts("ClusterQueue", "q", 0, 2);
        assert!(queue["status"].to_string().contains("\"4\""), "{queue:#}");
        assert_eq!([pod_uids(site, "one"), pod_uids(site, "two")], pods);

        let (report, code) = adopt(site, &["--apply", "one"]);
        assert_eq!(results(&report), [("one", "AlreadyAdopted")]);
        assert_eq!(code, Some(0));

        // The quota is in use, and is released at the end.
        site.job("third", "q", 2, "", &json!({}));
        site.wait_until_pending("third", "WaitingForQuota");
        site.finish("two");
        site.wait_until_running("third");
        assert_eq!(pod_uids(site, "one"), pods[0]);
    });
}

/// No controller acts on JobSets here: the test writes the status.
fn running_job_set_is_adopted(stage: &mut Fixture) {
    stage.register_server(Protocol::Http1, DEFAULTS);
    stage.cluster_mut().install_jobset();
    with_policies(stage, |site| {
        let mut object = driver_and_workers();
        object["metadata"]["labels"] = json!({});
        object["spec"]["suspend"] = json!(false);
        object["spec"]["replicatedJobs"][1]["replicas"] = json!(1);
        site.objects.create(&object);
        site.objects
            .patch_status("JobSet", "train", &job_set_status(1, 1));
        start_job(site, "train", 4, 1);
        let before = site.objects.get("JobSet", "train")["spec"].clone();

        let (report, code) = adopt(site, &["--apply", "jobset/train"]);
        assert_eq!(results(&report), [("train", "Adopted")], "{report:#}");
        assert_eq!(report["jobs"][0]["kind"], "JobSet");
        assert_eq!(code, Some(0));
        let name = site.workload_of("JobSet", "train");
        let workload = site.objects.wait_until("Workload", &name, |it| {
            render::has_status(it, "PodsReady", "True")
        });
        assert!(
            workload["metadata"]["annotations"].is_null(),
            "{workload:#}"
        );
        let pod_sets = workload["status"]["admission"]["podSetAssignments"].as_array();
        let pod_sets = pod_sets.unwrap().iter();
        let pod_sets: Vec<_> = pod_sets.map(|it| (&it["name"], &it["count"])).collect();
        let expected = [
            (&json!("driver"), &json!(2)),
            (&json!("workers"), &json!(2)),
        ];
        assert_eq!(pod_sets, expected, "{workload:#}");
        site.wait_for_counts("ClusterQueue", "q", 0, 1);
        let after = site.objects.get("JobSet", "train");
        assert_eq!(after["spec"], before);
        assert_eq!(
            after["metadata"]["labels"]["lockkeeper.dev/queue-name"],
            "q"
        );

        // Both kinds are selected, and the quota is in use.
        let (report, code) = adopt(site, &[]);
        let kinds = report["jobs"].as_array().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|it| (&it["kind"], &it["result"])).collect();
        assert!(kinds.contains(&(&json!("JobSet"), &json!("AlreadyAdopted"))));
        assert!(kinds.contains(&(&json!("Job"), &json!("DoesNotFit"))));
        assert_eq!(code, Some(1));
    });
}

fn too_large_job_prevents_writes(stage: &mut Fixture) {
    with_policies(stage, |site| {
        start_job(site, "first", 3, 1);
        site.objects
            .wait_until("Job", "first", |it| it["status"]["ready"] == 1);
        start_job(site, "second", 2, 1);
        let (report, code) = adopt(site, &["--apply", "first", "second"]);
        let mut found = results(&report);
        found.sort_unstable();
        assert!(found.iter().any(|it| it.1 == "DoesNotFit"), "{report:#}");
        assert!(found.iter().any(|it| it.1 == "Fits"), "{report:#}");
        assert_eq!(code, Some(1));
        assert_eq!(site.objects.list("Workload").len(), 0);
        expect_unqueued(site, "first");
        expect_unqueued(site, "second");

        let (report, code) = adopt(site, &["--apply", "--partial"]);
        let all = results(&report);
        let adopted: Vec<_> = all.iter().filter(|it| it.1 == "Adopted").collect();
        assert_eq!(adopted.len(), 1, "{report:#}");
        assert_eq!(code, Some(1));
        site.wait_for_counts("ClusterQueue", "q", 0, 1);
        assert_eq!(pod_uids(site, "first").len(), 1);
        assert_eq!(pod_uids(site, "second").len(), 1);
    });
}

/// The run is interrupted after the creation of the Workload, because no controller confirms it. Then the Workload gets its
/// admission, as from a run that is interrupted after that.
fn interrupted_adoption_continues(stage: &mut Fixture) {
    with_policies(stage, |site| {
        start_job(site, "train", 2, 2);
        let pods = pod_uids(site, "train");
        site.stop();
        let (report, code) = adopt(site, &["--apply", "--timeout", "1"]);
        assert_eq!(results(&report), [("train", "Failed")], "{report:#}");
        assert_eq!(code, Some(1));
        let name = site.workload_name("train");
        expect_unqueued(site, "train");

        site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
        wait_until_observed(site, &name);
        // The quota is free, but the adoption will need it.
        site.job("later", "q", 2, "", &json!({}));
        let later = site.workload_name("later");
        site.objects.wait_until("Workload", &later, |it| {
            let reserved = render::condition(it, "QuotaReserved");
            let message = reserved.and_then(|it| it["message"].as_str());
            message.is_some_and(|it| it.starts_with("Waits while lockkeeper adopt"))
        });
        admit(site, &name);
        site.wait_for_counts("ClusterQueue", "q", 1, 1);
        expect_unqueued(site, "train");
        // A restart of the controller changes nothing.
        site.stop();
        site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
        site.wait_until_pending("later", "WaitingForQuota");
        assert_eq!(pod_uids(site, "train"), pods);

        let (report, code) = adopt(site, &[]);
        assert!(
            results(&report).contains(&("train", "Reserved")),
            "{report:#}"
        );
        assert_eq!(code, Some(0));
        let (report, code) = adopt(site, &["--apply"]);
        assert!(
            results(&report).contains(&("train", "Adopted")),
            "{report:#}"
        );
        assert_eq!(code, Some(0));
        site.wait_until_running("train");
        assert_eq!(pod_uids(site, "train"), pods);
    });
}

/// The quota is taken away before the Job has its label: the Job is not in the queue, and runs on.
fn evicted_adoption_stops_no_job(stage: &mut Fixture) {
    with_policies(stage, |site| {
        start_job(site, "train", 2, 1);
        let pods = pod_uids(site, "train");
        site.stop();
        adopt(site, &["--apply", "--timeout", "1"]);
        let name = site.workload_name("train");
        site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
        wait_until_observed(site, &name);
        admit(site, &name);
        site.wait_for_counts("ClusterQueue", "q", 0, 1);
        let stop = json!({"spec": {"stopPolicy": "HoldAndDrain"}});
        site.objects.patch("ClusterQueue", "q", &stop);
        site.objects.wait_until_gone("Workload", &name);
        site.wait_for_counts("ClusterQueue", "q", 0, 0);
        expect_unqueued(site, "train");
        assert_eq!(pod_uids(site, "train"), pods);

        let (report, code) = adopt(site, &["--apply", "train"]);
        assert_eq!(results(&report), [("train", "DoesNotFit")]);
        assert_eq!(code, Some(1));
    });
}

#[track_caller]
fn wait_until_observed(site: &ControllerFixture<'_>, workload: &str) {
    site.objects.wait_until("Workload", workload, |it| {
        it["metadata"]["annotations"]["lockkeeper.dev/adoption"] == "Observed"
            && render::condition(it, "QuotaReserved").is_some()
    });
}

/// Writes an admission for 4 cpu, as `adopt` does.
#[track_caller]
fn admit(site: &mut ControllerFixture<'_>, workload: &str) {
    let object = site.objects.get("Workload", workload);
    let count = object["spec"]["podSets"][0]["count"].as_i64().unwrap();
    let time = &object["metadata"]["creationTimestamp"];
    let status = quota_use::admission("q", count, 2 * count, time);
    let kubectl: Kubectl = site.stage.cluster().kubectl().clone();
    let patch = status.to_string();
    let arguments = [
        AS_CONTROLLER,
        // kubectl reads the object first, and the controller may not.
        "--as-group=system:masters",
        "patch",
        "workloads.lockkeeper.dev",
        workload,
        "--namespace=default",
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ];
    kubectl.run(&arguments).expect_accepted();
    // Only the controller's account may mark a Workload as adopted.
    let mark = json!({"metadata": {"annotations": {"lockkeeper.dev/adoption": "Requested"}}});
    let mark = mark.to_string();
    let arguments = [
        "patch",
        "workloads.lockkeeper.dev",
        workload,
        "--namespace=default",
        "--type=merge",
        "-p",
        &mark,
    ];
    let reply = kubectl.run(&arguments);
    assert!(reply.stderr.contains("adopt may set"), "{}", reply.stderr);
}
