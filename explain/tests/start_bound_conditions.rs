//! When there is a latest start, and when there is none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, and build objects from literals"
)]

use lockkeeper_explain::{StartCondition, WorldBuilder, WorldSettings, explain, write_answer};
use serde_json::{Value, json};

/// The objects by which the cases differ, as changes by JSON pointer.
struct Case {
    /// `lockkeeper.dev/v1alpha1`, or a version of Kueue.
    api: &'static str,
    queue: Value,
    other_queue: Value,
    running: Value,
    pending: Value,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            api: "lockkeeper.dev/v1alpha1",
            queue: json!({}),
            other_queue: json!({}),
            running: json!({}),
            pending: json!({}),
        }
    }
}

fn object(api: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let mut object =
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if matches!(kind, "Workload" | "LocalQueue") {
        object["metadata"]["namespace"] = json!("ns");
    }
    object
}

/// The spec of a ClusterQueue with 4 cpu.
fn queue(changes: &Value) -> Value {
    let flavor = json!({"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]});
    let mut spec = json!({"queueingStrategy": "StrictFIFO", "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]});
    change(&mut spec, changes);
    spec
}

fn change(object: &mut Value, changes: &Value) {
    for (pointer, value) in changes.as_object().unwrap() {
        match pointer.rsplit_once('/') {
            Some((parent, key)) => object.pointer_mut(parent).unwrap()[key] = value.clone(),
            None => object[pointer] = value.clone(),
        }
    }
}

/// A workload of 3 cpu for ten minutes at most, created at midnight.
fn workload(api: &str, name: &str, changes: &Value) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "3"}}});
    let template = json!({"spec": {"containers": [container]}});
    let spec = json!({"queueName": "a", "maximumExecutionTimeSeconds": 600,
        "podSets": [{"name": "main", "count": 1, "template": template}]});
    let mut workload = object(api, "Workload", name, &spec);
    workload["metadata"]["uid"] = json!(name);
    workload["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    workload["status"] = json!({"conditions": []});
    change(&mut workload, changes);
    workload
}

/// The latest start of the workload `waits` behind `running`, and of `behind` it, at 00:05.
fn bounds(case: &Case) -> [Option<(String, StartCondition)>; 2] {
    let mut builder = WorldBuilder::new();
    let api = case.api;
    builder.add(object(api, "ResourceFlavor", "default", &json!({})));
    for (name, changes) in [("a", &case.queue), ("b", &case.other_queue)] {
        builder.add(object(api, "ClusterQueue", name, &queue(changes)));
        let local = json!({"clusterQueue": name});
        builder.add(object(api, "LocalQueue", name, &local));
    }
    let mut running = workload(api, "running", &json!({}));
    running["status"] = json!({
        "admission": {"clusterQueue": "a", "podSetAssignments": [{"name": "main", "count": 1,
            "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "3"}}]},
        "conditions": [{"type": "Admitted", "status": "True", "reason": "Admitted", "message": "",
            "lastTransitionTime": "2026-01-01T00:01:00Z"}],
    });
    change(&mut running, &case.running);
    builder.add(running);
    builder.add(workload(api, "waits", &case.pending));
    let mut behind = workload(api, "behind", &json!({}));
    behind["metadata"]["creationTimestamp"] = json!("2026-01-01T00:05:00Z");
    builder.add(behind);
    let world = builder.build(WorldSettings::default());
    assert_eq!(world.unreadable(), []);
    ["ns/waits", "ns/behind"].map(|key| {
        let answer = explain(&world, key).unwrap();
        let mut text = String::new();
        write_answer(&mut text, &answer).unwrap();
        let assumes = text.contains("for the latest start: ");
        let Some(bound) = answer.starts_by else {
            assert!(!text.contains("Starts by") && !assumes, "{text}");
            return None;
        };
        let line = format!("\nStarts by      {}, unless ", bound.time);
        assert!(text.contains(&line) && assumes, "{text}");
        Some((bound.time, bound.unless))
    })
}

#[track_caller]
fn check(case: &Case, expected: [Option<&str>; 2], unless: StartCondition) {
    let expected = expected.map(|it| it.map(|time| (format!("2026-01-01T{time}Z"), unless)));
    assert_eq!(bounds(case), expected);
}

#[track_caller]
fn check_none(case: &Case) {
    assert_eq!(bounds(case), [None, None]);
}

/// The first ends at 00:11, and each later one after ten minutes.
#[test]
fn workloads_of_a_strict_queue_start_in_order() {
    let case = Case::default();
    let times = [Some("00:11:00"), Some("00:21:00")];
    check(&case, times, StartCondition::HigherPriorityArrives);
    for api in ["kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"] {
        let case = Case {
            api,
            ..Case::default()
        };
        check(&case, times, StartCondition::HigherPriorityArrives);
    }
}

/// A pending workload without a limit delays those behind it for ever.
#[test]
fn workload_behind_one_without_a_limit_has_no_bound() {
    let case = Case {
        pending: json!({"/spec/maximumExecutionTimeSeconds": null}),
        ..Case::default()
    };
    let times = [Some("00:11:00"), None];
    check(&case, times, StartCondition::HigherPriorityArrives);
}

/// The other may start first, and then runs for ten minutes.
#[test]
fn workloads_of_other_queues_are_part_of_the_bound() {
    let best_effort = Case {
        queue: json!({"queueingStrategy": "BestEffortFIFO"}),
        ..Case::default()
    };
    let times = [Some("00:21:00"), Some("00:21:00")];
    check(&best_effort, times, StartCondition::WorkloadArrives);
    let cohort = Case {
        queue: json!({"cohortName": "c", "/resourceGroups/0/flavors/0/resources/0/borrowingLimit": "0"}),
        other_queue: json!({"cohortName": "c"}),
        ..Case::default()
    };
    let times = [Some("00:11:00"), Some("00:21:00")];
    check(&cohort, times, StartCondition::WorkloadArrives);
}

#[test]
fn unknown_ends_have_no_bound() {
    for running in [
        json!({"/spec/maximumExecutionTimeSeconds": null}),
        // It exceeds its limit.
        json!({"/spec/maximumExecutionTimeSeconds": 60}),
        json!({"/status/conditions/0/status": "False"}),
        json!({"/status/conditions/0/type": "Evicted"}),
    ] {
        check_none(&Case {
            running,
            ..Case::default()
        });
    }
}

#[test]
fn possible_preemption_has_no_bound() {
    check_none(&Case {
        queue: json!({"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}}),
        ..Case::default()
    });
    // Nothing has a lower priority.
    let times = [Some("00:11:00"), Some("00:21:00")];
    let case = Case {
        queue: json!({"preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}}),
        ..Case::default()
    };
    check(&case, times, StartCondition::HigherPriorityArrives);
}

#[test]
fn conditions_beyond_quota_have_no_bound() {
    check_none(&Case {
        queue: json!({"elastic": {}}),
        ..Case::default()
    });
    check_none(&Case {
        queue: json!({"placement": {}}),
        ..Case::default()
    });
    check_none(&Case {
        api: "kueue.x-k8s.io/v1beta1",
        queue: json!({"admissionChecks": ["check"]}),
        ..Case::default()
    });
}

#[test]
fn backoff_delays_the_bound() {
    let case = Case {
        pending: json!({"/status/requeueState": {"count": 1, "requeueAt": "2026-01-01T00:30:00Z"},
            "/status/conditions": [{"type": "Evicted", "status": "True", "reason": "PodsReadyTimeout", "message": "",
                "lastTransitionTime": "2026-01-01T00:02:00Z"}]}),
        ..Case::default()
    };
    let [waits, behind] = bounds(&case);
    let time = |it: &str| format!("2026-01-01T{it}Z");
    // Either may be the first after the end of the backoff.
    assert_eq!(
        waits,
        Some((time("00:30:00"), StartCondition::WorkloadArrives))
    );
    assert_eq!(
        behind,
        Some((time("00:21:00"), StartCondition::HigherPriorityArrives))
    );
}
