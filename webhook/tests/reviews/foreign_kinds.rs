//! Kinds of other projects.

use super::{quota, request, review, server, server_with};
use serde_json::{Value, json};

/// Returns a ClusterQueue of Kueue with this spec.
fn kueue_queue(spec: &Value) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "example"}, "spec": spec,
    })
}

/// Returns the response to the creation of an object of Kueue.
async fn create_with_config(config: &Value, object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap();
    let objects = json!({ "object": object });
    let made = request("kueue.x-k8s.io", "v1beta2", kind, "CREATE", &objects);
    review(&server_with(config), "/validate", &made).await
}

#[tokio::test]
async fn kueue_queues_skip_rules_kueue_enforces() {
    let mut spec = quota("5");
    spec["preemption"] = json!({"withinClusterQueue": "Never"});
    let answer = create_with_config(&json!({}), &kueue_queue(&spec)).await;
    assert_eq!(
        (&answer["allowed"], &answer["warnings"]),
        (&json!(true), &Value::Null)
    );

    let pointless = kueue_queue(&json!({"preemption": {"reclaimWithinCohort": "Any"}}));
    let answer = create_with_config(&json!({}), &pointless).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("CQ022 spec.preemption.reclaimWithinCohort"),
        "{warning}"
    );

    let config = json!({"rules": {"actions": {"CQ007": "enforce", "CQ022": "enforce"}}});
    for (object, field) in [
        (
            kueue_queue(&spec),
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        ),
        (pointless, "spec.preemption.reclaimWithinCohort"),
    ] {
        let answer = create_with_config(&config, &object).await;
        let status = &answer["status"];
        assert_eq!(status["code"], 422, "{answer}");
        assert_eq!(status["details"]["group"], "kueue.x-k8s.io");
        assert_eq!(status["details"]["causes"][0]["field"], field);
    }
}

#[tokio::test]
async fn all_foreign_kinds_are_routed() {
    for kind in [
        "ClusterQueue",
        "Cohort",
        "ResourceFlavor",
        "LocalQueue",
        "Workload",
    ] {
        let mut object = kueue_queue(&json!({}));
        object["kind"] = json!(kind);
        let answer = create_with_config(&json!({}), &object).await;
        assert_eq!(
            (&answer["allowed"], &answer["warnings"]),
            (&json!(true), &Value::Null)
        );
    }
    let quota = json!({
        "metadata": {"name": "a", "namespace": "team", "labels": {"quota.scheduling.koordinator.sh/parent": "a"}},
    });
    let objects = json!({ "object": quota });
    let group = "scheduling.sigs.k8s.io";
    let made = request(group, "v1alpha1", "ElasticQuota", "CREATE", &objects);
    let answer = review(&server(), "/validate", &made).await;
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("EQ021 "), "{warning}");
}

/// The object may have a newer schema than this build.
#[tokio::test]
async fn undecodable_foreign_object_is_allowed() {
    let newer = kueue_queue(&json!({"cohortName": {"name": "c"}}));
    let answer = create_with_config(&json!({}), &newer).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("not checked: spec.cohortName"),
        "{warning}"
    );
}
