//! The declarations in `examples/job-kinds`, compared with the projects' own definitions, and used on their samples.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{
    CompileError, DeclaredJob, DeclaredKind, PodSetWrite, check_against_definition,
};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The folder with definitions and samples of other projects; `None` where only the repository is.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| repository().join("../shared/data"));
    let folder = folder.join("jobkinds");
    folder.is_dir().then_some(folder)
}

fn declaration(resource: &str) -> JobKind {
    let plural = resource.split('.').next().unwrap();
    let path = repository().join(format!("examples/job-kinds/{plural}.yaml"));
    let text = fs::read_to_string(path).unwrap();
    // The second object is the role of the controller.
    let (first, _) = text.split_once("\n---\n").unwrap();
    serde_saphyr::from_str(first).unwrap()
}

fn describe(errors: &[CompileError]) -> Vec<String> {
    let text = |it: &CompileError| format!("{}: {}", it.field, it.problem);
    errors.iter().map(text).collect()
}

fn checked(resource: &str) -> DeclaredKind {
    let declaration = declaration(resource);
    let Some(data) = data() else {
        return DeclaredKind::compile(&declaration).unwrap();
    };
    let (plural, group) = resource.split_once('.').unwrap();
    let definition = fs::read_to_string(data.join(format!("crds/{group}_{plural}.yaml"))).unwrap();
    let definition: Value = serde_saphyr::from_str(&definition).unwrap();
    check_against_definition(&declaration, &definition)
        .map_err(|it| describe(&it))
        .unwrap()
}

const RESOURCES: [&str; 4] = [
    "rayclusters.ray.io",
    "rayjobs.ray.io",
    "mpijobs.kubeflow.org",
    "sparkapplications.sparkoperator.k8s.io",
];

#[test]
fn every_shipped_declaration_fits_its_definition() {
    for resource in RESOURCES {
        let kind = checked(resource);
        assert_eq!(format!("{}.{}", kind.plural, kind.group), resource);
    }
    let files = fs::read_dir(repository().join("examples/job-kinds")).unwrap();
    assert_eq!(files.count(), RESOURCES.len(), "each file is tested");
}

#[test]
fn every_sample_of_a_declared_kind_is_read() {
    let Some(data) = data() else { return };
    let kinds = RESOURCES.map(checked);
    let mut counts = kinds.each_ref().map(|it| (it.kind.clone(), 0));
    let mut files: Vec<_> = fs::read_dir(data.join("samples")).unwrap().collect();
    files.sort_by_key(|it| it.as_ref().unwrap().path());
    for file in files {
        let path = file.unwrap().path();
        let Ok(objects) = serde_saphyr::from_multiple::<Value>(&fs::read_to_string(&path).unwrap())
        else {
            continue;
        };
        for object in objects {
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let found = kinds.iter().zip(&mut counts).find(|(it, _)| {
                version == format!("{}/{}", it.group, it.version) && object["kind"] == it.kind
            });
            let Some((kind, (_, count))) = found else {
                continue;
            };
            let job = kind
                .read(&object)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            *count += 1;
            assert!(
                !job.is_suspended && job.is_stopped && job.result.is_none(),
                "{}",
                path.display()
            );
            round_trip(kind, &object, &job);
        }
    }
    for (kind, count) in counts {
        println!("{kind}: {count} samples");
        assert!(count > 0, "{kind} has samples");
    }
}

fn selector(value: &Value) -> PodSetWrite {
    let pod_spec = serde_json::json!({"nodeSelector": {"lockkeeper-test": value}});
    PodSetWrite {
        pod_spec,
        count: None,
    }
}

/// A placement is written and taken back; nothing else changes.
fn round_trip(kind: &DeclaredKind, object: &Value, job: &DeclaredJob) {
    let set = vec![selector(&serde_json::json!("a")); job.pod_sets.len()];
    let patch = kind.placement_patch(&job.templates, &set).unwrap();
    let mut placed = object.clone();
    json_patch::merge(&mut placed["spec"], &patch);
    json_patch::merge(&mut placed["spec"], &kind.suspend_patch());
    let read = kind.read(&placed).unwrap();
    assert!(read.is_suspended);
    for (before, after) in job.pod_sets.iter().zip(&read.pod_sets) {
        assert_eq!(
            after
                .template
                .pointer("/spec/nodeSelector/lockkeeper-test")
                .unwrap(),
            "a"
        );
        assert_eq!((&before.name, before.count), (&after.name, after.count));
    }
    let unset = vec![selector(&serde_json::json!(null)); job.pod_sets.len()];
    let patch = kind.placement_patch(&read.templates, &unset).unwrap();
    json_patch::merge(&mut placed["spec"], &patch);
    json_patch::merge(&mut placed["spec"], &kind.start_patch());
    let restored = kind.read(&placed).unwrap();
    assert!(!restored.is_suspended);
    for (before, after) in job.pod_sets.iter().zip(&restored.pod_sets) {
        let mut template = after.template.clone();
        if before.template.pointer("/spec/nodeSelector").is_none() {
            template["spec"]
                .as_object_mut()
                .unwrap()
                .remove("nodeSelector");
        }
        assert_eq!(template, before.template);
    }
}

/// Name, count and requests of the pods of a job.
fn pods(kind: &DeclaredKind, spec: &Value) -> Vec<String> {
    let job = kind
        .read(&serde_json::json!({"metadata": {"name": "a"}, "spec": spec}))
        .unwrap();
    let one = |it: &lockkeeper_job_kinds::DeclaredPodSet| {
        let requests = &it.template["spec"]["containers"][0]["resources"]["requests"];
        format!("{} {} {requests}", it.name, it.count)
    };
    job.pod_sets.iter().map(one).collect()
}

#[test]
fn pods_of_a_spark_application_have_cores_and_memory_with_overhead() {
    let kind = checked("sparkapplications.sparkoperator.k8s.io");
    for (kind_of_code, driver, executor, expected) in [
        (
            "Scala",
            serde_json::json!({"cores": 1, "memory": "512m"}),
            serde_json::json!({"cores": 2, "instances": 3, "memory": "8g"}),
            [
                r#"driver 1 {"cpu":"1","memory":"896Mi"}"#,
                r#"executor 3 {"cpu":"2","memory":"9011Mi"}"#,
            ],
        ),
        (
            "Python",
            serde_json::json!({"coreRequest": "500m", "cores": 1}),
            serde_json::json!({"memory": "2048M"}),
            [
                r#"driver 1 {"cpu":"500m","memory":"1433Mi"}"#,
                r#"executor 1 {"cpu":"1","memory":"2867Mi"}"#,
            ],
        ),
        (
            "Scala",
            serde_json::json!({"memory": "2gb", "memoryOverhead": "3G"}),
            serde_json::json!({"memory": "1t", "memoryOverhead": "100"}),
            [
                r#"driver 1 {"cpu":"1","memory":"5120Mi"}"#,
                r#"executor 1 {"cpu":"1","memory":"1048676Mi"}"#,
            ],
        ),
    ] {
        let spec =
            serde_json::json!({"type": kind_of_code, "driver": driver, "executor": executor});
        assert_eq!(pods(&kind, &spec), expected);
    }
    let mut spec = json!({"type": "Scala", "driver": {}, "executor": {"memory": "10g"}, "memoryOverheadFactor": "0.5"});
    let expected = r#"executor 1 {"cpu":"1","memory":"15360Mi"}"#;
    assert_eq!(pods(&kind, &spec)[1], expected);
    // Other units, and requests in sparkConf, are not read.
    for (field, value) in [
        ("/executor/memory", json!("10 g")),
        ("/executor/memory", json!("1p")),
        ("/sparkConf", json!({"spark.executor.instances": "100"})),
        (
            "/sparkConf",
            json!({"spark.executor.memoryOverhead": "100g"}),
        ),
    ] {
        let mut other = spec.clone();
        other["sparkConf"] = json!({});
        *other.pointer_mut(field).unwrap() = value;
        let job = kind.read(&json!({"metadata": {"name": "a"}, "spec": other}));
        assert!(job.is_err(), "{field}: {other}");
    }
    spec["sparkConf"] = json!({"spark.eventLog.enabled": "true"});
    assert_eq!(pods(&kind, &spec)[1], expected);
}

#[test]
fn worker_groups_of_a_ray_job_count_hosts() {
    let kind = checked("rayjobs.ray.io");
    let template = |cpu: &str| serde_json::json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    let spec = |mode: &str| {
        serde_json::json!({
            "submissionMode": mode,
            "submitterPodTemplate": template("100m"),
            "rayClusterSpec": {
                "headGroupSpec": {"template": template("1")},
                "workerGroupSpecs": [
                    {"groupName": "TPU", "replicas": 2, "numOfHosts": 4, "template": template("8")},
                    {"groupName": "small", "template": template("2")},
                ],
            },
        })
    };
    let workers = [
        r#"head 1 {"cpu":"1"}"#,
        r#"tpu 8 {"cpu":"8"}"#,
        r#"small 1 {"cpu":"2"}"#,
    ];
    assert_eq!(pods(&kind, &spec("HTTPMode")), workers);
    let with_submitter = [&workers[..], &[r#"submitter 1 {"cpu":"100m"}"#]].concat();
    assert_eq!(pods(&kind, &spec("K8sJobMode")), with_submitter);
}

/// `KubeRay` keeps the replicas of a group within its bounds.
#[test]
fn workers_of_a_ray_cluster_are_those_that_kuberay_creates() {
    let kind = checked("rayclusters.ray.io");
    let template = json!({"spec": {"containers": [{"name": "c"}]}});
    for (group, expected) in [
        (
            json!({"replicas": 0, "minReplicas": 5, "maxReplicas": 9}),
            5,
        ),
        (
            json!({"replicas": 7, "minReplicas": 5, "maxReplicas": 9}),
            7,
        ),
        (
            json!({"replicas": 10, "minReplicas": 0, "maxReplicas": 9}),
            9,
        ),
        (
            json!({"replicas": 0, "minReplicas": 5, "maxReplicas": 9, "numOfHosts": 4}),
            20,
        ),
        (json!({"replicas": 7, "suspend": true}), 0),
        (json!({"replicas": 0}), 0),
    ] {
        let mut worker = json!({"groupName": "w", "template": template});
        json_patch::merge(&mut worker, &group);
        let spec = json!({"headGroupSpec": {"template": template}, "workerGroupSpecs": [worker]});
        let job = kind
            .read(&json!({"metadata": {"name": "a"}, "spec": spec}))
            .unwrap();
        assert_eq!(job.pod_sets[1].count, expected, "{group}");
    }
}

/// The states of the projects' controllers, as Kueue's integration tests of the same kinds use them.
#[test]
fn states_of_shipped_kinds_are_read() {
    let ray = |deployment: &str, job: &str, cluster: &str| json!({"jobDeploymentStatus": deployment, "jobStatus": job, "rayClusterName": cluster});
    let spark = |state: &str| json!({"driverInfo": {}, "applicationState": {"state": state}});
    let mpi = |of: &str| json!({"conditions": [{"type": of, "status": "True"}]});
    for (resource, status, expected) in [
        (
            "rayjobs.ray.io",
            ray("Complete", "SUCCEEDED", "c"),
            Some(true),
        ),
        ("rayjobs.ray.io", ray("Failed", "FAILED", "c"), Some(false)),
        ("rayjobs.ray.io", ray("Running", "RUNNING", "c"), None),
        ("rayjobs.ray.io", ray("Retrying", "FAILED", "c"), None),
        (
            "rayjobs.ray.io",
            ray("ValidationFailed", "FAILED", ""),
            Some(false),
        ),
        // The cluster runs.
        (
            "rayjobs.ray.io",
            ray("ValidationFailed", "FAILED", "c"),
            None,
        ),
        ("rayclusters.ray.io", json!({"state": "failed"}), None),
        (
            "sparkapplications.sparkoperator.k8s.io",
            spark("COMPLETED"),
            Some(true),
        ),
        (
            "sparkapplications.sparkoperator.k8s.io",
            spark("FAILED"),
            Some(false),
        ),
        (
            "sparkapplications.sparkoperator.k8s.io",
            spark("FAILING"),
            None,
        ),
        (
            "sparkapplications.sparkoperator.k8s.io",
            spark("SUBMISSION_FAILED"),
            None,
        ),
        ("mpijobs.kubeflow.org", mpi("Succeeded"), Some(true)),
        ("mpijobs.kubeflow.org", mpi("Failed"), Some(false)),
        ("mpijobs.kubeflow.org", mpi("Restarting"), None),
    ] {
        let kind = checked(resource);
        let spec = match resource.split('.').next().unwrap() {
            "sparkapplications" => json!({"type": "Scala", "driver": {}, "executor": {}}),
            "mpijobs" => json!({"mpiReplicaSpecs": {"Worker": {"template": {"spec": {}}}}}),
            "rayjobs" => {
                json!({"rayClusterSpec": {"headGroupSpec": {"template": {"spec": {}}}, "workerGroupSpecs": []}})
            }
            _ => json!({"headGroupSpec": {"template": {"spec": {}}}, "workerGroupSpecs": []}),
        };
        let object = json!({
            "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind,
            "metadata": {"name": "a", "namespace": "team"}, "spec": spec, "status": status,
        });
        let job = kind
            .read(&object)
            .unwrap_or_else(|e| panic!("{resource}: {e}"));
        let result = job.result.map(|it| it.is_success);
        assert_eq!(result, expected, "{resource} {status}");
    }
}
