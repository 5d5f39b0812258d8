//! Traces with pods that are not ready at once.

use lockkeeper_simulate::timeline::{JobTrace, Timeline, simulate};
use serde_json::{Value, json};

pub(crate) fn queue(name: &str, nominal: u64) -> Value {
    json!({
        "name": name,
        "cohort": "all",
        "resourceGroups": [{
            "resources": ["cpu"],
            "flavors": [{"name": "f", "quotas": [{"resource": "cpu", "nominal": nominal}]}],
        }],
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    })
}

pub(crate) fn job(name: &str, arrival: u64, run: u64, cpu: u64) -> Value {
    json!({
        "name": name, "uid": name, "clusterQueue": "a", "arrival": arrival, "runSeconds": run,
        "podSets": [{"requests": {"cpu": cpu}}],
    })
}

/// A queue with a timeout of 30 s.
pub(crate) fn trace(jobs: &[Value]) -> Value {
    json!({
        "id": "pods",
        "clusterQueues": [queue("a", 4)],
        "waitForPodsReady": {"enable": true, "timeout": "30s"},
        "jobs": jobs,
    })
}

/// One job of 10 s, with more fields of the job and the trace.
pub(crate) fn single(of_job: &Value, of_trace: &Value) -> Value {
    let mut value = trace(&[job("j", 0, 10, 4)]);
    merge(&mut value["jobs"][0], of_job);
    merge(&mut value, of_trace);
    value
}

pub(crate) fn merge(value: &mut Value, with: &Value) {
    let (Value::Object(fields), Value::Object(with)) = (value, with) else {
        unreachable!("both are objects");
    };
    fields.extend(with.clone());
}

pub(crate) fn strategy(strategy: &Value) -> Value {
    json!({"waitForPodsReady": {"enable": true, "timeout": "30s", "requeuingStrategy": strategy}})
}

pub(crate) fn read(value: &Value) -> JobTrace {
    serde_json::from_value(value.clone()).unwrap()
}

pub(crate) fn run(value: &Value) -> Timeline {
    simulate(&read(value)).unwrap()
}
