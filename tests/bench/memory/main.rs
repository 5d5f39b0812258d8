//! The memory that the controller keeps for each queued object: `cargo bench -p lockkeeper-controller --bench memory -- KIND COUNT`.
//! KIND is `pod` (a gated pod, the default), `job` (a suspended Job) or `declared` (a job of a declared kind with the same pods).
//!
//! Bytes and allocations as requested from the allocator, which are the same on every machine: after the objects were listed,
//! after each has a Workload, and after each Workload has a reason. `tests/bench/job-kinds` counts the instructions of these runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a program for developers"
)]

#[path = "../controller_settings.rs"]
mod controller_settings;

use controller_settings::settings;
use lockkeeper_controller::job_adapters::{KINDS, POD};
use lockkeeper_controller::{
    Input, Kind, ObjectKey, ObjectRef, Reconciler, Settings, WriteOp, WriteResult,
};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Stats, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of objects without an argument.
const COUNT_DEFAULT: usize = 10_000;
/// The uids of objects have larger numbers than those of workloads.
const OBJECT_UIDS: usize = 1_000_000;
const BEGIN_MS: i64 = 1_700_000_000_000;
const GROUP: &str = "lockkeeper.dev/v1alpha1";
const NAMESPACE: &str = "serving";

/// The kind of the objects.
#[derive(Clone, Copy, PartialEq)]
enum Queued {
    Pod,
    Job,
    Declared,
}

impl Queued {
    const fn kind(self) -> Kind {
        match self {
            Self::Pod => Kind::Job(POD),
            Self::Job => Kind::Job(0),
            // The first index after the built-in kinds.
            Self::Declared => Kind::Job(KINDS.len()),
        }
    }

    fn object(self, number: usize) -> Value {
        match self {
            Self::Pod => pod(number),
            Self::Job => job(number),
            Self::Declared => training_run(number),
        }
    }
}

fn main() {
    // cargo adds --bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let queued = match arguments.first().map(String::as_str) {
        None | Some("pod") => Queued::Pod,
        Some("job") => Queued::Job,
        Some("declared") => Queued::Declared,
        Some(other) => panic!("{other} is no kind; the kinds are pod, job and declared"),
    };
    let count = arguments
        .get(1)
        .map_or(COUNT_DEFAULT, |it| it.parse().unwrap());
    let mut process = Process::new();
    if queued == Queued::Declared {
        process.declare();
    }
    let begun = INSTRUMENTED_SYSTEM.stats();
    for number in 0..count {
        process.apply(queued.kind(), queued.object(number));
    }
    report("listed", begun, count);
    process.run(|it| it.workloads == count);
    report("with workloads", begun, count);
    process.run(|it| it.reasons >= count / 2);
    report("with reasons", begun, count);
}

fn report(what: &str, begun: Stats, count: usize) {
    let change = INSTRUMENTED_SYSTEM.stats() - begun;
    let bytes = change.bytes_allocated - change.bytes_deallocated;
    let blocks = change.allocations - change.deallocations;
    println!(
        "{what:<15} {:>6} bytes in {:>3} blocks per object",
        bytes / count,
        blocks / count
    );
}

struct Process {
    reconciler: Reconciler,
    now_ms: i64,
    version: u64,
    workloads: usize,
    reasons: usize,
}

impl Process {
    /// A controller that leads, with a queue without quota left.
    fn new() -> Self {
        let settings = Settings {
            pending_reason_writes_per_second: 1_000,
            job_kinds: vec![0, 1, 2],
            has_job_kinds: true,
            ..settings()
        };
        let mut process = Self {
            reconciler: Reconciler::new(settings),
            now_ms: BEGIN_MS,
            version: 1,
            workloads: 0,
            reasons: 0,
        };
        // A new leader lists all kinds again.
        process.input(Input::Leadership(true));
        let jobs = (0..3).map(Kind::Job);
        let kinds = Kind::FIXED.into_iter().chain(jobs);
        for kind in kinds.chain([Kind::JobKind]) {
            process.input(Input::Listed(kind));
        }
        let own = |kind, name: &str, spec| json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec});
        process.apply(
            Kind::Namespace,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        );
        process.apply(Kind::ResourceFlavor, own("ResourceFlavor", "f", json!({})));
        let quota = json!({"name": "cpu", "nominalQuota": 1});
        let spec = json!({"namespaceSelector": {}, "resourceGroups": [
            {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [quota]}]}]});
        process.apply(Kind::ClusterQueue, own("ClusterQueue", "q", spec));
        let mut local = own("LocalQueue", "q", json!({"clusterQueue": "q"}));
        local["metadata"]["namespace"] = json!(NAMESPACE);
        process.apply(Kind::LocalQueue, local);
        process
    }

    /// Declares a kind of jobs.
    fn declare(&mut self) {
        let spec = json!({
            "version": "v1", "kind": "TrainingRun",
            "podSets": [{"forEach": "spec.roles", "template": "template", "count": "item.replicas"}],
        });
        let declaration = json!({
            "apiVersion": GROUP, "kind": "JobKind", "metadata": {"name": "trainingruns.example.com"}, "spec": spec,
        });
        self.apply(Kind::JobKind, declaration);
        self.input(Input::Listed(Queued::Declared.kind()));
    }

    fn input(&mut self, input: Input) {
        self.reconciler.handle_input(self.now_ms, input);
    }

    fn apply(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let key = ObjectKey::new(namespace, text("/metadata/name").unwrap());
        let input = Input::applied_with(self.reconciler.job_kinds(), kind, key, object);
        self.input(input);
    }

    /// Executes writes until `is_done`.
    fn run(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let output = self.reconciler.poll(self.now_ms);
            if output.writes.is_empty() {
                let due_ms = output.wake_at_ms;
                assert!(
                    due_ms.is_some(),
                    "{} workloads, {} reasons",
                    self.workloads,
                    self.reasons
                );
                self.now_ms = due_ms.unwrap().max(self.now_ms + 1);
            }
            for write in output.writes {
                let mut version = self.version;
                match (&write.object, write.op) {
                    (ObjectRef::Job(_), WriteOp::Create(mut object)) => {
                        self.workloads += 1;
                        object["metadata"]["uid"] = json!(uid(self.workloads));
                        object["metadata"]["creationTimestamp"] = json!("2023-11-14T22:13:20Z");
                        object["metadata"]["generation"] = json!(1);
                        version += 1;
                        self.apply(Kind::Workload, object);
                    }
                    (ObjectRef::Workload(_), _) => self.reasons += 1,
                    _ => {}
                }
                self.input(Input::WriteFinished(write.id, WriteResult::Done(version)));
            }
        }
    }
}

fn uid(number: usize) -> String {
    format!("6665ed6f-f38d-455a-8a46-{number:012x}")
}

/// A pod as a `ReplicaSet` creates it, after admission.
fn pod(number: usize) -> Value {
    let name = format!("serve-6f9d8c7b5-{number:05}");
    let mount = format!("kube-api-access-{number:05}");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": uid(OBJECT_UIDS + number),
            "creationTimestamp": "2023-11-14T22:13:20Z",
            "labels": {
                "lockkeeper.dev/queue-name": "q",
                "app.kubernetes.io/name": "serve",
                "pod-template-hash": "6f9d8c7b5",
            },
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "serve-6f9d8c7b5",
                "uid": uid(0), "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "schedulingGates": [{"name": "lockkeeper.dev/admission"}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "schedulerName": "default-scheduler", "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": true,
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": mount, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
            "containers": [{"name": "main", "image": "example.com/serve:1", "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "MODEL", "value": "large"}],
                "volumeMounts": [{"name": mount, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "resources": {"requests": {"cpu": "2"}}}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    })
}

/// The template of a pod in a job, as a user writes it and the API server completes it.
fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "train"}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler", "securityContext": {},
            "containers": [{"name": "main", "image": "example.com/train:1", "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "MODEL", "value": "large"}], "command": ["train", "--epochs", "3"],
                "resources": {"requests": {"cpu": "2"}}}],
        },
    })
}

fn metadata(number: usize) -> Value {
    json!({
        "name": format!("train-{number:05}"), "namespace": NAMESPACE, "uid": uid(OBJECT_UIDS + number),
        "creationTimestamp": "2023-11-14T22:13:20Z", "generation": 1, "labels": {"lockkeeper.dev/queue-name": "q"},
    })
}

/// A suspended Job.
fn job(number: usize) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(number),
        "spec": {"suspend": true, "parallelism": 3, "completions": 3, "backoffLimit": 6, "template": template()},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]},
    })
}

/// A job of a declared kind with the same pods.
fn training_run(number: usize) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "TrainingRun", "metadata": metadata(number),
        "spec": {"suspend": true, "roles": [{"name": "main", "replicas": 3, "template": template()}]},
        "status": {"conditions": [{"type": "Suspended", "status": "True", "reason": "Suspended"}]},
    })
}
