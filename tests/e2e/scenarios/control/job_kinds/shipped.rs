//! The shipped declarations, each with a job and the status that the controller of its kind reports.

use serde_json::{Value, json};

pub(super) fn pod(cpu: &str) -> Value {
    json!({"spec": {"containers": [{
        "name": "main", "image": "registry.example.com/train:1",
        "resources": {"requests": {"cpu": cpu}},
    }]}})
}

/// A shipped declaration, a job, and what the kind's own controller reports about it.
pub(super) struct Shipped {
    pub(super) kind: &'static str,
    pub(super) resource: &'static str,
    pub(super) spec: Value,
    /// The field that suspends it.
    pub(super) suspend: &'static str,
    /// The number of its workers.
    pub(super) replicas: &'static str,
    /// The node selectors of its pods, by path.
    pub(super) selectors: &'static [&'static str],
    pub(super) running: Value,
    pub(super) stopped: Value,
    /// `None` for a kind that never ends.
    pub(super) ended: Option<Value>,
}

pub(super) fn shipped() -> Vec<Shipped> {
    let mut all = ray();
    all.extend([mpi_job(), spark_application()]);
    all
}

fn ray() -> Vec<Shipped> {
    let workers = json!([{"groupName": "Small", "replicas": 2, "minReplicas": 0, "maxReplicas": 3,
        "rayStartParams": {}, "template": pod("1")}]);
    let cluster = json!({"headGroupSpec": {"rayStartParams": {}, "template": pod("1")}, "workerGroupSpecs": workers});
    let with_suspend = |mut spec: Value| {
        spec["suspend"] = json!(true);
        spec
    };
    vec![
        Shipped {
            kind: "RayCluster",
            resource: "rayclusters.ray.io",
            spec: with_suspend(cluster.clone()),
            suspend: "/spec/suspend",
            replicas: "/spec/workerGroupSpecs/0/replicas",
            selectors: &[
                "/spec/headGroupSpec/template/spec/nodeSelector",
                "/spec/workerGroupSpecs/0/template/spec/nodeSelector",
            ],
            running: json!({"status": {"state": "ready"}}),
            stopped: json!({"status": {"state": "suspended"}}),
            ended: None,
        },
        Shipped {
            kind: "RayJob",
            resource: "rayjobs.ray.io",
            spec: json!({"suspend": true, "entrypoint": "train", "rayClusterSpec": cluster}),
            suspend: "/spec/suspend",
            replicas: "/spec/rayClusterSpec/workerGroupSpecs/0/replicas",
            selectors: &[
                "/spec/rayClusterSpec/headGroupSpec/template/spec/nodeSelector",
                "/spec/rayClusterSpec/workerGroupSpecs/0/template/spec/nodeSelector",
            ],
            running: json!({"status": {"jobDeploymentStatus": "Running", "rayClusterStatus": {"state": "ready"}}}),
            stopped: json!({"status": {"jobDeploymentStatus": "Suspended"}}),
            ended: Some(
                json!({"status": {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}),
            ),
        },
    ]
}

fn mpi_job() -> Shipped {
    Shipped {
        kind: "MPIJob",
        resource: "mpijobs.kubeflow.org",
        spec: json!({"runPolicy": {"suspend": true}, "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": pod("1")},
            "Worker": {"replicas": 2, "template": pod("1")},
        }}),
        suspend: "/spec/runPolicy/suspend",
        replicas: "/spec/mpiReplicaSpecs/Worker/replicas",
        selectors: &[
            "/spec/mpiReplicaSpecs/Launcher/template/spec/nodeSelector",
            "/spec/mpiReplicaSpecs/Worker/template/spec/nodeSelector",
        ],
        running: json!({"status": {"replicaStatuses": {"Worker": {"active": 2}},
                "conditions": [{"type": "Running", "status": "True"}]}}),
        stopped: json!({"status": {"replicaStatuses": {"Worker": {"active": 0}},
                "conditions": [{"type": "Suspended", "status": "True"}]}}),
        ended: Some(
            json!({"status": {"replicaStatuses": {"Worker": {"active": 0}},
                "conditions": [{"type": "Succeeded", "status": "True"}]}}),
        ),
    }
}

fn spark_application() -> Shipped {
    Shipped {
        kind: "SparkApplication",
        resource: "sparkapplications.sparkoperator.k8s.io",
        spec: json!({"suspend": true, "type": "Scala", "sparkVersion": "4.0.0",
                "mainApplicationFile": "local:///a.jar", "mainClass": "A",
                "driver": {"cores": 1, "memory": "512m"},
                "executor": {"cores": 1, "instances": 2, "memory": "1g"}}),
        suspend: "/spec/suspend",
        replicas: "/spec/executor/instances",
        selectors: &["/spec/driver/nodeSelector", "/spec/executor/nodeSelector"],
        running: json!({"status": {"applicationState": {"state": "RUNNING"}, "driverInfo": {}}}),
        stopped: json!({"status": {"applicationState": {"state": "SUSPENDED"}, "driverInfo": {}}}),
        ended: Some(
            json!({"status": {"applicationState": {"state": "COMPLETED"}, "driverInfo": {}}}),
        ),
    }
}
