//! The scenarios of Kueue's integration tests for the shipped kinds (`test/integration/singlecluster/controller/jobs`): what a user
//! does, and what becomes of the job and its Workload. Those about admission checks, topologies, elastic jobs and `MultiKueue` have
//! no counterpart here.

use super::super::fixture::{self, ControllerFixture};
use super::shipped::{Shipped, shipped};
use super::training_run::{apply, remove};
use super::{definitions, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::collection;
use serde_json::{Value, json};

/// The label of the nodes of a flavor.
const INSTANCE: &str = "test.lockkeeper.dev/instance";

pub(super) fn kueue_scenarios(stage: &mut Fixture) {
    let Some(folder) = definitions() else {
        println!(
            "skipped: no definitions of job kinds; LOCKKEEPER_CONFORMANCE_DIR names the folder with jobkinds/"
        );
        return;
    };
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    two_flavors(&site);
    let all = shipped();
    for of in &all {
        let (plural, group) = of.resource.split_once('.').unwrap();
        let definition = folder.join(format!("{group}_{plural}.yaml"));
        site.stage.cluster().kubectl().install_crds(&definition);
        let example = format!(
            "{}/../examples/job-kinds/{plural}.yaml",
            env!("CARGO_MANIFEST_DIR")
        );
        apply(&mut site, &std::fs::read_to_string(example).unwrap());
    }
    for of in &all {
        job_follows_its_queue(&site, of);
        jobs_are_scheduled_as_they_fit(&site, of);
    }
    cluster_of_a_ray_job_runs(&site, &all);
    for of in &all {
        remove(&site, of.kind, of.resource);
    }
    site.stop();
}

/// A queue with 1 CPU of the flavor `spot` and 5 of `on-demand`.
fn two_flavors(site: &ControllerFixture<'_>) {
    site.classes();
    for name in ["spot", "on-demand"] {
        let spec = json!({"nodeLabels": {INSTANCE: name}});
        site.objects.create(&fixture::flavor(name, &spec));
    }
    let quota = |name: &str, cpu: u32| {
        json!({"name": name, "resources": [
            {"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "16Gi"},
        ]})
    };
    let groups = json!([{
        "coveredResources": ["cpu", "memory"], "flavors": [quota("spot", 1), quota("on-demand", 5)],
    }]);
    site.queue("q", 6, &json!({"resourceGroups": groups}));
}

fn create(site: &ControllerFixture<'_>, of: &Shipped, name: &str, labels: &Value, suspend: bool) {
    let path = collection(of.kind);
    let version = path.trim_start_matches("/apis/");
    let version = version.split("/namespaces").next().unwrap();
    let mut object = json!({
        "apiVersion": version, "kind": of.kind,
        "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": of.spec,
    });
    *object.pointer_mut(of.suspend).unwrap() = json!(suspend);
    site.objects.create(&object);
}

fn is_suspended(of: &Shipped, object: &Value) -> bool {
    object.pointer(of.suspend) == Some(&json!(true))
}

#[track_caller]
fn wait_for_start(site: &ControllerFixture<'_>, of: &Shipped, name: &str) -> Value {
    site.objects
        .wait_until(of.kind, name, |it| !is_suspended(of, it))
}

#[track_caller]
fn wait_for_suspension(site: &ControllerFixture<'_>, of: &Shipped, name: &str) {
    site.objects
        .wait_until(of.kind, name, |it| is_suspended(of, it));
    site.objects.patch_status(of.kind, name, &of.stopped);
}

fn queued(queue: &str) -> Value {
    json!({"lockkeeper.dev/queue-name": queue})
}

/// "Should reconcile jobs only when queue is set", "Should reconcile `RayJobs`" and their like.
fn job_follows_its_queue(site: &ControllerFixture<'_>, of: &Shipped) {
    let (kind, objects) = (of.kind, &site.objects);
    create(site, of, "train", &json!({}), false);
    objects.patch_status(kind, "train", &of.running);
    // A job with a queue that is created later has a Workload: until then the first was ignored.
    create(site, of, "probe", &queued("absent"), true);
    let probe = site.workload_of(kind, "probe");
    objects.delete(kind, "probe");
    objects.wait_until_gone("Workload", &probe);
    assert!(!is_suspended(of, &objects.get(kind, "train")), "{kind}");

    objects.patch(
        kind,
        "train",
        &json!({"metadata": {"labels": queued("absent")}}),
    );
    wait_for_suspension(site, of, "train");
    let name = site.workload_of(kind, "train");
    let workload = objects.wait_until("Workload", &name, |it| it["spec"]["queueName"] == "absent");
    assert_eq!(workload["metadata"]["ownerReferences"][0]["kind"], kind);
    let class = json!({"metadata": {"labels": {"lockkeeper.dev/priority-class": "mid"}}});
    objects.patch(kind, "train", &class);
    objects.wait_until("Workload", &name, |it| it["status"]["priority"] == 500);

    objects.patch(kind, "train", &json!({"metadata": {"labels": queued("q")}}));
    expect_flavors(of, &wait_for_start(site, of, "train"));
    assert_eq!(objects.get("Workload", &name)["spec"]["queueName"], "q");
    objects.patch_status(kind, "train", &of.running);

    // A second Workload of the job is deleted.
    let mut second = objects.get("Workload", &name);
    second["metadata"] = json!({
        "name": "second", "namespace": "default",
        "ownerReferences": second["metadata"]["ownerReferences"],
    });
    second.as_object_mut().unwrap().remove("status");
    objects.create(&second);
    objects.wait_until_gone("Workload", "second");

    // With another number of pods it stops, gets its own templates back, and starts again.
    let mut spec = objects.get(kind, "train");
    *spec.pointer_mut(of.replicas).unwrap() = json!(3);
    objects.patch(kind, "train", &json!({"spec": spec["spec"]}));
    wait_for_suspension(site, of, "train");
    objects.wait_until("Workload", &name, |it| {
        it["spec"]["podSets"][1]["count"] == 3
    });
    expect_flavors(of, &wait_for_start(site, of, "train"));
    objects.patch_status(kind, "train", &of.running);

    // A deactivated Workload stops the job, without flavors.
    let active = |is_active: bool| json!({"spec": {"active": is_active}});
    objects.patch("Workload", &name, &active(false));
    wait_for_suspension(site, of, "train");
    let restored = objects.wait_until(kind, "train", |it| {
        of.selectors.iter().all(|path| it.pointer(path).is_none())
    });
    assert_eq!(restored.pointer(of.replicas), Some(&json!(3)), "{kind}");
    objects.delete(kind, "train");
    objects.wait_until_gone("Workload", &name);
}

/// The first pod set takes the flavor `spot`, the second does not fit there.
#[track_caller]
fn expect_flavors(of: &Shipped, started: &Value) {
    for (path, flavor) in of.selectors.iter().zip(["spot", "on-demand"]) {
        let selector = started.pointer(path);
        assert_eq!(
            selector,
            Some(&json!({INSTANCE: flavor})),
            "{} {path}",
            of.kind
        );
    }
}

/// "Should schedule jobs as they fit in their ClusterQueue".
fn jobs_are_scheduled_as_they_fit(site: &ControllerFixture<'_>, of: &Shipped) {
    let (kind, objects) = (of.kind, &site.objects);
    for name in ["first", "second", "third"] {
        create(site, of, name, &queued("q"), true);
        let workload = site.workload_of(kind, name);
        if name == "third" {
            // 6 CPUs are used by two jobs of 3.
            objects.wait_until("Workload", &workload, |it| {
                let reserved = render::condition(it, "QuotaReserved");
                reserved.is_some_and(|it| it["reason"] == "WaitingForQuota")
            });
            assert!(is_suspended(of, &objects.get(kind, name)), "{kind}");
        } else {
            wait_for_start(site, of, name);
            objects.patch_status(kind, name, &of.running);
        }
    }
    objects.delete(kind, "first");
    wait_for_start(site, of, "third");
    for name in ["second", "third"] {
        let workload = site.workload_of(kind, name);
        objects.delete(kind, name);
        objects.wait_until_gone("Workload", &workload);
    }
}

/// `KubeRay` copies the labels of a `RayJob` to its `RayCluster`. Until the status names the cluster it is a job of its own.
fn cluster_of_a_ray_job_runs(site: &ControllerFixture<'_>, all: &[Shipped]) {
    let of_kind = |kind: &str| all.iter().find(|it| it.kind == kind).unwrap();
    let (job, cluster) = (of_kind("RayJob"), of_kind("RayCluster"));
    create(site, job, "train", &queued("q"), true);
    wait_for_start(site, job, "train");
    let uid = site.objects.get(job.kind, "train")["metadata"]["uid"].clone();
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "ray.io/v1", "kind": job.kind, "name": "train", "uid": uid, "controller": true,
    }]}});
    let mut child = json!({
        "apiVersion": "ray.io/v1", "kind": cluster.kind,
        "metadata": {"name": "train-x", "namespace": "default", "labels": queued("q")},
        "spec": cluster.spec,
    });
    child["metadata"]["ownerReferences"] = owner["metadata"]["ownerReferences"].clone();
    *child.pointer_mut(cluster.suspend).unwrap() = json!(false);
    site.objects.create(&child);
    site.objects
        .patch_status(cluster.kind, "train-x", &cluster.running);
    wait_for_suspension(site, cluster, "train-x");
    let workload = site.workload_of(cluster.kind, "train-x");
    let mut running = job.running.clone();
    running["status"]["rayClusterName"] = json!("train-x");
    site.objects.patch_status(job.kind, "train", &running);
    wait_for_start(site, cluster, "train-x");
    site.objects.wait_until_gone("Workload", &workload);
    site.objects.delete(job.kind, "train");
    site.objects.wait_until_gone(cluster.kind, "train-x");
}
