//! What a trial of the controller stands on: an empty cluster with nodes, and one controller.

use std::path::Path;
use std::thread;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::render;
use crate::controller::Controller;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::Protocol;
use crate::nodes::Nodes;
use crate::objects::{Objects, collection, merge};
use crate::proxy::Proxy;
use crate::snapshot;
use crate::watcher::Watch;

/// A controller that need not wait for a Lease: there is one at a time.
pub const NO_LEADER_ELECTION: &str = "--no-leader-election";

/// How much of the controller's log is shown when a trial fails.
const TAIL_LINES: usize = 60;

/// Dropping it kills the controller. What is on the cluster is for the next trial to sweep.
pub struct ControllerFixture<'a> {
    // It ends before anything else may be swept.
    pub controller: Option<Controller>,
    pub objects: Objects,
    pub stage: &'a mut Fixture,
}

impl<'a> ControllerFixture<'a> {
    /// A cluster where the webhook reviews what is written and a controller with this configuration
    /// decides.
    #[track_caller]
    pub fn open(stage: &'a mut Fixture, config: &str) -> Self {
        stage.register_server(Protocol::Http1, DEFAULTS);
        let mut site = Self::without_controller(stage);
        site.start_controller(config, &[NO_LEADER_ELECTION]);
        site
    }

    /// The same, and nothing is reviewed: what is written by hand stays as it is.
    #[track_caller]
    pub fn open_without_webhook(stage: &'a mut Fixture, config: &str) -> Self {
        stage.without_webhook();
        let mut site = Self::without_controller(stage);
        site.start_controller(config, &[NO_LEADER_ELECTION]);
        site
    }

    /// A cluster with workers and nodes, without a controller and without objects of earlier trials.
    #[track_caller]
    pub fn without_controller(stage: &'a mut Fixture) -> Self {
        let started = stage.cluster_mut().start_workers();
        started.unwrap_or_else(|e| panic!("no workers: {e}"));
        let objects = Objects::new(stage.cluster().client());
        objects.sweep(stage.cluster().has_jobset());
        let mut site = Self {
            controller: None,
            objects,
            stage,
        };
        site.provide_nodes();
        site
    }

    /// Nodes that are never what a pod waits for: some for all, and one that takes only those who
    /// tolerate it.
    #[track_caller]
    fn provide_nodes(&mut self) {
        let there = self.objects.list("Node");
        let is_ours = |it: &Value| it["metadata"]["labels"]["test.lockkeeper.dev/kind"].is_string();
        if there.len() == 4 && there.iter().all(is_ours) {
            return;
        }
        for node in there {
            self.objects
                .delete("Node", node["metadata"]["name"].as_str().unwrap());
        }
        let cluster = self.stage.cluster();
        let capacity = &[("cpu", "4000"), ("memory", "64Ti"), ("pods", "4000")];
        cluster.add_nodes(&Nodes {
            name: "plain",
            count: 3,
            labels: &[("test.lockkeeper.dev/kind", "plain")],
            capacity,
        });
        cluster.add_nodes(&Nodes {
            name: "spot",
            count: 1,
            labels: &[("test.lockkeeper.dev/kind", "spot")],
            capacity,
        });
        let taints = json!([{"key": "spot", "value": "yes", "effect": "NoSchedule"}]);
        self.objects
            .patch("Node", "spot-0", &json!({"spec": {"taints": taints}}));
    }

    /// Starts a controller, beside the one that may be there, in whose place it is kept.
    #[track_caller]
    pub fn start_controller(&mut self, config: &str, flags: &[&str]) {
        self.controller = Some(self.start_another_controller(config, flags));
    }

    /// The same, and all that it asks and is told goes through a proxy.
    #[track_caller]
    pub fn start_controller_through(&mut self, proxy: &Proxy, config: &str) {
        let folder = self.stage.new_folder();
        let account = proxy.kubeconfig(&folder).unwrap();
        self.controller = Some(start(&account, &folder, config, &[NO_LEADER_ELECTION]));
    }

    /// A proxy with the rights of the controller.
    #[track_caller]
    pub fn proxy(&mut self) -> Proxy {
        self.stage.controller();
        Proxy::start(self.stage.cluster().controller_server()).unwrap()
    }

    /// Another controller.
    #[track_caller]
    pub fn start_another_controller(&mut self, config: &str, flags: &[&str]) -> Controller {
        let folder = self.stage.new_folder();
        let account = self.stage.controller();
        start(&account, &folder, config, flags)
    }

    /// The controller.
    #[track_caller]
    pub fn controller(&mut self) -> &mut Controller {
        self.controller.as_mut().expect("there is a controller")
    }

    /// Stops the controller, which has to end well, and to have written nothing that was refused.
    #[track_caller]
    pub fn stop(&mut self) {
        let log = self.stop_and_read_log();
        let rejected = log.lines().find(|line| line.contains("write rejected"));
        assert_eq!(rejected, None, "a write was rejected");
    }

    /// Stops the controller, which has to end well, and gives its log.
    #[track_caller]
    pub fn stop_and_read_log(&mut self) -> String {
        let controller = self.controller.take().expect("there is a controller");
        let log = controller.log();
        controller.stop().unwrap_or_else(|e| panic!("{e}"));
        log
    }

    /// Every version of the objects of a kind from now on.
    #[track_caller]
    pub fn watch(&mut self, kind: &str) -> Watch {
        let (_, version) = self.objects.listing(kind);
        let server = self.stage.cluster().watch_server();
        Watch::start(server, collection(kind), version)
    }

    /// A flavor for all nodes that are like others.
    #[track_caller]
    pub fn flavor(&self, name: &str) {
        self.objects.create(&flavor(name, &json!({})));
    }

    /// Classes `low` (100), `mid` (500) and `high` (1000).
    #[track_caller]
    pub fn classes(&self) {
        for (name, value) in [("low", 100), ("mid", 500), ("high", 1000)] {
            self.class(name, value);
        }
    }

    #[track_caller]
    pub fn class(&self, name: &str, value: i32) {
        self.objects.create(&json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }));
    }

    /// A ClusterQueue with quota of the flavor `default`, and a LocalQueue of its name that leads to it.
    #[track_caller]
    pub fn queue(&self, name: &str, cpu: u32, more: &Value) {
        self.objects.create(&cluster_queue(name, cpu, more));
        self.objects.create(&local_queue(name, name));
    }

    /// Makes a Job of one pod, which runs until it is told to end; `more` is merged into it.
    #[track_caller]
    pub fn job(&self, name: &str, queue: &str, cpu: u32, class: &str, more: &Value) {
        self.objects.create(&job(name, queue, cpu, class, more));
    }

    /// The workload of a Job, once `holds` of it.
    #[track_caller]
    pub fn wait_for_workload(&self, job: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let name = self.workload_name(job);
        self.objects.wait_until("Workload", &name, holds)
    }

    /// The name of the workload of a Job, once there is one.
    #[track_caller]
    pub fn workload_name(&self, job: &str) -> String {
        self.workload_of("Job", job)
    }

    /// The name of the workload of a job of any kind, once there is one.
    #[track_caller]
    pub fn workload_of(&self, kind: &str, job: &str) -> String {
        let mut name = String::new();
        let found = crate::wait::until(
            || {
                let owner = self.objects.get(kind, job)["metadata"]["uid"].clone();
                let all = self.objects.list("Workload");
                let mut all = all.iter();
                let mine = all.find(|it| it["metadata"]["ownerReferences"][0]["uid"] == owner);
                let mine = mine.and_then(|it| it["metadata"]["name"].as_str());
                Ok(mine.map(|it| it.clone_into(&mut name)))
            },
            || format!("{job} gets no workload"),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
        name
    }

    /// Waits until a Job runs with all its pods ready, and gives its workload, which says so.
    #[track_caller]
    pub fn wait_until_running(&self, job: &str) -> Value {
        let workload =
            self.wait_for_workload(job, |it| render::has_status(it, "PodsReady", "True"));
        assert!(
            render::has_status(&workload, "Admitted", "True"),
            "{workload:#}"
        );
        workload
    }

    /// Waits until a Job is stopped: suspended, without pods and without a start time, and its workload
    /// has given its quota back.
    #[track_caller]
    pub fn wait_until_stopped(&self, job: &str) -> Value {
        let workload = self.wait_for_workload(job, |it| {
            render::has_status(it, "QuotaReserved", "False") && it["status"]["admission"].is_null()
        });
        let object = self.objects.get("Job", job);
        assert_eq!(object["spec"]["suspend"], true, "{object:#}");
        assert!(object["status"]["startTime"].is_null(), "{object:#}");
        assert_eq!(self.pods(job).len(), 0, "{object:#}");
        workload
    }

    /// Waits until a Job has no pods. One that is suspended as it starts has none at first, and then some that go.
    #[track_caller]
    pub fn wait_until_no_pods(&self, job: &str) {
        let found = crate::wait::until(
            || Ok(self.pods(job).is_empty().then_some(())),
            || format!("{job} keeps its pods: {:#?}", self.pods(job)),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits until what is made is younger than the workload of a Job: times have whole seconds.
    #[track_caller]
    pub fn wait_until_next_second(&self, job: &str) {
        let workload = self.wait_for_workload(job, Value::is_object);
        let then = render::second(&workload["metadata"]["creationTimestamp"]);
        let now = || Timestamp::now().as_second();
        let found = crate::wait::until(
            || Ok((now() > then).then_some(())),
            || "time stands still".to_owned(),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits until the workload of a Job waits for this reason, and gives it.
    #[track_caller]
    pub fn wait_until_pending(&self, job: &str, reason: &str) -> Value {
        self.wait_for_workload(job, |it| {
            let condition = render::condition(it, "QuotaReserved");
            condition.is_some_and(|it| it["status"] == "False" && it["reason"] == reason)
        })
    }

    /// The pods of a Job that are not being deleted.
    #[track_caller]
    pub fn pods(&self, job: &str) -> Vec<Value> {
        let mut pods = self.objects.list("Pod");
        pods.retain(|it| {
            it["metadata"]["labels"]["job-name"] == job
                && it["metadata"]["deletionTimestamp"].is_null()
        });
        pods
    }

    /// Has the pods of a Job end well, and waits until the Job has.
    #[track_caller]
    pub fn finish(&self, job: &str) {
        self.annotate_pods(job, &json!({"test.lockkeeper.dev/run-for": "0s"}));
        self.objects
            .wait_until("Job", job, |it| render::has_status(it, "Complete", "True"));
    }

    /// Sets annotations on the pods of a Job, or removes them.
    #[track_caller]
    pub fn annotate_pods(&self, job: &str, annotations: &Value) {
        for pod in self.pods(job) {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let change = json!({"metadata": {"annotations": annotations}});
            self.objects.patch("Pod", name, &change);
        }
    }

    /// Waits until a queue's status has these counts, and gives the object.
    #[track_caller]
    pub fn wait_for_counts(&self, kind: &str, name: &str, pending: u32, admitted: u32) -> Value {
        self.objects.wait_until(kind, name, |it| {
            let status = &it["status"];
            status["pendingWorkloads"] == pending && status["admittedWorkloads"] == admitted
        })
    }

    /// Compares what the workloads of these Jobs say with a snapshot.
    #[track_caller]
    pub fn check_workloads(&self, snapshot: &str, jobs: &[&str]) {
        let all = jobs.iter().map(|job| {
            let name = self.workload_name(job);
            render::render_workload(&self.objects.get("Workload", &name))
        });
        snapshot::check(snapshot, &all.collect::<String>());
    }

    /// The notes of the events about an object, once there are as many.
    #[track_caller]
    pub fn wait_for_events(&self, about: &str, count: usize) -> Vec<String> {
        let mut last = Vec::new();
        let found = crate::wait::until(
            || {
                let mut events = self.objects.list("Event");
                events.retain(|it| {
                    it["regarding"]["name"] == about
                        && it["reportingController"] == "lockkeeper.dev/controller"
                });
                last = events.iter().map(render::render_event).collect();
                Ok((last.len() >= count).then_some(()))
            },
            || format!("there are not {count} events about {about}"),
        );
        found.unwrap_or_else(|e| panic!("{e}: {last:#?}"));
        last.sort_unstable();
        last
    }
}

impl Drop for ControllerFixture<'_> {
    fn drop(&mut self) {
        if let Some(controller) = &self.controller
            && thread::panicking()
        {
            let log = controller.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.len().saturating_sub(TAIL_LINES);
            eprintln!(
                "the end of the controller's log:\n{}",
                lines[tail..].join("\n")
            );
        }
    }
}

#[track_caller]
fn start(account: &Path, folder: &Path, config: &str, flags: &[&str]) -> Controller {
    let started = Controller::start(account, folder, config, flags);
    started.unwrap_or_else(|e| panic!("{e}"))
}

pub fn flavor(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// A ClusterQueue with quota of the flavor `default`; `more` is merged into its `spec`.
pub fn cluster_queue(name: &str, cpu: u32, more: &Value) -> Value {
    let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["cpu"],
        "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
    }]});
    merge(&mut spec, more);
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec,
    })
}

pub fn local_queue(name: &str, cluster_queue: &str) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": cluster_queue},
    })
}

/// A suspended Job of one pod; `more` is merged into it. An empty class is none.
pub fn job(name: &str, queue: &str, cpu: u32, class: &str, more: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"lockkeeper.dev/queue-name": queue},
        },
        "spec": {
            "suspend": true,
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "template": {"spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "train",
                    "image": "registry.example.com/train:1",
                    "resources": {"requests": {"cpu": cpu}},
                }],
            }},
        },
    });
    if !class.is_empty() {
        job["metadata"]["labels"]["lockkeeper.dev/priority-class"] = class.into();
    }
    merge(&mut job, more);
    job
}

/// Makes `change` to how long the pods of a Job run, and the like, from their beginning.
pub fn pods_with(annotations: &Value) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})
}
