//! `lockkeeper explain`, `queue`, `top`, `diff`, `dump` and `stop` on a cluster: they say what the controller decides.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Trial;
use super::fixture::ControllerFixture;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper;

pub const TRIALS: [Trial; 1] = [(
    "the named change admits a pending Job",
    named_change_admits_job,
)];

/// The rules of an account that may only read workloads in one namespace.
const VIEWER: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: workload-viewer, namespace: default}
rules:
- {apiGroups: [lockkeeper.dev], resources: [workloads, localqueues], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: workload-viewer, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: workload-viewer}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}
";

/// The nominal quota of a queue with one flavor and resource.
const NOMINAL_QUOTA: &str = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota";

fn named_change_admits_job(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    site.flavor("default");
    site.classes();
    site.queue(
        "q",
        4,
        &json!({"preemption": {"withinClusterQueue": "LowerPriority"}}),
    );
    site.job("first", "q", 3, "mid", &json!({}));
    site.wait_until_running("first");
    site.job("second", "q", 2, "low", &json!({}));
    let workload = site.wait_until_pending("second", "WaitingForQuota");

    let answer = json_answer(&mut site, &["explain", "job/second"]);
    assert_eq!(answer["situation"], "Pending");
    let conditions = workload["status"]["conditions"].as_array().unwrap();
    let reserved = conditions
        .iter()
        .find(|it| it["type"] == "QuotaReserved")
        .unwrap();
    assert_eq!(answer["reason"], reserved["reason"]);
    assert_eq!(answer["message"], reserved["message"]);
    assert_eq!(answer["position"]["inClusterQueue"], 0);
    assert_eq!(answer["quota"][0]["short"], "1");
    let changes = answer["changes"].as_array().unwrap();
    let nominal = changes
        .iter()
        .find(|it| it["kind"] == "NominalQuota")
        .unwrap();
    assert_eq!(nominal["amounts"][0]["to"], "5", "{nominal}");
    let priority = changes.iter().find(|it| it["kind"] == "Priority").unwrap();
    assert_eq!(priority["victims"], 1, "{priority}");

    let running = json_answer(&mut site, &["explain", "job/first"]);
    assert_eq!(running["situation"], "Running");
    assert_eq!(running["preemptors"][0]["clusterQueue"], "q", "{running}");

    lists_contain_the_objects(&mut site);
    completions_name_live_objects(&mut site);
    restricted_account_gets_the_reason(&mut site);

    let patch =
        json!([{"op": "replace", "path": NOMINAL_QUOTA, "value": nominal["amounts"][0]["to"]}]);
    let patch = patch.to_string();
    let kubectl = site.stage.cluster().kubectl().clone();
    kubectl
        .run(&[
            "patch",
            "clusterqueues.lockkeeper.dev",
            "q",
            "--type=json",
            "--patch",
            &patch,
        ])
        .expect_accepted();
    site.wait_until_running("second");

    evicted_workload_names_its_preemptor(&mut site);
    latest_start_follows_from_execution_times(&mut site);
    stopped_queue_is_the_reason(&mut site);
    harm_of_a_change_is_reported(&mut site);
    stop_evicts_workloads(&mut site);
    site.stop();
}

#[track_caller]
fn lists_contain_the_objects(site: &mut ControllerFixture<'_>) {
    let queue = json_answer(site, &["queue", "q"]);
    assert_eq!(queue[0]["job"], "Job/second");
    assert_eq!(queue[0]["reason"], "WaitingForQuota");
    let top = run(site, &["top", "--output", "json"]);
    let top: Value = serde_json::from_slice(&top.stdout).unwrap();
    let row = &top[0];
    assert_eq!(
        (&row["path"], &row["used"], &row["pending"]),
        (&json!("/q"), &json!("3"), &json!(1))
    );

    let dump = run(site, &["dump", "--hide-names"]);
    let dump: Value = serde_json::from_slice(&dump.stdout).unwrap();
    let kinds: BTreeSet<&str> = dump["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.is_superset(
            &[
                "ClusterQueue",
                "LocalQueue",
                "Namespace",
                "PriorityClass",
                "ResourceFlavor",
                "Workload"
            ]
            .into()
        ),
        "{kinds:?}"
    );
    assert!(!dump.to_string().contains("second"), "{dump}");
    dump_is_simulated(site);
}

/// The running job keeps its quota from before the start, and the pending one starts when it ends.
#[track_caller]
fn dump_is_simulated(site: &mut ControllerFixture<'_>) {
    let folder = site.stage.new_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("dump.json");
    std::fs::write(&path, run(site, &["dump"]).stdout).unwrap();
    let path = path.to_str().unwrap();
    // The job has run for some seconds.
    let words = ["simulate", "--dump", path, "--assume-run-seconds", "3600"];
    let output = lockkeeper::run(&[&words[..], &["--output", "json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let results: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    let result = &results["simulations"][0];
    assert_eq!(result["outcome"], "drained", "{result:#}");
    let run_of = |job: &str| {
        let mut jobs = result["jobs"].as_array().unwrap().iter();
        let found = jobs.find(|it| it["name"].as_str().unwrap().contains(job));
        found.unwrap_or_else(|| panic!("{job}: {result:#}"))["runs"][0].clone()
    };
    let (first, second) = (run_of("first"), run_of("second"));
    assert!(first["from"].as_i64().unwrap() <= 0, "{first}");
    assert_eq!(second["from"], first["to"], "{first} {second}");
    // Without a run time nothing is guessed.
    let output = lockkeeper::run(&["simulate", "--dump", path]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("--assume-run-seconds"), "{stderr}");
}

/// Shells complete the names of workloads, jobs, queues and namespaces.
#[track_caller]
fn completions_name_live_objects(site: &mut ControllerFixture<'_>) {
    let kubeconfig = site.stage.cluster().kubectl().kubeconfig().to_owned();
    let cluster = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let workload = site.workload_name("second");
    let cases: [(&[&str], &str, &str); 5] = [
        (&["explain"], "job/se", "job/second"),
        (&["explain", "-n", "default"], "", &workload),
        (&["stop"], "cluster", "clusterqueue/"),
        (&["stop"], "clusterqueue/", "clusterqueue/q"),
        (&["queue", "--namespace"], "kube-s", "kube-system"),
    ];
    for (words, typed, expected) in cases {
        // The flags of the cluster are in front of a flag without its value.
        let (command, flags) = words.split_first().unwrap();
        let line = [
            &["--", "lockkeeper", *command],
            &cluster[..],
            flags,
            &[typed],
        ]
        .concat();
        let output = lockkeeper::complete(&line);
        let mut names = output.lines().map(|it| it.split('\t').next().unwrap());
        assert!(names.any(|it| it == expected), "{line:?}: {output}");
    }
    // Without a cluster there is nothing to complete, and no error.
    let line = [
        "--",
        "lockkeeper",
        "explain",
        "--kubeconfig",
        "missing",
        "a",
    ];
    assert_eq!(lockkeeper::complete(&line), "");
}

#[track_caller]
fn restricted_account_gets_the_reason(site: &mut ControllerFixture<'_>) {
    // An account that sees its namespace alone gets the reason from the condition.
    let kubectl = site.stage.cluster().kubectl().clone();
    kubectl.apply(VIEWER, &[]).expect_accepted();
    let answer = json_answer(site, &["explain", "job/second", "--as", "viewer"]);
    assert_eq!(answer["reason"], "WaitingForQuota");
    assert_eq!(answer["changes"], Value::Null);
    let assumed = answer["assumptions"].to_string();
    assert!(assumed.contains("may not list clusterqueues"), "{assumed}");
    kubectl
        .with_input(&["delete", "-f", "-"], VIEWER)
        .expect_accepted();
}

#[track_caller]
fn evicted_workload_names_its_preemptor(site: &mut ControllerFixture<'_>) {
    site.job("urgent", "q", 2, "high", &json!({}));
    site.wait_until_running("urgent");
    site.wait_until_stopped("second");
    let evicted = json_answer(site, &["explain", "job/second"]);
    let preemption = &evicted["eviction"]["preemption"];
    assert_eq!(preemption["reason"], "InClusterQueue", "{evicted}");
    assert_eq!(preemption["preemptorJob"], "Job/urgent", "{evicted}");
    assert_eq!(preemption["preemptorPath"], "/q", "{evicted}");
    site.finish("urgent");
    site.wait_until_running("second");
}

#[track_caller]
fn latest_start_follows_from_execution_times(site: &mut ControllerFixture<'_>) {
    site.queue("timed", 2, &json!({"queueingStrategy": "StrictFIFO"}));
    let timed = json!({"metadata": {"labels": {"lockkeeper.dev/max-exec-time-seconds": "3600"}}});
    site.job("now", "timed", 2, "mid", &timed);
    site.wait_until_running("now");
    site.job("later", "timed", 2, "mid", &json!({}));
    site.wait_until_pending("later", "WaitingForQuota");
    let pending = json_answer(site, &["explain", "job/later"]);
    let bound = &pending["startsBy"];
    assert_eq!(bound["unless"], "HigherPriorityArrives", "{pending}");
    let admitted = site.wait_for_workload("now", |_| true);
    let admitted = admitted["status"]["conditions"].as_array().unwrap();
    let admitted = admitted.iter().find(|it| it["type"] == "Admitted").unwrap();
    let time = |it: &Value| it.as_str().unwrap().parse::<Timestamp>().unwrap();
    let wait = time(&bound["time"]).duration_since(time(&admitted["lastTransitionTime"]));
    assert!((3600..3605).contains(&wait.as_secs()), "{pending}");
    site.finish("now");
    site.wait_until_running("later");
    site.finish("later");
}

#[track_caller]
fn stopped_queue_is_the_reason(site: &mut ControllerFixture<'_>) {
    let stopped = run(site, &["stop", "clusterqueue/q"]);
    assert_eq!(
        String::from_utf8_lossy(&stopped.stdout),
        "clusterqueue.lockkeeper.dev/q stopped\n"
    );
    site.job("third", "q", 1, "low", &json!({}));
    site.wait_until_pending("third", "Inadmissible");
    let answer = json_answer(site, &["explain", "job/third"]);
    assert_eq!(
        answer["summary"],
        "waits: ClusterQueue q is stopped (spec.stopPolicy)"
    );
    site.finish("first");
    let missing = run(site, &["resume", "clusterqueue/none"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("not found"));
    assert!(run(site, &["resume", "cq/q"]).status.success());
    site.wait_until_running("third");
}

#[track_caller]
fn harm_of_a_change_is_reported(site: &mut ControllerFixture<'_>) {
    // What happens to running workloads is known before the change.
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("queue.json");
    let mut queue = site.objects.get("ClusterQueue", "q");
    *queue.pointer_mut(NOMINAL_QUOTA).unwrap() = json!("0");
    fs::write(&manifest, queue.to_string()).unwrap();
    let difference = run(
        site,
        &["diff", manifest.to_str().unwrap(), "--output", "json"],
    );
    assert_eq!(difference.status.code(), Some(1));
    let difference: Value = serde_json::from_slice(&difference.stdout).unwrap();
    let reclaimable = difference["reclaimable"].as_array().unwrap();
    assert!(
        reclaimable.iter().any(|it| it["job"] == "Job/third"),
        "{difference}"
    );
    // So is what a rule says of all queues of the cluster with the change.
    let flavor = "/spec/resourceGroups/0/flavors/0/name";
    *queue.pointer_mut(flavor).unwrap() = json!("gone");
    fs::write(&manifest, queue.to_string()).unwrap();
    let words = ["diff", manifest.to_str().unwrap(), "--output", "json"];
    let difference: Value = serde_json::from_slice(&run(site, &words).stdout).unwrap();
    let findings = difference["newFindings"].as_array().unwrap();
    let is_missing = |it: &Value| it["rule"] == "CQ014" && it["object"]["name"] == "q";
    assert!(findings.iter().any(is_missing), "{difference:#}");
}

#[track_caller]
fn stop_evicts_workloads(site: &mut ControllerFixture<'_>) {
    assert!(
        run(site, &["stop", "cq/q", "--drain", "--dry-run"])
            .status
            .success()
    );
    assert_ne!(
        site.objects.get("ClusterQueue", "q")["spec"]["stopPolicy"],
        "HoldAndDrain"
    );
    assert!(run(site, &["stop", "cq/q", "--drain"]).status.success());
    site.wait_until_stopped("third");
    assert!(run(site, &["resume", "cq/q"]).status.success());
    site.wait_until_running("third");
    let workload = format!("workload/{}", site.workload_name("third"));
    assert!(
        run(site, &["stop", &workload, "--namespace", "default"])
            .status
            .success()
    );
    site.wait_until_stopped("third");
}

/// Runs a command on the cluster, and returns its JSON.
#[track_caller]
pub fn json_answer(site: &mut ControllerFixture<'_>, arguments: &[&str]) -> Value {
    let with = ["--namespace", "default", "--output", "json"];
    let output = run(site, &[arguments, &with].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"))
}

/// Runs a command on the cluster.
pub fn run(site: &mut ControllerFixture<'_>, arguments: &[&str]) -> Output {
    let kubeconfig = site.stage.cluster().kubectl().kubeconfig().to_owned();
    let with = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    lockkeeper::run(&[arguments, &with].concat())
}
