//! The rights of `examples/install/controller.yaml`: enough for the controller, and no more.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use super::Scenario;
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::manifests::{self, CLUSTER_OBJECTS};
use crate::nodes::Nodes;
use crate::process::{self, Process};
use crate::wait;

/// Rights that the trial below does not always use: the job controller may remove a start
/// time first, and only a Job or pod that has left the watch is read.
const GRANTED_ROLE: [&str; 9] = [
    "get jobs.batch -n team",
    "get jobsets.jobset.x-k8s.io -n team",
    "get pods -n team",
    "patch jobs.batch --subresource=status -n team",
    "delete workloads.lockkeeper.dev -n team",
    "patch workloads.lockkeeper.dev -n team",
    "update jobs.batch --subresource=finalizers -n team",
    "update jobsets.jobset.x-k8s.io --subresource=finalizers -n team",
    "update pods --subresource=finalizers -n team",
];

/// Rights that the controller's account must not have.
const WITHHELD_RIGHTS: [&str; 12] = [
    "create pods -n team",
    "get secrets -n lockkeeper-system",
    "create jobs.batch -n team",
    "delete jobs.batch -n team",
    "delete events.events.k8s.io -n team",
    "create clusterqueues.lockkeeper.dev",
    "patch cohorts.lockkeeper.dev",
    "patch localqueues.lockkeeper.dev -n team",
    "create leases.coordination.k8s.io -n lockkeeper-system",
    "get leases.coordination.k8s.io/other -n lockkeeper-system",
    "get leases.coordination.k8s.io/lockkeeper-controller -n team",
    "patch priorityclasses.scheduling.k8s.io",
];

pub fn scenarios() -> Vec<Scenario> {
    // Workers are started once, with the last protocol of a run.
    let once = |name: &'static str, run: fn(&mut Fixture, Protocol)| {
        Scenario::new(name, run).only(Protocol::Http1)
    };
    vec![
        once(
            "the controller has the rights it needs",
            rights_are_sufficient,
        ),
        once("the controller has no other rights", no_other_rights),
    ]
}

/// A running `lockkeeper controller` with the account of the installation.
pub struct ControllerProcess {
    process: Process,
    log: std::path::PathBuf,
}

impl ControllerProcess {
    #[track_caller]
    pub fn start(kubeconfig: &Path, folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let (log, stdout) = (folder.join("stderr"), folder.join("stdout"));
        let mut command = lockkeeper::binary();
        command.args(["controller", "--log-format", "json"]);
        command.args(["--control-listen", "127.0.0.1:0", "--kubeconfig"]);
        command.arg(kubeconfig);
        let out = Some(process::create(&stdout).unwrap());
        let process = Process::start("lockkeeper controller", command, &log, out);
        let mut process = process.unwrap_or_else(|e| panic!("{e}"));
        let ready = process.wait_ready(|| is_ready(&stdout).then_some(()));
        ready.unwrap_or_else(|e| panic!("{e}"));
        Self { process, log }
    }

    /// Stops the controller, and returns its log.
    #[track_caller]
    pub fn stop(self) -> String {
        let status = self.process.terminate().unwrap_or_else(|e| panic!("{e}"));
        let log = fs::read_to_string(&self.log).unwrap();
        assert!(status.success(), "{status}:\n{log}");
        log
    }
}

/// Whether the controller with this standard output has observed all objects.
fn is_ready(stdout: &Path) -> bool {
    let read_status = || {
        let text = fs::read_to_string(stdout).ok()?;
        let (_, rest) = text.split_once("on http://")?;
        let (address, _) = rest.split_once('\n')?;
        let mut stream = TcpStream::connect(address).ok()?;
        let head = "GET /readyz HTTP/1.1\r\nHost: controller\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.starts_with("HTTP/1.1 200"))
    };
    read_status().unwrap_or_default()
}

/// The controller logs forbidden requests.
fn rights_are_sufficient(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server_and_workers(protocol, DEFAULTS);
    stage.cluster().add_nodes(&Nodes::default());
    stage.cluster_mut().install_jobset();
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_with_preview();
    let folder = stage.new_folder();
    let controller = ControllerProcess::start(stage.cluster().controller(), &folder);
    wait_until(&kubectl, LEASE, "it is held", |lease| {
        lease["spec"]["holderIdentity"].is_string()
    });

    pod(&kubectl);
    job(&kubectl);
    job_set(&kubectl);
    assert_events_recorded(&kubectl);
    preempt_on_node(&kubectl);
    run(&kubectl, "delete jobset set -n team");
    run(
        &kubectl,
        "delete --timeout=90s clusterqueues.lockkeeper.dev research",
    );
    run(
        &kubectl,
        "delete --timeout=90s resourceflavors.lockkeeper.dev default",
    );

    let log = controller.stop();
    assert!(!log.contains("forbidden"), "{log}");
    wait_until(&kubectl, LEASE, "it is given back", |lease| {
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.is_none_or(str::is_empty)
    });
}

/// The pod starts, and is deleted when its Workload is deactivated.
#[track_caller]
pub fn pod(kubectl: &Kubectl) {
    kubectl.apply(POD, &[]).expect_accepted_with_preview();
    wait_until(kubectl, "pod serve -n team", "it runs", |pod| {
        pod["status"]["phase"] == "Running"
    });
    let workloads = kubectl.get(&["workloads.lockkeeper.dev", "-n", "team"]);
    let name = workloads["items"][0]["metadata"]["name"].as_str().unwrap();
    let workload = format!("workloads.lockkeeper.dev {name} -n team");
    patch(kubectl, &workload, r#"{"spec":{"active":false}}"#);
    run(kubectl, "wait --for=delete --timeout=90s pod/serve -n team");
    let gone = format!("wait --for=delete --timeout=90s workloads.lockkeeper.dev/{name} -n team");
    run(kubectl, &gone);
}

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: serve, namespace: team, labels: {lockkeeper.dev/queue-name: main}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: serve, image: 'registry.example.com/serve:1', resources: {requests: {cpu: 1}}}]
";

/// The Job starts, is stopped, starts again and ends.
#[track_caller]
pub fn job(kubectl: &Kubectl) {
    let job = "job train -n team";
    let mut manifest = manifests::job("train", Some("main"), None);
    manifest.push_str("          resources: {requests: {cpu: 1}}\n");
    kubectl.apply(&manifest, &[]).expect_accepted_with_preview();
    wait_until(kubectl, job, "it runs", |job| job["status"]["ready"] == 1);
    // Kubernetes has a kind with the same name.
    let workloads = kubectl.get(&["workloads.lockkeeper.dev", "-n", "team"]);
    let name = workloads["items"][0]["metadata"]["name"].as_str().unwrap();
    let workload = format!("workloads.lockkeeper.dev {name} -n team");

    patch(kubectl, &workload, r#"{"spec":{"active":false}}"#);
    wait_until(kubectl, job, "it is stopped", |job| {
        job["spec"]["suspend"] == true && job["status"]["startTime"].is_null()
    });
    patch(kubectl, &workload, r#"{"spec":{"active":true}}"#);
    wait_until(kubectl, job, "it runs again", |job| {
        job["status"]["ready"] == 1
    });
    run(
        kubectl,
        "annotate pods -n team --all test.lockkeeper.dev/run-for=0s",
    );
    wait_until(kubectl, &workload, "it has finished", |workload| {
        is(workload, "Finished")
    });
}

/// The webhook suspends the Job, and the controller starts it.
#[track_caller]
pub fn job_set(kubectl: &Kubectl) {
    let create = ["create", "-o", "json", "-f", "-"];
    let created = kubectl.with_input(&create, JOB_SET).expect_accepted();
    let created: Value = serde_json::from_str(&created.stdout).unwrap();
    assert_eq!(created["spec"]["suspend"], true, "{created:#}");
    wait_until(kubectl, "jobset set -n team", "it is started", |set| {
        set["spec"]["suspend"] == false
    });
}

/// A pod of a queue that places workloads on nodes preempts a pod without a queue.
#[track_caller]
pub fn preempt_on_node(kubectl: &Kubectl) {
    kubectl
        .apply(FILLING_POD, &[])
        .expect_accepted_with_preview();
    wait_until(kubectl, "pod filling -n dev", "it runs", |pod| {
        pod["status"]["phase"] == "Running"
    });
    kubectl
        .apply(PLACED_POD, &[])
        .expect_accepted_with_preview();
    run(
        kubectl,
        "wait --for=delete --timeout=90s pod/filling -n dev",
    );
    wait_until(kubectl, "pod placed -n team", "it runs", |pod| {
        pod["status"]["phase"] == "Running"
    });
}

const FILLING_POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: filling, namespace: dev}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: node-0}
  containers: [{name: serve, image: 'registry.example.com/serve:1', resources: {requests: {cpu: 12}}}]
";

const PLACED_POD: &str = r"
apiVersion: lockkeeper.dev/v1alpha1
kind: ClusterQueue
metadata: {name: nodes}
spec: {namespaceSelector: {}, placement: {policy: Nodes}}
---
apiVersion: lockkeeper.dev/v1alpha1
kind: LocalQueue
metadata: {name: nodes, namespace: team}
spec: {clusterQueue: nodes}
---
apiVersion: v1
kind: Pod
metadata:
  name: placed
  namespace: team
  labels: {lockkeeper.dev/queue-name: nodes}
spec:
  priorityClassName: high
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: node-0}
  containers: [{name: serve, image: 'registry.example.com/serve:1', resources: {requests: {cpu: 12}}}]
";

/// The queues report their usage, and an event reports the eviction.
#[track_caller]
pub fn assert_events_recorded(kubectl: &Kubectl) {
    for queue in [
        "clusterqueues.lockkeeper.dev research",
        "localqueues.lockkeeper.dev main -n team",
    ] {
        wait_until(kubectl, queue, "it counts", |queue| {
            queue["status"]["admittedWorkloads"] == 1
        });
    }
    wait_until(
        kubectl,
        "cohorts.lockkeeper.dev lab",
        "it has a status",
        |cohort| cohort["status"].is_object(),
    );
    wait_until(kubectl, "events -n team", "there is one", |events| {
        let mut events = events["items"].as_array().into_iter().flatten();
        events.any(|event| {
            event["reportingComponent"] == "lockkeeper.dev/controller"
                && event["involvedObject"]["kind"] == "Job"
        })
    });
}

fn no_other_rights(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server_and_workers(protocol, DEFAULTS);
    stage.cluster_mut().install_jobset();
    let path = stage.cluster().controller().to_str().unwrap().to_owned();
    let may = |what: &str| {
        let mut words = vec!["auth", "can-i", "--kubeconfig", &path];
        words.extend(what.split(' '));
        let reply = kubectl.run(&words);
        match reply.stdout.trim() {
            "yes" => true,
            "no" => false,
            other => panic!("{what}: {other}{}", reply.stderr),
        }
    };
    for what in GRANTED_ROLE {
        assert!(may(what), "it may not {what}");
    }
    for what in WITHHELD_RIGHTS {
        assert!(!may(what), "it may {what}");
    }
}

pub const LEASE: &str = "lease lockkeeper-controller -n lockkeeper-system";

const JOB_SET: &str = r"
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: set
  namespace: team
  labels: {lockkeeper.dev/queue-name: main}
spec:
  replicatedJobs:
    - name: workers
      template:
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
                - name: train
                  image: registry.example.com/train:1
                  resources: {requests: {cpu: 1}}
";

/// Runs kubectl with these arguments.
#[track_caller]
pub fn run(kubectl: &Kubectl, words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    kubectl.run(&words).expect_accepted();
}

/// Merges `patch` into the object.
#[track_caller]
pub fn patch(kubectl: &Kubectl, object: &str, patch: &str) {
    run(kubectl, &format!("patch {object} --type=merge -p {patch}"));
}

/// Waits until `holds` is true for the output of `kubectl get`.
#[track_caller]
pub fn wait_until(kubectl: &Kubectl, what: &str, when: &str, holds: impl Fn(&Value) -> bool) {
    let words: Vec<&str> = what.split(' ').collect();
    let mut last = Value::Null;
    let found = wait::until(
        || {
            last = kubectl.get(&words);
            Ok(holds(&last).then_some(()))
        },
        || format!("{what} never came to this: {when}"),
    );
    found.unwrap_or_else(|e| panic!("{e}; last:\n{last:#}"));
}

/// Whether an object has this condition.
fn is(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}
