//! Objects as users write them.

use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "team";
pub const QUEUES: [&str; 3] = ["qa", "qb", "qc"];
pub const COHORTS: [&str; 2] = ["all", "sub"];
pub const FLAVORS: [&str; 2] = ["spot", "solid"];
pub const CLASSES: [(&str, i32); 3] = [("low", 10), ("mid", 100), ("high", 1000)];
/// The annotation that determines the fate of a Job's pods.
pub const POD_FATE_ANNOTATION: &str = "/metadata/annotations/fate";

fn lockkeeper_object(kind: &str, namespace: Option<&str>, name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": kind,
        "metadata": {"name": name}, "spec": spec,
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

pub fn flavor(name: &str) -> Value {
    let spec = match name {
        "spot" => json!({
            "nodeLabels": {"kind": "spot"},
            "nodeTaints": [{"key": "spot", "value": "yes", "effect": "NoSchedule"}],
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        }),
        name => json!({"nodeLabels": {"kind": name}}),
    };
    lockkeeper_object("ResourceFlavor", None, name, &spec)
}

pub fn class(name: &str, value: i32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value, "globalDefault": name == "mid",
    })
}

pub fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

pub fn resource_groups(dice: &mut Rng, in_cohort: bool) -> Value {
    let mut flavors = Vec::new();
    let first = dice.below(2);
    for name in FLAVORS.iter().skip(first) {
        let mut cpu = json!({"name": "cpu", "nominalQuota": dice.range(0, 5)});
        if in_cohort && dice.percent(25) {
            cpu["borrowingLimit"] = json!(dice.range(0, 3).to_string());
        }
        if in_cohort && dice.percent(25) {
            let most = cpu["nominalQuota"].as_i64().unwrap();
            cpu["lendingLimit"] = json!(dice.range(0, most).to_string());
        }
        cpu["nominalQuota"] = json!(cpu["nominalQuota"].as_i64().unwrap().to_string());
        flavors.push(json!({"name": name, "resources": [cpu]}));
    }
    json!([{"coveredResources": ["cpu"], "flavors": flavors}])
}

pub fn cluster_queue(dice: &mut Rng, name: &str) -> Value {
    let cohort = match dice.below(5) {
        0 => None,
        1 => Some("sub"),
        _ => Some("all"),
    };
    let mut spec = json!({
        "namespaceSelector": {},
        "resourceGroups": resource_groups(dice, cohort.is_some()),
        "queueingStrategy": dice.pick(&["BestEffortFIFO", "StrictFIFO", "BestEffortFIFO"]),
        "preemption": {
            "withinClusterQueue": dice.pick(&["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
            "reclaimWithinCohort": dice.pick(&["Never", "LowerPriority", "Any"]),
        },
    });
    if let Some(cohort) = cohort {
        spec["cohortName"] = json!(cohort);
    }
    if spec["queueingStrategy"] == "StrictFIFO" && dice.percent(60) {
        spec["backfill"] = json!({"policy": dice.pick(&["Easy", "Conservative"])});
    }
    if dice.percent(25) {
        spec["preemption"]["borrowWithinCohort"] = json!({"policy": "LowerPriority"});
    }
    if dice.percent(20) {
        spec["flavorFungibility"] = json!({"whenCanPreempt": "MayStopSearch"});
    }
    let mut object = lockkeeper_object("ClusterQueue", None, name, &spec);
    if dice.percent(50) {
        object["metadata"]["finalizers"] = json!(["lockkeeper.dev/resource-in-use"]);
    }
    object
}

pub fn cohort(dice: &mut Rng, name: &str) -> Value {
    let mut spec = json!({});
    if name == "sub" && dice.percent(70) {
        spec["parentName"] = json!("all");
    }
    if dice.percent(30) {
        spec["resourceGroups"] = resource_groups(dice, false);
    }
    lockkeeper_object("Cohort", None, name, &spec)
}

pub fn local_queue(queue: &str) -> Value {
    let spec = json!({"clusterQueue": queue});
    lockkeeper_object("LocalQueue", Some(NAMESPACE), queue, &spec)
}

pub fn template(dice: &mut Rng, cpu: i64) -> Value {
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "work", "image": "registry.example.com/work:1",
            "resources": {"requests": {"cpu": cpu.to_string()}},
        }],
    });
    if dice.percent(20) {
        spec["nodeSelector"] = json!({"disk": "fast"});
    }
    if dice.percent(15) {
        spec["tolerations"] = json!([{"key": "own", "operator": "Exists"}]);
    }
    json!({"spec": spec})
}

pub fn job(dice: &mut Rng, name: &str) -> Value {
    let fates = [
        "done", "done", "done", "forever", "forever", "forever", "unready", "late", "fails",
        "flaky", "silent", "mute",
    ];
    let fate = dice.pick(&fates);
    let count = dice.range(1, 3);
    let cpu = dice.range(1, 3);
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": NAMESPACE,
            "labels": {"lockkeeper.dev/queue-name": dice.pick(&QUEUES)},
            "annotations": {"fate": fate},
        },
        "spec": {
            "parallelism": count, "completions": count,
            "suspend": !dice.percent(10),
            "template": template(dice, cpu),
        },
    });
    let metadata = &mut object["metadata"];
    if dice.percent(70) {
        let (class, _) = dice.pick(&CLASSES);
        metadata["labels"]["lockkeeper.dev/priority-class"] = json!(class);
    }
    if dice.percent(25) {
        let limit = dice.pick(&["30", "300", "300"]);
        metadata["labels"]["lockkeeper.dev/max-exec-time-seconds"] = json!(limit);
    }
    if dice.percent(6) {
        object["spec"]["managedBy"] = json!("example.com/none");
    }
    let metadata = &mut object["metadata"];
    if dice.percent(6) {
        metadata["ownerReferences"] = json!([foreign_owner(dice)]);
    }
    if count > 1 && dice.percent(15) {
        metadata["annotations"]["lockkeeper.dev/job-min-parallelism"] = json!("1");
    }
    object
}

/// An owner reference to an object that does not exist, or of a kind that the controller does not know.
pub fn foreign_owner(dice: &mut Rng) -> Value {
    let (api_version, kind) = dice.pick(&[
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("v1", "ConfigMap"),
        ("example.com/v1", "Anything"),
    ]);
    json!({"apiVersion": api_version, "kind": kind, "name": "nope", "uid": "invented", "controller": true})
}

/// A workload that no job owns.
pub fn workload(dice: &mut Rng, name: &str) -> Value {
    let cpu = dice.range(1, 3);
    let mut spec = json!({
        "queueName": dice.pick(&QUEUES),
        "podSets": [{"count": dice.range(1, 3), "template": template(dice, cpu)}],
    });
    if dice.percent(70) {
        let (class, _) = dice.pick(&CLASSES);
        spec["priorityClassName"] = json!(class);
    }
    let mut object = lockkeeper_object("Workload", Some(NAMESPACE), name, &spec);
    if dice.percent(20) {
        object["metadata"]["ownerReferences"] = json!([foreign_owner(dice)]);
    }
    object
}
