#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use super::super::declared_jobs::running_guard;
use super::super::evaluation::{OPERATOR, denials, shipped};
use lockkeeper_crd_schema::admission_policy::Resource;
use lockkeeper_job_kinds::DeclaredKind;
use serde_json::{Value, json};

fn template(cpu: &str) -> Value {
    let container = json!({"name": "a", "resources": {"requests": {"cpu": cpu}}});
    json!({"spec": {"containers": [container], "nodeSelector": {"pool": "spot"}}})
}

fn ray_groups() -> Value {
    json!({
        "headGroupSpec": {"template": template("1")},
        "workerGroupSpecs": [
            {"groupName": "a", "replicas": 2, "minReplicas": 0, "maxReplicas": 5, "template": template("1")},
            {"groupName": "b", "replicas": 1, "template": template("4")},
        ],
    })
}

/// A running job of each shipped kind: its plural name, version, kind and specification.
fn jobs() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let mut cluster = ray_groups();
    cluster["suspend"] = json!(false);
    let mpi = json!({"runPolicy": {"suspend": false}, "mpiReplicaSpecs": {
        "Launcher": {"template": template("1")},
        "Worker": {"replicas": 2, "template": template("1")},
    }});
    let spark = json!({"type": "Scala", "driver": {"cores": 1, "memory": "512m"},
        "executor": {"cores": 1, "instances": 2, "memory": "1g", "nodeSelector": {"pool": "spot"}}});
    vec![
        ("rayclusters", "ray.io/v1", "RayCluster", cluster),
        (
            "rayjobs",
            "ray.io/v1",
            "RayJob",
            json!({"suspend": false, "rayClusterSpec": ray_groups()}),
        ),
        ("mpijobs", "kubeflow.org/v2beta1", "MPIJob", mpi),
        (
            "sparkapplications",
            "sparkoperator.k8s.io/v1beta2",
            "SparkApplication",
            spark,
        ),
    ]
}

/// A change of a specification as a pointer and a value, and the field of the message if it is rejected.
type Change = (&'static str, Value, Option<&'static str>);

fn cluster_changes() -> Vec<Change> {
    let groups = "spec.workerGroupSpecs: ";
    vec![
        ("/workerGroupSpecs/0/replicas", json!(3), Some(groups)),
        ("/workerGroupSpecs/0/replicas", json!(1), None),
        ("/workerGroupSpecs/0/minReplicas", json!(4), Some(groups)),
        ("/workerGroupSpecs/0/maxReplicas", json!(9), None),
        ("/workerGroupSpecs/1/numOfHosts", json!(2), Some(groups)),
        ("/workerGroupSpecs/0/groupName", json!("c"), Some(groups)),
        (
            "/workerGroupSpecs/0/scaleStrategy",
            json!({"workersToDelete": ["p"]}),
            None,
        ),
        (
            "/workerGroupSpecs/1/template/spec/nodeSelector/pool",
            json!("on-demand"),
            Some(groups),
        ),
        ("/workerGroupSpecs", json!([]), None),
        // The items may have another order, and one without pods may be new.
        (
            "/workerGroupSpecs",
            json!([
                {"groupName": "b", "template": template("4")},
                {"groupName": "c", "replicas": 0, "template": template("8")},
            ]),
            None,
        ),
        (
            "/headGroupSpec/template",
            template("8"),
            Some("spec.headGroupSpec.template: "),
        ),
    ]
}

fn changes(plural: &str) -> Vec<Change> {
    let nested = "spec.rayClusterSpec.workerGroupSpecs: ";
    let roles = "spec.mpiReplicaSpecs: ";
    match plural {
        "rayclusters" => cluster_changes(),
        "rayjobs" => vec![
            (
                "/rayClusterSpec/workerGroupSpecs/0/replicas",
                json!(3),
                Some(nested),
            ),
            (
                "/submitterPodTemplate",
                template("1"),
                Some("spec.submitterPodTemplate: "),
            ),
            ("/shutdownAfterJobFinishes", json!(true), None),
        ],
        "mpijobs" => vec![
            ("/mpiReplicaSpecs/Worker/replicas", json!(3), Some(roles)),
            ("/mpiReplicaSpecs/Worker/replicas", json!(1), None),
            ("/mpiReplicaSpecs/Launcher/replicas", json!(2), Some(roles)),
            (
                "/mpiReplicaSpecs/Other",
                json!({"template": template("1")}),
                Some(roles),
            ),
            ("/runPolicy/cleanPodPolicy", json!("All"), None),
        ],
        _ => vec![
            ("/executor/instances", json!(3), Some("spec.executor: ")),
            ("/executor/instances", json!(1), None),
            ("/executor/memory", json!("2g"), Some("spec.executor: ")),
            (
                "/executor/nodeSelector/pool",
                json!("on-demand"),
                Some("spec.executor: "),
            ),
            ("/driver/cores", json!(2), Some("spec.driver: ")),
            ("/driver/labels", json!({"team": "a"}), None),
            // Both have more memory then.
            ("/memoryOverheadFactor", json!("0.9"), Some("spec.driver: ")),
        ],
    }
}

fn resource(kind: &DeclaredKind) -> Resource {
    Resource::new(&kind.group, &kind.version, &kind.kind, &kind.plural)
}

/// Writes a value at a pointer whose last field may be missing.
fn set(of: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    of.pointer_mut(parent).unwrap()[name] = value;
}

#[test]
fn running_jobs_get_no_more_pods() {
    for (plural, version, name, spec) in jobs() {
        let kind = shipped(plural);
        let guard = running_guard(&kind);
        let job = |spec: &Value| {
            json!({"apiVersion": version, "kind": name, "spec": spec, "metadata": {
                "name": "train", "namespace": "team", "labels": {"lockkeeper.dev/queue-name": "main"}}})
        };
        let suspended = |spec: &Value| {
            let mut job = job(spec);
            let (path, value, _) = kind.suspend_field();
            json_patch::merge(&mut job, &path.wrap(value.clone()));
            job
        };
        let before = job(&spec);
        for (pointer, value, field) in changes(plural) {
            let mut after = spec.clone();
            set(&mut after, pointer, value);
            for account in ["tenant", OPERATOR] {
                let found = denials(
                    &guard,
                    &resource(&kind),
                    Some(&before),
                    &job(&after),
                    account,
                );
                let first = found.first().map(String::as_str).unwrap_or_default();
                assert!(
                    first.starts_with(field.unwrap_or_default())
                        && found.is_empty() == field.is_none(),
                    "{name} {pointer}: {found:?}"
                );
            }
            // The fix in the message, and a change while the job waits.
            for old in [&before, &suspended(&spec)] {
                let new = suspended(&after);
                let found = denials(&guard, &resource(&kind), Some(old), &new, "tenant");
                assert_eq!(found, [""; 0], "{name} {pointer}");
            }
        }
    }
}

/// A job whose pods cannot be counted loses its finalizers, and is not changed otherwise.
#[test]
fn unreadable_job_can_be_deleted() {
    let kind = shipped("mpijobs");
    let guard = running_guard(&kind);
    let job = |replicas: &str, finalizers: &Value| {
        json!({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
            "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas, "template": template("1")}}},
            "metadata": {"name": "train", "namespace": "team", "finalizers": finalizers,
                "labels": {"lockkeeper.dev/queue-name": "main"}}})
    };
    let before = job("many", &json!(["a"]));
    let denied = |after| denials(&guard, &resource(&kind), Some(&before), &after, "tenant");
    assert_eq!(denied(job("many", &json!([]))), [""; 0]);
    assert_eq!(denied(job("more", &json!(["a"]))).len(), 1);
}
