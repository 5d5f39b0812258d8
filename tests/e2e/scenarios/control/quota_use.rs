//! The quota that a workload holds and the cpus that a pod uses, as the API server shows them.

use serde_json::{Value, json};

use super::render;

/// The cpus of a pod that has neither ended nor is terminating; of the others none.
pub fn pod_cpu(pod: &Value) -> u64 {
    let has_ended = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    let is_running = pod["deletedVersion"].is_null()
        && pod["metadata"]["deletionTimestamp"].is_null()
        && !has_ended;
    let containers = pod["spec"]["containers"].as_array();
    let cpus = containers.into_iter().flatten().map(|it| {
        text(&it["resources"]["requests"]["cpu"])
            .parse()
            .unwrap_or(0)
    });
    if is_running { cpus.sum() } else { 0 }
}

/// Whether a workload holds quota.
pub fn holds_quota(object: &Value) -> bool {
    object["deletedVersion"].is_null()
        && object["status"]["admission"].is_object()
        && render::has_status(object, "QuotaReserved", "True")
        && !render::has_status(object, "Finished", "True")
}

/// The change that admits a workload of `count` pods, which use `cpu` together, since `time`.
pub fn admission(queue: &str, count: i64, cpu: i64, time: &Value) -> Value {
    let condition = |of: &str| json!({"type": of, "status": "True", "reason": of, "message": "", "lastTransitionTime": time});
    json!({"status": {
        "admission": {"clusterQueue": queue, "podSetAssignments": [{
            "name": "main", "count": count, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": cpu},
        }]},
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
    }})
}

/// The queue that a workload uses quota of, and how many cpus. Reclaimable pods use none.
pub fn queue_and_cpu(object: &Value) -> (String, u64) {
    let admission = &object["status"]["admission"];
    let assignments = admission["podSetAssignments"].as_array();
    let used = assignments.into_iter().flatten().map(|pods| {
        let cpus: u64 = text(&pods["resourceUsage"]["cpu"]).parse().unwrap();
        let count = pods["count"].as_u64().unwrap_or(1);
        cpus * (count - reclaimable_pods(object, &pods["name"])) / count
    });
    (text(&admission["clusterQueue"]).to_owned(), used.sum())
}

/// The number of pods of a pod set that gave back their quota.
fn reclaimable_pods(object: &Value, pod_set: &Value) -> u64 {
    let reclaimable = object["status"]["reclaimablePods"].as_array();
    let mut of_pod_set = reclaimable
        .into_iter()
        .flatten()
        .filter(|it| it["name"] == *pod_set);
    of_pod_set
        .next()
        .and_then(|it| it["count"].as_u64())
        .unwrap_or(0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
