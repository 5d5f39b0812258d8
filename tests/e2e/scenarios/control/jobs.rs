//! Jobs: their workloads, where their pods go, and how they are stopped.

use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION, pods_with};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;
use crate::snapshot;
use crate::wait;
use serde_json::{Value, json};

pub const TRIALS: [Trial; 10] = [
    ("a Job gets its placement", job_gets_flavor_placement),
    ("part of a Job starts", partial_admission),
    ("a Job is created unsuspended", job_created_unsuspended),
    (
        "a deleted or finished Job releases its quota",
        deleted_or_finished_job_frees_quota,
    ),
    ("a workload follows its Job", workload_follows_job),
    ("a running Job is scaled up", job_scaled_while_running),
    ("pods hang on a dead node", pods_on_dead_node),
    ("a Job exceeds its maximum time", maximum_execution_time),
    ("a JobSet starts and is stopped", jobset),
    ("a dry run writes nothing", dry_run),
];

/// A queue on tainted nodes; the flavor adds the toleration.
#[track_caller]
fn spot(site: &ControllerFixture<'_>, cpu: u32, more: &Value) {
    let spec = json!({
        "nodeLabels": {"test.lockkeeper.dev/kind": "spot"},
        "nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    });
    site.objects.create(&fixture::flavor("default", &spec));
    site.queue("q", cpu, more);
}

/// The node selector and the tolerations of a Job.
fn placement(job: &Value) -> [&Value; 2] {
    let spec = &job["spec"]["template"]["spec"];
    [&spec["nodeSelector"], &spec["tolerations"]]
}

fn job_gets_flavor_placement(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.classes();
    spot(
        &site,
        2,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    let mut more = json!({"spec": {"template": {"spec": {
        "nodeSelector": {"kubernetes.io/hostname": "spot-0"},
        "tolerations": [{"key": "own", "operator": "Exists"}],
    }}}});
    merge(&mut more, &pods_with(&json!({"keep": "this"})));
    site.job("train", "q", 2, "low", &more);
    let template = site.objects.get("Job", "train")["spec"]["template"].clone();
    site.wait_until_running("train");
    let job = site.objects.get("Job", "train");
    let [selector, tolerations] = placement(&job);
    assert_eq!(
        *selector,
        json!({"kubernetes.io/hostname": "spot-0", "test.lockkeeper.dev/kind": "spot"})
    );
    assert_eq!(tolerations.as_array().unwrap().len(), 2, "{tolerations}");
    for pod in site.pods("train") {
        assert_eq!(pod["spec"]["nodeName"], "spot-0");
        assert_eq!(pod["spec"]["nodeSelector"], *selector);
        assert!(pod["spec"]["tolerations"].to_string().contains("spot"));
    }

    site.job("first", "q", 2, "high", &json!({}));
    site.wait_until_running("first");
    site.wait_until_stopped("train");
    let stopped = site.objects.get("Job", "train");
    assert_eq!(
        stopped["spec"]["template"], template,
        "the original template"
    );

    // A second start works the same.
    site.finish("first");
    site.wait_until_running("train");
    site.finish("train");
    site.wait_for_workload("train", |it| render::has_status(it, "Finished", "True"));
    site.stop();
}

/// 3 of 5 pods fit; the Job accepts 2.
fn partial_admission(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue(
        "q",
        6,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    let more = json!({
        "metadata": {"annotations": {"lockkeeper.dev/job-min-parallelism": "2"}},
        "spec": {"parallelism": 5, "completions": 5},
    });
    site.job("train", "q", 2, "low", &more);
    site.wait_until_running("train");
    assert_eq!(site.pods("train").len(), 3);
    assert_eq!(site.objects.get("Job", "train")["spec"]["parallelism"], 3);
    site.check_workloads("control-partly", &["train"]);

    site.job("first", "q", 6, "high", &json!({}));
    site.wait_until_running("first");
    site.wait_until_stopped("train");
    // The eviction restores the full parallelism.
    assert_eq!(site.objects.get("Job", "train")["spec"]["parallelism"], 5);
    site.wait_until_pending("train", "WaitingForQuota");
    site.stop();
}

/// Without the webhook a Job may run before its admission. The controller stops it and starts it when it fits.
fn job_created_unsuspended(stage: &mut Fixture) {
    let mut site = ControllerFixture::open_without_webhook(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("first", "q", 2, "", &json!({}));
    site.wait_until_running("first");
    site.job("train", "q", 2, "", &json!({"spec": {"suspend": false}}));
    site.wait_until_pending("train", "WaitingForQuota");
    site.objects.wait_until("Job", "train", |job| {
        job["spec"]["suspend"] == true && job["status"]["active"].as_u64().unwrap_or(0) == 0
    });
    site.wait_until_no_pods("train");
    site.finish("first");
    site.wait_until_running("train");

    // A Job that a user starts by hand is stopped again.
    site.job("other", "q", 2, "", &json!({}));
    site.wait_until_pending("other", "WaitingForQuota");
    site.objects
        .patch("Job", "other", &json!({"spec": {"suspend": false}}));
    site.objects
        .wait_until("Job", "other", |it| it["spec"]["suspend"] == true);
    // A Job that a user suspends is started again while its workload is admitted.
    site.objects
        .patch("Job", "train", &json!({"spec": {"suspend": true}}));
    site.objects
        .wait_until("Job", "train", |it| it["spec"]["suspend"] == false);
    site.wait_until_running("train");
    site.stop();
}

fn deleted_or_finished_job_frees_quota(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    site.job("first", "q", 2, "", &json!({}));
    site.wait_until_running("first");
    let fails = pods_with(&json!({
        "test.lockkeeper.dev/run-for": "0s", "test.lockkeeper.dev/exit-code": "7",
    }));
    site.job("second", "q", 2, "", &fails);
    site.wait_until_pending("second", "WaitingForQuota");

    // After a deletion the garbage collector removes the workload; the next Job runs, and fails.
    let workload = site.workload_name("first");
    site.objects.delete("Job", "first");
    site.objects.wait_until_gone("Workload", &workload);
    let second = site.wait_for_workload("second", |it| render::has_status(it, "Finished", "True"));
    assert_eq!(render::reason(&second, "Finished"), "Failed");

    // After completion the next Job runs at once, while the finished one still exists.
    site.job("third", "q", 2, "", &json!({}));
    site.wait_until_running("third");
    site.wait_for_counts("ClusterQueue", "q", 0, 1);
    site.finish("third");
    site.wait_for_counts("ClusterQueue", "q", 0, 0);
    site.wait_for_counts("LocalQueue", "q", 0, 0);
    site.check_workloads("control-finished", &["second", "third"]);
    site.stop();
}

/// A pending Job may change, and its workload follows. A workload that a user deletes is created again.
fn workload_follows_job(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 4, &json!({}));
    site.job(
        "train",
        "q",
        1,
        "low",
        &json!({"spec": {"parallelism": 5, "completions": 5}}),
    );
    site.wait_until_pending("train", "WaitingForQuota");
    // The parallelism of a suspended Job may change: now it fits.
    site.objects
        .patch("Job", "train", &json!({"spec": {"parallelism": 4}}));
    let workload = site.wait_until_running("train");
    assert_eq!(workload["spec"]["podSets"][0]["count"], 4);
    assert_eq!(site.pods("train").len(), 4);

    let name = site.workload_name("train");
    let uid = workload["metadata"]["uid"].clone();
    site.objects.delete("Workload", &name);
    site.objects.wait_until("Workload", &name, |workload| {
        workload["metadata"]["uid"].is_string() && workload["metadata"]["uid"] != uid
    });
    // No pod ran without quota meanwhile: the Job was stopped and started again.
    site.wait_until_running("train");
    site.stop();
}

/// The parallelism of a running Job may change, too.
fn job_scaled_while_running(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 4, &json!({}));
    let four = json!({"spec": {"parallelism": 2, "completions": 6}});
    site.job("train", "q", 1, "", &four);
    site.wait_until_running("train");
    let parallelism = |count: u32| {
        let change = json!({"spec": {"parallelism": count}});
        site.objects.patch("Job", "train", &change);
    };
    // A lower parallelism needs no action.
    parallelism(1);
    let name = site.workload_name("train");
    let before = site.objects.get("Workload", &name);
    site.objects
        .wait_until("Job", "train", |it| it["status"]["active"] == 1);

    // A parallelism above the admitted one stops the Job; it starts again with the new value.
    parallelism(3);
    let workload = site.wait_for_workload("train", |workload| {
        render::has_status(workload, "PodsReady", "True")
            && workload["status"]["admission"]["podSetAssignments"][0]["count"] == 3
    });
    assert_eq!(workload["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(site.pods("train").len(), 3);
    // It was evicted only once.
    let events = site.wait_for_events(&name, 1);
    snapshot::check("control-outgrown-events", &events.join("\n"));

    // More pods than the quota allows: the Job waits.
    parallelism(5);
    site.wait_until_pending("train", "WaitingForQuota");
    site.wait_until_stopped("train");
    assert_eq!(site.objects.get("Job", "train")["spec"]["parallelism"], 5);
    site.check_workloads("control-outgrown", &["train"]);

    // What the policy of running Jobs tells the user: stop the Job and change it at once.
    parallelism(2);
    site.wait_until_running("train");
    let stopped = json!({"spec": {"suspend": true, "parallelism": 4}});
    site.objects.patch("Job", "train", &stopped);
    site.wait_for_workload("train", |workload| {
        render::has_status(workload, "PodsReady", "True")
            && workload["status"]["admission"]["podSetAssignments"][0]["count"] == 4
    });
    assert_eq!(site.pods("train").len(), 4);
    site.stop();
}

/// The kubelet of a dead node never confirms the deletion; the preemptor's pods run on another node.
fn pods_on_dead_node(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue(
        "q",
        2,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    let mut lingers = pods_with(&json!({"test.lockkeeper.dev/linger": "1h"}));
    let grace = json!({"terminationGracePeriodSeconds": 1});
    merge(
        &mut lingers,
        &json!({"spec": {"template": {"spec": grace}}}),
    );
    site.job("train", "q", 2, "low", &lingers);
    site.wait_until_running("train");
    site.job("first", "q", 2, "high", &json!({}));
    site.wait_until_running("first");
    site.wait_until_stopped("train");
    let job = site.objects.get("Job", "train");
    assert_eq!(
        job["status"]["terminating"], 1,
        "the pod still exists: {job:#}"
    );
    site.stop();
}

fn maximum_execution_time(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.queue("q", 2, &json!({}));
    let label = json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": "1"}}});
    site.job("train", "q", 2, "", &label);
    site.wait_for_workload("train", |it| it["spec"]["active"] == false);
    site.wait_until_stopped("train");
    site.wait_for_workload("train", |workload| {
        render::has_status(workload, "QuotaReserved", "False")
            && render::message(workload, "QuotaReserved").contains("spec.active is false")
    });
    site.check_workloads("control-too-long", &["train"]);
    let workload = site.workload_name("train");
    let events = site.wait_for_events(&workload, 2);
    snapshot::check("control-too-long-events", &events.join("\n"));
    site.stop();
}

/// A suspended JobSet of one driver and two workers, with two pods each.
pub fn driver_and_workers() -> Value {
    let replicated = |name: &str, replicas: u32| {
        json!({"name": name, "replicas": replicas, "template": {"spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "train",
                    "image": "registry.example.com/train:1",
                    "resources": {"requests": {"cpu": 1}},
                }],
            }},
        }}})
    };
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "default", "labels": {
            "lockkeeper.dev/queue-name": "q",
            "lockkeeper.dev/priority-class": "low",
        }},
        "spec": {
            "suspend": true,
            "replicatedJobs": [replicated("driver", 1), replicated("workers", 2)],
        },
    })
}

/// The change of the status of [`driver_and_workers`] that JobSet's controller would write.
pub fn job_set_status(active: u32, ready: u32) -> Value {
    let jobs = [("driver", 1), ("workers", 2)].map(|(name, replicas)| {
        json!({
            "name": name, "ready": ready * replicas, "active": active * replicas,
            "succeeded": 0, "failed": 0, "suspended": 0,
        })
    });
    json!({"status": {"replicatedJobsStatus": jobs}})
}

/// No controller acts on JobSets here: the test writes the status of its Jobs.
fn jobset(stage: &mut Fixture) {
    stage.register_server(crate::lockkeeper::Protocol::Http1, DEFAULTS);
    stage.cluster_mut().install_jobset();
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.classes();
    spot(
        &site,
        6,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    site.objects.create(&driver_and_workers());
    let before = site.objects.get("JobSet", "train")["spec"].clone();
    let started = site
        .objects
        .wait_until("JobSet", "train", |it| it["spec"]["suspend"] == false);
    for at in 0..2 {
        let spec = &started["spec"]["replicatedJobs"][at]["template"]["spec"]["template"]["spec"];
        assert_eq!(spec["nodeSelector"]["test.lockkeeper.dev/kind"], "spot");
        assert!(spec["tolerations"].to_string().contains("spot"));
    }
    site.objects
        .patch_status("JobSet", "train", &job_set_status(1, 1));
    let name = site.workload_of("JobSet", "train");
    let workload = site.objects.wait_until("Workload", &name, |workload| {
        render::has_status(workload, "PodsReady", "True")
    });
    snapshot::check("control-jobset", &render::render_workload(&workload));

    site.job("first", "q", 6, "high", &json!({}));
    site.objects
        .wait_until("JobSet", "train", |it| it["spec"]["suspend"] == true);
    // Its pods still exist, so it holds its quota.
    let workload = site.objects.get("Workload", &name);
    assert!(
        render::has_status(&workload, "QuotaReserved", "True"),
        "{workload:#}"
    );
    site.objects
        .patch_status("JobSet", "train", &job_set_status(0, 0));
    site.wait_until_running("first");
    let after = site.objects.get("JobSet", "train");
    assert_eq!(after["spec"], before, "the original spec");
    owner_reference_exempts_no_job(&site, &after["metadata"]["uid"]);
    site.stop();
}

/// The webhook suspends a Job that names a JobSet as its owner, as any other Job with a queue: a tenant can write the
/// reference too. JobSet's controller resumes the Jobs of a JobSet that is not suspended.
fn owner_reference_exempts_no_job(site: &ControllerFixture<'_>, uid: &Value) {
    let owner = json!([{
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": uid,
        "controller": true,
    }]);
    let own = json!({"metadata": {"ownerReferences": owner}, "spec": {"suspend": false}});
    site.job("train-driver-0", "q", 1, "", &own);
    let made = site.objects.get("Job", "train-driver-0");
    assert_eq!(made["spec"]["suspend"], true, "{made:#}");
}

/// Runs a dry run with work to do, and checks that no object gets a new version.
fn dry_run(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue(
        "q",
        2,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    site.job("runs", "q", 2, "low", &json!({}));
    site.wait_until_running("runs");
    site.wait_for_counts("ClusterQueue", "q", 0, 1);
    site.stop();

    // One workload to preempt, one to stop, one Job without a workload.
    site.objects.create(&json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"queueName": "q", "priorityClassName": "high", "podSets": [{
            "template": fixture::job("any", "q", 2, "", &json!({}))["spec"]["template"],
        }]},
    }));
    site.job("waits", "q", 1, "mid", &json!({}));
    let versions = || {
        let kinds = [
            "Workload",
            "Job",
            "ClusterQueue",
            "LocalQueue",
            "Event",
            "Lease",
        ];
        let all = kinds.iter().flat_map(|kind| site.objects.list(kind));
        let all = all.map(|item| {
            format!(
                "{} {}",
                item["metadata"]["uid"], item["metadata"]["resourceVersion"]
            )
        });
        let mut all: Vec<String> = all.collect();
        all.sort_unstable();
        all
    };
    // The job controller has updated the new Job.
    site.objects.wait_until("Job", "waits", |job| {
        render::has_status(job, "Suspended", "True")
    });
    let before = versions();
    let controller = {
        let folder = site.stage.new_folder();
        let account = site.stage.controller();
        let flags = [NO_LEADER_ELECTION, "--dry-run", "--log-format", "json"];
        crate::controller::Controller::start(&account, &folder, DEFAULTS, &flags).unwrap()
    };
    // The controller has decided and logs each write.
    let reported = |what: &str| logs_dry_run_write(&controller.log(), what);
    let all = ["evict", "create_workload", "queue_status", "pending_reason"];
    let result = wait::until(
        || Ok(all.iter().all(|it| reported(it)).then_some(())),
        || {
            format!(
                "the dry run does not log the expected writes:\n{}",
                controller.log()
            )
        },
    );
    result.unwrap_or_else(|e| panic!("{e}"));
    controller.stop().unwrap();
    assert_eq!(versions(), before);
}

/// Whether the JSON log of a dry run has this write and its body.
fn logs_dry_run_write(logged: &str, what: &str) -> bool {
    // The last line may be incomplete.
    let (whole, _) = logged.rsplit_once('\n').unwrap_or_default();
    let lines = whole.lines().map(|it| serde_json::from_str(it).unwrap());
    let lines = lines.filter(|it: &Value| it["fields"]["message"] == "would write");
    let of_it = lines.filter(|it| it["fields"]["what"] == what);
    let bodies = of_it.map(|it| it["fields"]["patch"].as_str().unwrap().to_owned());
    let bodies: Vec<Value> = bodies
        .map(|it| serde_json::from_str(&it).unwrap())
        .collect();
    !bodies.is_empty() && bodies.iter().all(Value::is_object)
}
