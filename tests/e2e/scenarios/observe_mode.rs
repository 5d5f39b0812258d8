//! Observe mode beside Kueue, whose decisions the test writes itself, with an account that may only read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Scenario;
use super::agreement::folder;
use super::kueue_objects::install;
use crate::ROOT;
use crate::cluster::{Cluster, UNPRIVILEGED_ACCOUNT};
use crate::controller::Controller;
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::lockkeeper::{self, Protocol};
use crate::wait;

/// A decision is missing after five seconds.
const FLAGS: [&str; 4] = ["--observe", "kueue", "--observe-missing-after", "5"];

pub fn scenarios() -> Vec<Scenario> {
    let run = |_: &mut Fixture, _: Protocol| match folder("crds") {
        Some(folder) => decisions_are_compared(&folder),
        None => println!(
            "skipped: no CRDs of Kueue; LOCKKEEPER_CONFORMANCE_DIR names the folder with crds/"
        ),
    };
    let missing = |stage: &mut Fixture, _: Protocol| kueue_is_missing(stage);
    vec![
        Scenario::new("observe mode reports decisions that differ", run).only(Protocol::Http1),
        Scenario::new("observe mode needs Kueue", missing).only(Protocol::Http1),
    ]
}

fn decisions_are_compared(definitions: &Path) {
    let cluster = Cluster::start_audited().unwrap_or_else(|e| panic!("no cluster: {e}"));
    let kubectl = cluster.kubectl().clone();
    install(&kubectl, definitions);
    kubectl.apply(NAMESPACES, &[]).expect_accepted();
    let rights = ["apply", "-f", "examples/install/observe.yaml"];
    kubectl.run(&rights).expect_accepted();
    kubectl.apply(READER, &[]).expect_accepted();
    kubectl.apply(QUEUES, &[]).expect_accepted();

    settings_are_named(&cluster);
    differences_are_reported(&cluster, &kubectl);
    account_may_only_read(&kubectl);
    only_reading_requests(&cluster);
}

/// The Configuration is that of the cluster, if no file is given.
fn settings_are_named(cluster: &Cluster) {
    let folder = cluster.folder().join("cluster-config");
    let observer = Controller::start(cluster.unprivileged(), &folder, "", &FLAGS);
    let observer = observer.unwrap_or_else(|e| panic!("{e}"));
    let stdout = observer.stdout();
    assert!(stdout.starts_with("observing Kueue; "), "{stdout}");
    assert!(
        stdout.contains("not considered: featureGates.LendingLimit"),
        "{stdout}"
    );
    observer.stop().unwrap_or_else(|e| panic!("{e}"));
}

fn differences_are_reported(cluster: &Cluster, kubectl: &Kubectl) {
    let config = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}";
    let observer = Controller::start(
        cluster.unprivileged(),
        &cluster.folder().join("own-config"),
        config,
        &FLAGS,
    );
    let observer = observer.unwrap_or_else(|e| panic!("{e}"));
    startup_is_documented(&observer);

    // The core admits all three on flavor a.
    for name in ["same", "other", "waits"] {
        let workload = WORKLOAD.replace("NAME", name);
        kubectl.apply(&workload, &[]).expect_accepted();
    }
    admit(kubectl, "same", "a");
    admit(kubectl, "other", "b");
    let admissions = |result: &str| {
        format!("lockkeeper_observed_decisions_total{{decision=\"admission\",result=\"{result}\"}}")
    };
    wait_until(&observer, &admissions("agreed"), 1);
    wait_until(&observer, &admissions("different"), 1);
    let missing = "lockkeeper_observed_decisions_total{decision=\"missing\",result=\"different\"}";
    wait_until(&observer, missing, 1);

    let report: Value = serde_json::from_str(&observer.get("/observed")).unwrap();
    let differences = report["differences"].as_array().unwrap();
    let of = |name: &str| {
        differences
            .iter()
            .find(|it| it["workload"] == format!("team/{name}"))
    };
    let other = of("other").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(other["kueue"], "admits it (1 x main on b): Quota reserved");
    // The uid decides whether another workload of the same second comes first.
    let lockkeeper = other["lockkeeper"].as_str().unwrap();
    assert!(
        lockkeeper.starts_with("admits it (1 x main on a)"),
        "{report}"
    );
    assert_eq!(other["explanations"], json!([]));
    assert_eq!(other["decision"], "admission");
    assert_eq!(other["result"], "different");
    let waits = of("waits").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(waits["lockkeeper"], "admits it (1 x main on a)");
    assert_eq!(waits["decision"], "missing");
    assert_eq!(waits["explanations"], json!([]));
    let log = observer.log();
    assert!(log.contains("Kueue decides otherwise"), "{log}");
    assert!(!log.contains("forbidden"), "{log}");
    observer.stop().unwrap_or_else(|e| panic!("{e}"));
}

/// The startup message is that of the documentation, but for the port.
fn startup_is_documented(observer: &Controller) {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/kueue.md")).unwrap();
    let (_, rest) = page
        .split_once("$ lockkeeper controller --observe kueue\n")
        .unwrap();
    let (documented, _) = rest.split_once("```").unwrap();
    let stdout = observer.stdout();
    let (_, rest) = stdout.split_once("127.0.0.1:").unwrap();
    let (port, _) = rest.split_once('\n').unwrap();
    assert_eq!(stdout.replace(port, "9446"), documented);
}

/// Reading is all that the account of the installation may do.
fn account_may_only_read(kubectl: &Kubectl) {
    let rights = [
        "auth",
        "can-i",
        "--as=system:serviceaccount:lockkeeper-system:lockkeeper-observer",
    ];
    for (right, is_granted) in [
        ("list workloads.kueue.x-k8s.io -A", true),
        ("patch workloads.kueue.x-k8s.io -n team", false),
        (
            "patch workloads.kueue.x-k8s.io --subresource=status -n team",
            false,
        ),
        (
            "create leases.coordination.k8s.io -n lockkeeper-system",
            false,
        ),
        ("create events.events.k8s.io -n team", false),
        ("get secrets -n kueue-system", false),
        ("get configmaps -n kueue-system", false),
        ("get configmaps/kueue-manager-config -n kueue-system", true),
    ] {
        let words: Vec<&str> = rights.iter().copied().chain(right.split(' ')).collect();
        let answer = kubectl.run(&words).stdout;
        assert_eq!(answer.trim() == "yes", is_granted, "{right}: {answer}");
    }
}

/// Each request of both processes reads, and none was rejected.
fn only_reading_requests(cluster: &Cluster) {
    let audited = cluster.audit_log().unwrap_or_else(|e| panic!("{e}"));
    let mut verbs: BTreeSet<String> = BTreeSet::new();
    for line in audited.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["user"]["username"] == UNPRIVILEGED_ACCOUNT {
            assert_ne!(event["responseStatus"]["code"], 403, "{event:#}");
            verbs.insert(event["verb"].as_str().unwrap().to_owned());
        }
    }
    let reading = ["get", "list", "watch"].map(str::to_owned);
    assert!(verbs.contains("watch"), "{verbs:?}");
    assert!(verbs.is_subset(&BTreeSet::from(reading)), "{verbs:?}");
}

fn kueue_is_missing(stage: &mut Fixture) {
    let kubectl = stage.without_webhook();
    let kubeconfig = kubectl.kubeconfig().to_str().unwrap();
    let output = lockkeeper::run(&[
        "controller",
        "--observe",
        "kueue",
        "--control-listen",
        "off",
        "--kubeconfig",
        kubeconfig,
    ]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("install Kueue"), "{text}");
}

/// Writes an admission as Kueue does. Its second is a minute ahead, so that no change of the objects above is near it.
#[track_caller]
fn admit(kubectl: &Kubectl, name: &str, flavor: &str) {
    let decided = Timestamp::now() + SignedDuration::from_secs(60);
    let decided = decided.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |of: &str| {
        json!({"type": of, "status": "True", "reason": "QuotaReserved", "message": "Quota reserved",
            "lastTransitionTime": decided})
    };
    let status = json!({"status": {
        "admission": {"clusterQueue": "queue", "podSetAssignments": [{
            "name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "1"},
        }]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    }});
    let patch = status.to_string();
    let words = [
        "patch",
        "workloads.kueue.x-k8s.io",
        name,
        "-n",
        "team",
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ];
    kubectl.run(&words).expect_accepted();
}

#[track_caller]
fn wait_until(observer: &Controller, series: &str, count: u64) {
    let mut last = String::new();
    let reached = wait::until(
        || {
            last = observer.get("/metrics");
            Ok(last.contains(&format!("{series} {count}\n")).then_some(()))
        },
        || format!("{series} is not {count}"),
    );
    reached.unwrap_or_else(|e| panic!("{e}:\n{last}\n{}", observer.get("/observed")));
}

const NAMESPACES: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: lockkeeper-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    featureGates: {LendingLimit: false}
";

/// The rights of the installation for the account of the test.
const READER: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lockkeeper-observer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:lockkeeper-system:stranger"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: kueue-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lockkeeper-observer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:lockkeeper-system:stranger"}]
"#;

const QUEUES: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: b}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: a, resources: [{name: cpu, nominalQuota: "4"}]}
    - {name: b, resources: [{name: cpu, nominalQuota: "4"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: queue}
"#;

const WORKLOAD: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: NAME, namespace: team}
spec:
  queueName: main
  priority: 0
  podSets:
  - name: main
    count: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: c, image: i, resources: {requests: {cpu: "1"}}}
"#;
