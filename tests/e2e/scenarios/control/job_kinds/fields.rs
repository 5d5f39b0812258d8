//! Fields of a declaration whose effects the other trials do not show.

use super::super::fixture::{ControllerFixture, NO_LEADER_ELECTION};
use super::super::render;
use super::shipped::pod;
use super::training_run::{
    apply, conditions, declaration, definition, install, remove, run, spot_queue,
};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;
use serde_json::{Value, json};

const KIND: &str = "TrainingRun";

pub(super) fn fields_have_effects(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    spot_queue(&site);
    apply(&mut site, &declaration_with_all_fields());
    foreign_manager_is_reported(&site);
    site.objects.create(&run_with("train", &json!({})));
    // spec.suspend: the path and both values.
    site.objects
        .wait_until(KIND, "train", |it| it["spec"]["state"] == "On");
    finished_pods_release_quota(&site);
    only_named_children_need_no_quota(&mut site);
    quota_is_kept_until_pods_are_gone(&mut site);
    fewer_pods_start_and_a_stop_resets(&site);
    remove(&site, KIND, "trainingruns.training.example.com");
    site.stop();
}

fn declaration_with_all_fields() -> String {
    let mut list = declaration("item.replicas");
    merge(
        &mut list["items"][0]["spec"],
        &json!({
            "suspend": {"path": "spec.state", "suspendedValue": "Off", "startedValue": "On"},
            "managedBy": {"path": "spec.manager", "controller": "training.example.com/operator"},
            "podSets": [{
                "forEach": "spec.roles", "template": "template", "countField": "replicas",
                "minimum": "item.?least.orValue(0)",
                "reclaimable": "key == 1 ? self.?status.?done.orValue(0) : 0",
            }],
            "children": [{
                "group": "batch", "kind": "Job", "names": "self.?status.?children.orValue([])",
            }],
            "priorityClass": "self.spec.?priority.orValue('')",
            "resetOnStop": [{"path": "spec.attempt", "value": "none"}],
            "podLabel": {"key": "training.example.com/run", "value": "Uid"},
        }),
    );
    list.to_string()
}

/// A run of 4 CPUs that `spec.state` suspends.
fn run_with(name: &str, spec: &Value) -> Value {
    let mut object = run(name, true);
    merge(
        &mut object["spec"],
        &json!({"suspend": null, "state": "Off"}),
    );
    merge(&mut object["spec"], spec);
    object
}

#[track_caller]
fn foreign_manager_is_reported(site: &ControllerFixture<'_>) {
    let foreign = json!({"manager": "example.com/other"});
    site.objects.create(&run_with("foreign", &foreign));
    let name = site.workload_of(KIND, "foreign");
    let pending = site.objects.wait_until("Workload", &name, |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["status"] == "False" && it["reason"] == "ManagedExternally")
    });
    let message = render::message(&pending, "QuotaReserved");
    let expected = "example.com/other, which may never stop it; create the job without the field that names it";
    assert!(message.ends_with(expected), "{message}");
    // With the manager in the declaration it is an ordinary job.
    let own = json!({"spec": {"manager": "training.example.com/operator"}});
    site.objects.patch(KIND, "foreign", &own);
    site.objects
        .wait_until(KIND, "foreign", |it| it["spec"]["state"] == "On");
    site.objects.delete(KIND, "foreign");
    site.objects.wait_until_gone("Workload", &name);
}

#[track_caller]
fn finished_pods_release_quota(site: &ControllerFixture<'_>) {
    site.job("second", "q", 2, "low", &json!({}));
    site.wait_until_pending("second", "WaitingForQuota");
    let mut status = conditions(&[("Running", "True")]);
    status["status"]["done"] = 2.into();
    site.objects.patch_status(KIND, "train", &status);
    site.wait_until_running("second");
    let name = site.workload_of(KIND, "train");
    let workload = site.objects.get("Workload", &name);
    assert_eq!(
        workload["status"]["reclaimablePods"],
        json!([{"name": "workers", "count": 2}])
    );
}

/// Of two jobs with the same owner, the one that `children` names has no workload.
#[track_caller]
fn only_named_children_need_no_quota(site: &mut ControllerFixture<'_>) {
    let children = json!({"status": {"children": ["part"]}});
    site.objects.patch_status(KIND, "train", &children);
    let uid = site.objects.get(KIND, "train")["metadata"]["uid"].clone();
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "training.example.com/v1", "kind": KIND, "name": "train", "uid": uid,
        "controller": true,
    }]}});
    site.job("part", "q", 1, "low", &owned);
    site.job("unnamed", "q", 1, "low", &owned);
    site.wait_until_pending("unnamed", "WaitingForQuota");
    let part = site.objects.get("Job", "part")["metadata"]["uid"].clone();
    let workloads = site.objects.list("Workload");
    let mut owners = workloads
        .iter()
        .map(|it| &it["metadata"]["ownerReferences"][0]["uid"]);
    assert!(
        owners.all(|it| *it != part),
        "the named child has a workload"
    );
    // The controller has seen it before its parent names it: it is started again, also by a controller that starts later, and
    // needs no quota any more.
    let workload = site.workload_name("unnamed");
    let children = json!({"status": {"children": ["part", "unnamed"]}});
    site.stop();
    site.objects.patch_status(KIND, "train", &children);
    site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
    site.objects
        .wait_until("Job", "unnamed", |it| it["spec"]["suspend"] == false);
    site.objects.wait_until_gone("Workload", &workload);
    for name in ["part", "unnamed"] {
        site.objects.delete("Job", name);
        site.objects.wait_until_gone("Job", name);
    }
}

/// The label finds the pods of a deleted job: its quota is released when they are gone.
#[track_caller]
fn quota_is_kept_until_pods_are_gone(site: &mut ControllerFixture<'_>) {
    let name = site.workload_of(KIND, "train");
    let uid = site.objects.get(KIND, "train")["metadata"]["uid"].clone();
    let mut left = pod("1");
    merge(
        &mut left,
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "left", "namespace": "default", "labels": {"training.example.com/run": uid},
            },
            "spec": {"terminationGracePeriodSeconds": 0},
        }),
    );
    site.objects.create(&left);
    // Without --cascade=orphan the garbage collector may delete the workload before the pod.
    let kubectl = site.stage.cluster().kubectl();
    let resource = "trainingruns.training.example.com";
    kubectl
        .run(&["delete", resource, "train", "--cascade=orphan"])
        .expect_accepted();
    site.objects.wait_until_gone(KIND, "train");
    // When the controller has handled the next events, the workload is still there.
    site.finish("second");
    site.job("probe", "q", 2, "low", &json!({}));
    site.wait_until_running("probe");
    assert!(
        site.objects.find("Workload", &name).is_some(),
        "quota is released while a pod runs"
    );
    site.objects.delete("Pod", "left");
    site.objects.wait_until_gone("Workload", &name);
}

/// A run that may start with fewer pods takes what is free; it has the priority class of its field. A stop restores the number of
/// pods, and resets the field of the attempt.
#[track_caller]
fn fewer_pods_start_and_a_stop_resets(site: &ControllerFixture<'_>) {
    let count = |it: &Value| it["spec"]["roles"][1]["replicas"].clone();
    let mut flexible = run_with("flexible", &json!({"priority": "low", "attempt": "first"}));
    flexible["spec"]["roles"][1]["replicas"] = 5.into();
    flexible["spec"]["roles"][1]["least"] = 1.into();
    let labels = json!({"lockkeeper.dev/priority-class": null});
    merge(&mut flexible["metadata"]["labels"], &labels);
    // The probe has 2 of 4 CPUs.
    site.objects.create(&flexible);
    let started = site
        .objects
        .wait_until(KIND, "flexible", |it| it["spec"]["state"] == "On");
    assert_eq!(count(&started), 1, "{started}");
    let name = site.workload_of(KIND, "flexible");
    let workload = site.objects.get("Workload", &name);
    assert_eq!(workload["spec"]["priorityClassName"], "low");
    assert_eq!(workload["spec"]["podSets"][1]["minCount"], 1);
    site.finish("probe");
    site.job("urgent", "q", 3, "high", &json!({}));
    let stopped = site
        .objects
        .wait_until(KIND, "flexible", |it| it["spec"]["state"] == "Off");
    assert_eq!(stopped["spec"]["attempt"], "none");
    site.wait_until_running("urgent");
    let restored = site
        .objects
        .wait_until(KIND, "flexible", |it| count(it) == 5);
    assert_eq!(restored["spec"]["state"], "Off");
    site.finish("urgent");
}
