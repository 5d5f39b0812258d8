//! The test cluster with running pods, which the controller trials need.

use serde_json::Value;

use super::Scenario;
use crate::cluster::CONTROLLER_ACCOUNT;
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::Protocol;
use crate::nodes::Nodes;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    // The last protocol of a run: after these, no trial starts workers again.
    let once = |name: &'static str, run: fn(&mut Fixture, Protocol)| {
        Scenario::new(format!("workers: {name}"), run).only(Protocol::Http1)
    };
    vec![
        once("a Job runs to completion on fake nodes", completes),
        once("a Job fails where its pods are to fail", fails),
        once("a suspended Job has no pods, however often", suspended),
        once("a pod is unready for the annotated time", unready),
        once(
            "a pod that lingers is active until it is gone",
            lingering_pod_is_active,
        ),
        once(
            "a node takes the pods that fit it",
            node_selects_fitting_pods,
        ),
        once("the CRD of JobSet is served", jobset),
        once("the controller has an account of its own", account),
    ]
}

/// An empty cluster with two nodes; the workers create pods for Jobs.
#[track_caller]
fn start_cluster(stage: &mut Fixture, protocol: Protocol) -> Kubectl {
    let kubectl = stage.with_server_and_workers(protocol, DEFAULTS);
    stage.cluster().add_nodes(&Nodes {
        count: 2,
        ..Nodes::default()
    });
    kubectl
}

/// A Job of three pods; `annotations` are those of its pods.
fn job(suspend: bool, annotations: &str) -> String {
    format!(
        r"
apiVersion: batch/v1
kind: Job
metadata: {{name: train, namespace: default}}
spec:
  parallelism: 3
  completions: 3
  backoffLimit: 0
  suspend: {suspend}
  template:
    metadata: {{annotations: {{{annotations}}}}}
    spec:
      restartPolicy: Never
      containers:
        - name: train
          image: registry.example.com/train:1
          resources: {{requests: {{cpu: 1}}}}
"
    )
}

fn completes(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    let manifest = job(false, "test.lockkeeper.dev/run-for: 1s");
    kubectl
        .apply(&manifest, &[])
        .expect_accepted_without_warning();
    let status = wait_for_job(&kubectl, |job| has_condition(job, "Complete"));
    assert_eq!(status["succeeded"], 3, "{status:#}");

    // The scheduler has selected nodes, and deleting the Job deletes the pods.
    for pod in pods(&kubectl) {
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        assert!(node.starts_with("node-"), "{node}");
        assert_eq!(pod["status"]["phase"], "Succeeded");
    }
    kubectl.run(&["delete", "job", "train"]).expect_accepted();
    wait_for_pods(&kubectl, <[Value]>::is_empty);
}

fn fails(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    let annotations = "test.lockkeeper.dev/run-for: 0s, test.lockkeeper.dev/exit-code: '7'";
    let manifest = job(false, annotations);
    kubectl
        .apply(&manifest, &[])
        .expect_accepted_without_warning();
    let status = wait_for_job(&kubectl, |job| has_condition(job, "Failed"));
    assert_ne!(status["failed"].as_u64().unwrap_or(0), 0, "{status:#}");
    let failed = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        container["state"]["terminated"]["exitCode"] == 7
    };
    assert!(pods(&kubectl).iter().any(failed));
}

fn suspended(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    kubectl
        .apply(&job(true, ""), &[])
        .expect_accepted_without_warning();
    // The controller has observed the Job: its status says so, and there were no pods before.
    let status = wait_for_job(&kubectl, |job| has_condition(job, "Suspended"));
    assert!(status["startTime"].is_null(), "{status:#}");
    assert!(pods(&kubectl).is_empty());

    suspend(&kubectl, false);
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 3);
    assert_eq!(pods(&kubectl).len(), 3);

    suspend(&kubectl, true);
    wait_for_job(&kubectl, |job| {
        has_condition(job, "Suspended") && job["status"]["active"].as_u64().unwrap_or(0) == 0
    });
    wait_for_pods(&kubectl, <[Value]>::is_empty);

    // Without the annotation its pods run until they are deleted.
    suspend(&kubectl, false);
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 3);
    annotate(&kubectl, "test.lockkeeper.dev/run-for=0s");
    wait_for_job(&kubectl, |job| has_condition(job, "Complete"));
}

fn unready(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    let annotations = "test.lockkeeper.dev/unready: 'true', test.lockkeeper.dev/run-for: 0s";
    kubectl
        .apply(&job(false, annotations), &[])
        .expect_accepted_without_warning();
    wait_for_pods(&kubectl, |pods| {
        pods.len() == 3 && pods.iter().all(|pod| pod["status"]["phase"] == "Running")
    });
    // A later pod becomes ready on the same nodes, so these would be ready by now.
    let other = job(false, "test.lockkeeper.dev/run-for: 0s").replace("name: train", "name: other");
    kubectl.apply(&other, &[]).expect_accepted_without_warning();
    let wait = [
        "wait",
        "--for=condition=Complete",
        "--timeout=120s",
        "job/other",
    ];
    kubectl.run(&wait).expect_accepted();
    let status = wait_for_job(&kubectl, |job| job["status"]["active"] == 3);
    assert_eq!(status["ready"], 0, "{status:#}");

    // Ready, and unready again.
    annotate(&kubectl, "test.lockkeeper.dev/run-for-");
    annotate(&kubectl, "test.lockkeeper.dev/unready-");
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 3);
    annotate(&kubectl, "test.lockkeeper.dev/unready=true");
    let status = wait_for_job(&kubectl, |job| job["status"]["ready"] == 0);
    assert_eq!(status["active"], 3, "{status:#}");
}

fn lingering_pod_is_active(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    let manifest = job(false, "test.lockkeeper.dev/linger: 1h");
    kubectl
        .apply(&manifest, &[])
        .expect_accepted_without_warning();
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 3);
    suspend(&kubectl, true);
    let status = wait_for_job(&kubectl, |job| job["status"]["terminating"] == 3);
    assert_eq!(pods(&kubectl).len(), 3, "{status:#}");

    annotate(&kubectl, "test.lockkeeper.dev/linger-");
    wait_for_pods(&kubectl, <[Value]>::is_empty);
    wait_for_job(&kubectl, |job| job["status"]["terminating"] == 0);
}

fn node_selects_fitting_pods(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    let rack = |name: &'static str| Nodes {
        name,
        labels: &[("rack", "a")],
        capacity: &[("cpu", "2"), ("pods", "110")],
        ..Nodes::default()
    };
    stage.cluster().add_nodes(&rack("first"));
    let manifest = job(false, "").replace(
        "spec:\n      restart",
        "spec:\n      nodeSelector: {rack: a}\n      restart",
    );
    kubectl
        .apply(&manifest, &[])
        .expect_accepted_without_warning();
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 2);
    let rejected = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one["reason"] == "Unschedulable")
    };
    wait_for_pods(&kubectl, |pods| pods.iter().any(rejected));

    stage.cluster().add_nodes(&rack("second"));
    wait_for_job(&kubectl, |job| job["status"]["ready"] == 3);
    let on = |pod: &&Value| pod["spec"]["nodeName"] == "second-0";
    assert_eq!(pods(&kubectl).iter().filter(on).count(), 1);
}

fn jobset(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = start_cluster(stage, protocol);
    stage.cluster_mut().install_jobset();
    let manifest = r"
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: default}
spec:
  suspend: true
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          template:
            spec:
              restartPolicy: Never
              containers:
                - {name: train, image: 'registry.example.com/train:1'}
";
    kubectl
        .apply(manifest, &[])
        .expect_accepted_without_warning();
    let stored = kubectl.get(&["jobset", "train"]);
    assert_eq!(stored["spec"]["replicatedJobs"][0]["replicas"], 2);
    let rejected = kubectl.apply(&manifest.replace("replicas: 2", "replicas: many"), &[]);
    assert!(rejected.expect_rejected().stderr.contains("replicas"));
}

fn account(stage: &mut Fixture, _: Protocol) {
    let cluster = stage.cluster();
    let path = cluster.controller().to_str().unwrap();
    let who = ["auth", "whoami", "-o", "json", "--kubeconfig", path];
    let reply = cluster.kubectl().run(&who).expect_accepted();
    let review: Value = serde_json::from_str(&reply.stdout).unwrap();
    assert_eq!(review["status"]["userInfo"]["username"], CONTROLLER_ACCOUNT);
}

#[track_caller]
fn suspend(kubectl: &Kubectl, is: bool) {
    let patch = format!(r#"{{"spec":{{"suspend":{is}}}}}"#);
    let words = ["patch", "job", "train", "--type=merge", "-p", &patch];
    kubectl.run(&words).expect_accepted();
}

/// Sets or, with a `-` at its end, removes an annotation of the pods of the Job.
#[track_caller]
fn annotate(kubectl: &Kubectl, annotation: &str) {
    let words = [
        "annotate",
        "--overwrite",
        "pods",
        "--selector=job-name=train",
        annotation,
    ];
    kubectl.run(&words).expect_accepted();
}

/// The pods of the Job.
#[track_caller]
fn pods(kubectl: &Kubectl) -> Vec<Value> {
    let mut list = kubectl.get(&["pods", "--selector=job-name=train"]);
    match list["items"].take() {
        Value::Array(pods) => pods,
        other => panic!("no list: {other}"),
    }
}

#[track_caller]
fn wait_for_pods(kubectl: &Kubectl, holds: impl Fn(&[Value]) -> bool) {
    let found = wait::until(
        || Ok(holds(&pods(kubectl)).then_some(())),
        || format!("the pods stay at {:#}", Value::from(pods(kubectl))),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

/// Waits until `holds` of the Job, and returns its status.
#[track_caller]
fn wait_for_job(kubectl: &Kubectl, holds: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let found = wait::until(
        || {
            last = kubectl.get(&["job", "train"]);
            Ok(holds(&last).then(|| last["status"].clone()))
        },
        || "the Job does not get there".to_owned(),
    );
    found.unwrap_or_else(|e| panic!("{e}: {:#}", last["status"]))
}

/// Whether the Job has this condition.
fn has_condition(job: &Value, condition: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|one| one["type"] == condition && one["status"] == "True")
}
