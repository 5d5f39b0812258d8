//! The fixture of controller trials: an empty cluster with nodes, and one controller.

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

/// A controller without leader election: only one runs at a time.
pub const NO_LEADER_ELECTION: &str = "--no-leader-election";

/// Number of lines of the controller's log that a failed trial prints.
const TAIL_LINES: usize = 60;

/// Dropping it kills the controller. The next trial removes the objects.
pub struct ControllerFixture<'a> {
    // Dropped first, so that the controller stops before objects are removed.
    pub controller: Option<Controller>,
    pub objects: Objects,
    pub stage: &'a mut Fixture,
}

impl<'a> ControllerFixture<'a> {
    /// A cluster with the webhook and a controller with this configuration.
    #[track_caller]
    pub fn open(stage: &'a mut Fixture, config: &str) -> Self {
        stage.register_server(Protocol::Http1, DEFAULTS);
        let mut site = Self::without_controller(stage);
        site.start_controller(config, &[NO_LEADER_ELECTION]);
        site
    }

    /// Like `open`, without the webhook: invalid objects are stored as they are.
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

    /// Creates nodes with enough capacity for every pod: some without taints, and one with a taint.
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

    /// Starts a controller and keeps it in place of the current one.
    #[track_caller]
    pub fn start_controller(&mut self, config: &str, flags: &[&str]) {
        self.controller = Some(self.start_another_controller(config, flags));
    }

    /// Like `start_controller`, through a proxy to the API server.
    #[track_caller]
    pub fn start_controller_through(&mut self, proxy: &Proxy, config: &str) {
        self.controller = Some(self.start_another_through(proxy, config, &[NO_LEADER_ELECTION]));
    }

    /// Starts another controller, through a proxy to the API server.
    #[track_caller]
    pub fn start_another_through(
        &mut self,
        proxy: &Proxy,
        config: &str,
        flags: &[&str],
    ) -> Controller {
        let folder = self.stage.new_folder();
        let account = proxy.kubeconfig(&folder).unwrap();
        start(&account, &folder, config, flags)
    }

    /// Starts a proxy with the controller's token.
    #[track_caller]
    pub fn proxy(&mut self) -> Proxy {
        self.stage.controller();
        Proxy::start(self.stage.cluster().controller_server()).unwrap()
    }

    /// Starts another controller.
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

    /// Stops the controller, which must exit successfully and must not have logged a rejected write.
    #[track_caller]
    pub fn stop(&mut self) {
        let log = self.stop_and_read_log();
        let rejected = log.lines().find(|line| line.contains("write rejected"));
        assert_eq!(rejected, None, "a write was rejected");
    }

    /// Stops the controller, which must exit successfully, and returns its log.
    #[track_caller]
    pub fn stop_and_read_log(&mut self) -> String {
        let controller = self.controller.take().expect("there is a controller");
        let log = controller.log();
        controller.stop().unwrap_or_else(|e| panic!("{e}"));
        log
    }

    /// Watches every version of the objects of a kind from now on.
    #[track_caller]
    pub fn watch(&mut self, kind: &str) -> Watch {
        let (_, version) = self.objects.listing(kind);
        let server = self.stage.cluster().watch_server();
        Watch::start(server, collection(kind), version)
    }

    /// Creates a flavor for all nodes without taints.
    #[track_caller]
    pub fn flavor(&self, name: &str) {
        self.objects.create(&flavor(name, &json!({})));
    }

    /// Creates the classes `low` (100), `mid` (500) and `high` (1000).
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

    /// Creates a ClusterQueue with quota of the flavor `default`, and a LocalQueue of the same name for it.
    #[track_caller]
    pub fn queue(&self, name: &str, cpu: u32, more: &Value) {
        self.objects.create(&cluster_queue(name, cpu, more));
        self.objects.create(&local_queue(name, name));
    }

    /// Creates a Job of one pod, which runs until `finish`; `more` is merged into it.
    #[track_caller]
    pub fn job(&self, name: &str, queue: &str, cpu: u32, class: &str, more: &Value) {
        self.objects.create(&job(name, queue, cpu, class, more));
    }

    /// Waits until `holds` of the workload of a Job, and returns the workload.
    #[track_caller]
    pub fn wait_for_workload(&self, job: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let name = self.workload_name(job);
        self.objects.wait_until("Workload", &name, holds)
    }

    /// Waits until a Job has a workload, and returns its name.
    #[track_caller]
    pub fn workload_name(&self, job: &str) -> String {
        self.workload_of("Job", job)
    }

    /// Waits until a job of any kind has a workload, and returns its name.
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
            || format!("{job} has no workload"),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
        name
    }

    /// Waits until a Job runs with all pods ready and its workload reports it, and returns the workload.
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

    /// Waits until a Job is stopped: suspended, without pods and without a start time, and its workload has released
    /// its quota.
    #[track_caller]
    pub fn wait_until_stopped(&self, job: &str) -> Value {
        let workload = self.wait_for_workload(job, |workload| {
            render::has_status(workload, "QuotaReserved", "False")
                && workload["status"]["admission"].is_null()
        });
        let object = self.objects.get("Job", job);
        assert_eq!(object["spec"]["suspend"], true, "{object:#}");
        assert!(object["status"]["startTime"].is_null(), "{object:#}");
        assert_eq!(self.pods(job).len(), 0, "{object:#}");
        workload
    }

    /// Waits until a Job has no pods. A Job that is suspended during its start may still get pods for a moment.
    #[track_caller]
    pub fn wait_until_no_pods(&self, job: &str) {
        let found = crate::wait::until(
            || Ok(self.pods(job).is_empty().then_some(())),
            || format!("{job} keeps its pods: {:#?}", self.pods(job)),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits for the next second, so that new objects are younger than the workload of a Job: timestamps have whole
    /// seconds.
    #[track_caller]
    pub fn wait_until_next_second(&self, job: &str) {
        let workload = self.wait_for_workload(job, Value::is_object);
        let then = render::second(&workload["metadata"]["creationTimestamp"]);
        let now = || Timestamp::now().as_second();
        let found = crate::wait::until(
            || Ok((now() > then).then_some(())),
            || "the clock does not advance".to_owned(),
        );
        found.unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits until the workload of a Job is pending for this reason, and returns it.
    #[track_caller]
    pub fn wait_until_pending(&self, job: &str, reason: &str) -> Value {
        self.wait_for_workload(job, |workload| {
            let condition = render::condition(workload, "QuotaReserved");
            condition.is_some_and(|it| it["status"] == "False" && it["reason"] == reason)
        })
    }

    /// The pods of a Job that are not being deleted.
    #[track_caller]
    pub fn pods(&self, job: &str) -> Vec<Value> {
        let mut pods = self.objects.list("Pod");
        pods.retain(|pod| {
            pod["metadata"]["labels"]["job-name"] == job
                && pod["metadata"]["deletionTimestamp"].is_null()
        });
        pods
    }

    /// Ends the pods of a Job successfully, and waits until the Job is complete.
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

    /// Waits until the status of a queue has these counts, and returns the object.
    #[track_caller]
    pub fn wait_for_counts(&self, kind: &str, name: &str, pending: u32, admitted: u32) -> Value {
        self.objects.wait_until(kind, name, |object| {
            let status = &object["status"];
            status["pendingWorkloads"] == pending && status["admittedWorkloads"] == admitted
        })
    }

    /// Compares the status of the workloads of these Jobs with a snapshot.
    #[track_caller]
    pub fn check_workloads(&self, snapshot: &str, jobs: &[&str]) {
        let all = jobs.iter().map(|job| {
            let name = self.workload_name(job);
            render::render_workload(&self.objects.get("Workload", &name))
        });
        snapshot::check(snapshot, &all.collect::<String>());
    }

    /// Waits for this many events about an object, and returns their notes.
    #[track_caller]
    pub fn wait_for_events(&self, about: &str, count: usize) -> Vec<String> {
        let mut last = Vec::new();
        let found = crate::wait::until(
            || {
                let mut events = self.objects.list("Event");
                events.retain(|event| {
                    let is_about = |of: &Value| of["name"] == about;
                    (is_about(&event["regarding"]) || is_about(&event["related"]))
                        && event["reportingController"] == "lockkeeper.dev/controller"
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

/// A suspended Job of one pod; `more` is merged into it. With an empty class the Job has none.
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

/// A pending Workload of one pod, without a Job.
pub fn workload(name: &str, queue: &str, cpu: u32) -> Value {
    let template = job("any", queue, cpu, "", &json!({}))["spec"]["template"].clone();
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queueName": queue, "podSets": [{"template": template}]},
    })
}

/// A change that sets annotations in the pod template of a Job.
pub fn pods_with(annotations: &Value) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})
}
