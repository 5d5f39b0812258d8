//! Kinds of other projects.

use super::{quota, request, review, server, server_with};
use serde_json::{Value, json};

/// A ClusterQueue of Kueue's with this specification.
fn of_kueue(spec: &Value) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
        "metadata": {"name": "example"}, "spec": spec,
    })
}

/// What is answered to an object of Kueue's that is made.
async fn made_for_kueue(config: &Value, object: &Value) -> Value {
    let kind = object["kind"].as_str().unwrap();
    let objects = json!({ "object": object });
    let made = request("kueue.x-k8s.io", "v1beta2", kind, "CREATE", &objects);
    review(&server_with(config), "/validate", &made).await
}

#[tokio::test]
async fn what_kueue_enforces_itself_is_off_for_its_queues_and_ours_is_on_top() {
    let mut spec = quota("5");
    spec["preemption"] = json!({"withinClusterQueue": "Never"});
    let answer = made_for_kueue(&json!({}), &of_kueue(&spec)).await;
    assert_eq!(
        (&answer["allowed"], &answer["warnings"]),
        (&json!(true), &Value::Null)
    );

    let pointless = of_kueue(&json!({"preemption": {"reclaimWithinCohort": "Any"}}));
    let answer = made_for_kueue(&json!({}), &pointless).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("CQ022 spec.preemption.reclaimWithinCohort"),
        "{warning}"
    );

    let config = json!({"rules": {"actions": {"CQ007": "enforce", "CQ022": "enforce"}}});
    for (object, field) in [
        (
            of_kueue(&spec),
            "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
        ),
        (pointless, "spec.preemption.reclaimWithinCohort"),
    ] {
        let answer = made_for_kueue(&config, &object).await;
        let status = &answer["status"];
        assert_eq!(status["code"], 422, "{answer}");
        assert_eq!(status["details"]["group"], "kueue.x-k8s.io");
        assert_eq!(status["details"]["causes"][0]["field"], field);
    }
}

#[tokio::test]
async fn every_kind_of_others_is_known() {
    for kind in [
        "ClusterQueue",
        "Cohort",
        "ResourceFlavor",
        "LocalQueue",
        "Workload",
    ] {
        let mut object = of_kueue(&json!({}));
        object["kind"] = json!(kind);
        let answer = made_for_kueue(&json!({}), &object).await;
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

/// It may be of a newer form than is known here.
#[tokio::test]
async fn an_object_of_others_that_does_not_decode_passes() {
    let newer = of_kueue(&json!({"cohortName": {"name": "c"}}));
    let answer = made_for_kueue(&json!({}), &newer).await;
    assert_eq!(answer["allowed"], true);
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("not checked: spec.cohortName"),
        "{warning}"
    );
}
