//! Renders the status of objects as text.

use std::fmt::Write;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// Condition types in the order of a workload's lifecycle.
const CONDITION_ORDER: [&str; 10] = [
    "QuotaReserved",
    "Admitted",
    "PodsReady",
    "Evicted",
    "Preempted",
    "EvictionStuck",
    "Requeued",
    "DeactivationTarget",
    "Finished",
    "Active",
];

/// The condition of an object.
pub fn condition<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|it| it["type"] == of)
}

/// Whether an object has a condition with this status.
pub fn has_status(object: &Value, of: &str, status: &str) -> bool {
    condition(object, of).is_some_and(|it| it["status"] == status)
}

/// The reason of a condition that is true; empty if it is not.
pub fn reason<'a>(object: &'a Value, of: &str) -> &'a str {
    let there = condition(object, of).filter(|it| it["status"] == "True");
    there
        .and_then(|it| it["reason"].as_str())
        .unwrap_or_default()
}

/// The message of a condition.
pub fn message<'a>(object: &'a Value, of: &str) -> &'a str {
    let there = condition(object, of);
    there
        .and_then(|it| it["message"].as_str())
        .unwrap_or_default()
}

/// The seconds of a timestamp since the epoch.
pub fn second(time: &Value) -> i64 {
    let time: Timestamp = time.as_str().unwrap().parse().unwrap();
    time.as_second()
}

/// A workload: its quota and its conditions.
pub fn render_workload(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap();
    let status = &object["status"];
    let mut text = format!("{name}: priority {}", status["priority"]);
    if status["preemptionPriority"] != status["priority"] {
        write!(text, ", as a victim {}", status["preemptionPriority"]).unwrap();
    }
    if object["spec"]["active"] == false {
        text.push_str(", inactive");
    }
    if let Some(count) = status["requeueState"]["count"].as_u64() {
        write!(text, ", requeued {count} times").unwrap();
    }
    text.push('\n');
    let admission = &status["admission"];
    for assignment in admission["podSetAssignments"]
        .as_array()
        .into_iter()
        .flatten()
    {
        writeln!(
            text,
            "  in {}: {} {} of {} with {}",
            admission["clusterQueue"],
            assignment["name"],
            assignment["count"],
            assignment["flavors"],
            assignment["resourceUsage"]
        )
        .unwrap();
    }
    text + &render_conditions(object)
}

/// A ClusterQueue, LocalQueue or Cohort: its counts and its conditions.
pub fn render_queue(object: &Value) -> String {
    let status = &object["status"];
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    let mut text = format!("{kind} {name}:");
    for (of, word) in [
        ("pendingWorkloads", "pending"),
        ("reservingWorkloads", "reserving"),
        ("admittedWorkloads", "admitted"),
    ] {
        if !status[of].is_null() {
            write!(text, " {} {word}", status[of]).unwrap();
        }
    }
    text.push('\n');
    for flavor in status["flavorsUsage"].as_array().into_iter().flatten() {
        for resource in flavor["resources"].as_array().into_iter().flatten() {
            writeln!(
                text,
                "  {} {}: {} used, {} borrowed",
                flavor["name"], resource["name"], resource["total"], resource["borrowed"]
            )
            .unwrap();
        }
    }
    assert_eq!(status["flavorsUsage"], status["flavorsReservation"]);
    text + &render_conditions(object)
}

/// An event.
pub fn render_event(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    format!("{} {}: {}", text("type"), text("reason"), text("note"))
}

fn render_conditions(object: &Value) -> String {
    let mut all: Vec<&Value> = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let place = |object: &Value| {
        let place = CONDITION_ORDER.iter().position(|of| object["type"] == *of);
        (
            place.unwrap_or(CONDITION_ORDER.len()),
            object["type"].to_string(),
        )
    };
    all.sort_by_key(|it| place(it));
    let generation = &object["metadata"]["generation"];
    let mut text = String::new();
    for object in all {
        let word = |key: &str| object[key].as_str().unwrap();
        let (of, status, reason) = (word("type"), word("status"), word("reason"));
        writeln!(text, "  {of}={status} {reason}: {}", word("message")).unwrap();
        assert!(
            object["observedGeneration"].as_u64() <= generation.as_u64(),
            "{object:#} of generation {generation}"
        );
    }
    text
}
