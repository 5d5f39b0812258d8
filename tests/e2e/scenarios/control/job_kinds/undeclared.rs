//! Jobs of kinds that need no declaration: their pods, Jobs or JobSets have the queue label. The test creates what the kind's own
//! controller would create, with the labels and the owner that it sets.

use super::super::fixture::{self, ControllerFixture};
use super::super::pods::{is_gated, is_running, pod};
use super::super::render;
use super::definitions;
use super::training_run::apply;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::Protocol;
use crate::objects::merge;
use serde_json::{Value, json};
use std::path::Path;

/// A job of a kind that the controller does not know.
struct Owner {
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    spec: Value,
}

/// The specs are the least that the definitions of the projects accept.
fn owners() -> [Owner; 4] {
    let containers = json!([{"name": "main", "image": "registry.example.com/train:1"}]);
    let job = fixture::job("wrapped", "q", 3, "", &json!({}));
    [
        Owner {
            version: "argoproj.io/v1alpha1",
            kind: "Workflow",
            plural: "workflows",
            spec: json!({"entrypoint": "main", "templates": [{"name": "main", "container": containers[0]}]}),
        },
        Owner {
            version: "batch.volcano.sh/v1alpha1",
            kind: "Job",
            plural: "jobs",
            spec: json!({"minAvailable": 1, "tasks": [
                {"name": "main", "replicas": 1, "template": {"spec": {"containers": containers}}},
            ]}),
        },
        Owner {
            version: "workload.codeflare.dev/v1beta2",
            kind: "AppWrapper",
            plural: "appwrappers",
            spec: json!({"components": [{"template": job}]}),
        },
        Owner {
            version: "trainer.kubeflow.org/v1alpha1",
            kind: "TrainJob",
            plural: "trainjobs",
            spec: json!({"runtimeRef": {"name": "torch"}}),
        },
    ]
}

impl Owner {
    fn path(&self) -> String {
        let (version, plural) = (self.version, self.plural);
        format!("/apis/{version}/namespaces/default/{plural}")
    }

    /// Installs the definition of the project, creates the job, and returns the metadata of what it creates.
    fn create(&self, site: &mut ControllerFixture<'_>, definitions: &Path) -> Value {
        let group = self.version.split('/').next().unwrap();
        let file = definitions.join(format!("{group}_{}.yaml", self.plural));
        site.stage.cluster().kubectl().install_crds(&file);
        let (version, kind) = (self.version, self.kind);
        let manifest = json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": "train", "namespace": "default"}, "spec": self.spec,
        });
        apply(site, &manifest.to_string());
        let uid =
            site.objects.read_at(&format!("{}/train", self.path()))["metadata"]["uid"].clone();
        json!({"metadata": {"ownerReferences": [{
            "apiVersion": version, "kind": kind, "name": "train", "uid": uid, "controller": true,
        }]}})
    }
}

/// Each waits while a Job of the same queue has its quota, and starts when that one has ended.
pub(super) fn undeclared_kinds_queue(stage: &mut Fixture) {
    let Some(folder) = definitions() else {
        println!(
            "skipped: no definitions of job kinds; LOCKKEEPER_CONFORMANCE_DIR names the folder with jobkinds/"
        );
        return;
    };
    stage.register_server(Protocol::Http1, DEFAULTS);
    stage.cluster_mut().install_jobset();
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue("q", 4, &json!({}));
    let [workflow, volcano, wrapper, train_job] = owners();
    for (owner, labels) in [
        (
            &workflow,
            json!({"workflows.argoproj.io/workflow": "train"}),
        ),
        (
            &volcano,
            json!({"volcano.sh/job-name": "train", "volcano.sh/task-spec": "main"}),
        ),
    ] {
        let mut more = owner.create(&mut site, &folder);
        merge(&mut more, &json!({"metadata": {"labels": labels}}));
        let pod = pod("train-main-0", 3, "", &more);
        waits_and_starts(&mut site, &pod, is_gated, is_running);
    }
    let is_suspended = |it: &Value| it["spec"]["suspend"] == true;
    let is_started = |it: &Value| it["spec"]["suspend"] == false;
    let more = wrapper.create(&mut site, &folder);
    let mut job = fixture::job("wrapped", "q", 3, "", &more);
    // AppWrapper's controller resumes what it has created.
    job["spec"]["suspend"] = json!(false);
    waits_and_starts(&mut site, &job, is_suspended, is_started);
    let more = train_job.create(&mut site, &folder);
    waits_and_starts(&mut site, &job_set(&more), is_suspended, is_started);
    for owner in [workflow, volcano, wrapper, train_job] {
        let kubectl = site.stage.cluster().kubectl();
        let group = owner.version.split('/').next().unwrap();
        kubectl.run(&["delete", &format!("{}.{group}", owner.plural), "train"]);
    }
    site.stop();
}

/// The JobSet of a runtime whose template has the queue label.
fn job_set(more: &Value) -> Value {
    let template = fixture::job("any", "q", 3, "", &json!({}))["spec"]["template"].clone();
    let job = json!({"name": "node", "replicas": 1, "template": {"spec": {
        "parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template,
    }}});
    let mut job_set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "default", "labels": {"lockkeeper.dev/queue-name": "q"}},
        "spec": {"replicatedJobs": [job]},
    });
    merge(&mut job_set, more);
    job_set
}

#[track_caller]
fn waits_and_starts(
    site: &mut ControllerFixture<'_>,
    object: &Value,
    waits: impl Fn(&Value) -> bool,
    is_started: impl Fn(&Value) -> bool,
) {
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    site.job("first", "q", 4, "", &json!({}));
    site.wait_until_running("first");
    site.objects.create(object);
    let workload = site.workload_of(kind, name);
    site.objects.wait_until("Workload", &workload, |it| {
        let condition = render::condition(it, "QuotaReserved");
        condition.is_some_and(|it| it["status"] == "False" && it["reason"] == "WaitingForQuota")
    });
    assert!(waits(&site.objects.get(kind, name)), "{kind} {name}");
    site.finish("first");
    site.objects.delete("Job", "first");
    site.objects.wait_until(kind, name, is_started);
    site.objects.delete(kind, name);
    site.objects.wait_until_gone("Workload", &workload);
}
