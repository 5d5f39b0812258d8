//! The fields of Workloads and PodGroups that an API server drops, in cases that are not recorded.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests fail by panicking")]

use lockkeeper_api::foreign::scheduling::{PodGroup, Workload};
use lockkeeper_policies::scheduling::strategy::{
    prepare_pod_group, prepare_pod_group_status, prepare_workload,
};
use lockkeeper_policies::settings::Settings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn decoded<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

/// A PodGroup with this many claims, and a status for one of them.
fn group(claims: usize, generation: i64) -> PodGroup {
    let claims: Vec<Value> = (0..claims)
        .map(|n| json!({"name": format!("c{n}")}))
        .collect();
    decoded(&json!({
        "metadata": {"name": "a", "generation": generation},
        "spec": {"resourceClaims": claims},
        "status": {"resourceClaimStatuses": [{"name": "c0"}]},
    }))
}

#[test]
fn prepare_update_keeps_used_claims_without_gate() {
    let off = Settings::default();
    let mut new = group(2, 1);
    prepare_pod_group(&mut new, Some(&group(1, 1)), &off);
    assert_eq!(new, group(2, 1));
    prepare_pod_group(&mut new, Some(&group(0, 1)), &off);
    assert_eq!(new, group(0, 1));
}

#[test]
fn prepare_status_update_keeps_spec_and_metadata() {
    let off = Settings::default();
    let mut new = group(2, 2);
    prepare_pod_group_status(&mut new, &group(1, 1), &off);
    assert_eq!(new, group(1, 1));
    let mut new = group(0, 1);
    prepare_pod_group_status(&mut new, &group(0, 1), &off);
    assert!(new.status.resource_claim_statuses.is_empty());
}

#[test]
fn templates_are_compared_by_position() {
    let workload = |priorities: &[Option<i32>]| -> Workload {
        let template = |priority: &Option<i32>| json!({"name": "t", "priority": priority});
        let templates: Vec<Value> = priorities.iter().map(template).collect();
        decoded(&json!({"spec": {"podGroupTemplates": templates}}))
    };
    let mut new = workload(&[Some(1), Some(2), Some(3)]);
    let old = workload(&[None, Some(9)]);
    prepare_workload(&mut new, Some(&old), &Settings::default());
    assert_eq!(new, workload(&[None, Some(2), None]));
}
