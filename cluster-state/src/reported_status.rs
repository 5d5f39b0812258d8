//! What the controller reports about a workload and no other object shows.

use crate::cluster_state::{ClusterState, set_stuck};
use crate::pending_reason::{MANAGED_EXTERNALLY, POD_GROUP_INCOMPLETE, WAITING_FOR_NODES};
use crate::workloads::workload_key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockkeeper_api::Workload;

/// The condition of an evicted workload that does not release its quota within the bound.
pub const EVICTION_STUCK: &str = "EvictionStuck";

/// The pending reasons of workloads that the controller keeps out of their queue.
const KEPT_OUT: [&str; 3] = [MANAGED_EXTERNALLY, POD_GROUP_INCOMPLETE, WAITING_FOR_NODES];

/// Applies the status of a workload that was set before: keeps it out of its queue if the controller does, and
/// excludes it from the candidates for preemption if its eviction is stuck. For a state that makes the decisions of
/// the controller without its jobs, pods and nodes.
pub fn apply_reported_status(cluster: &mut ClusterState, workload: &Workload) {
    let key = workload_key(workload);
    if kept_out(workload).is_some() {
        cluster.hold_until(&key, i64::MAX);
    }
    let stuck = condition(workload, EVICTION_STUCK);
    set_stuck(cluster, &key, stuck.is_some_and(|it| it.status == "True"));
}

/// The condition of a pending workload that the controller keeps out of its queue, for a reason that only its jobs, pods and
/// nodes show. It may be about an older spec: the controller writes a reason again only if it changes.
#[must_use]
pub fn kept_out(workload: &Workload) -> Option<&Condition> {
    let status = workload.status.as_ref()?;
    if status.admission.is_some() {
        return None;
    }
    condition(workload, "QuotaReserved")
        .filter(|it| it.status == "False" && KEPT_OUT.contains(&it.reason.as_str()))
}

fn condition<'a>(workload: &'a Workload, of: &str) -> Option<&'a Condition> {
    let conditions = &workload.status.as_ref()?.conditions;
    conditions.iter().find(|it| it.type_ == of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn workload(condition: &Value) -> Workload {
        serde_json::from_value(json!({
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "w", "namespace": "team"},
            "spec": {"queueName": "q", "podSets": []},
            "status": {"conditions": [condition]},
        }))
        .unwrap()
    }

    #[test]
    fn only_reasons_of_jobs_pods_and_nodes_keep_a_workload_out() {
        for (status, reason, expected) in [
            ("False", "ManagedExternally", true),
            ("False", "PodGroupIncomplete", true),
            ("False", "WaitingForNodes", true),
            ("False", "WaitingForQuota", false),
            ("False", "Inadmissible", false),
            ("True", "WaitingForNodes", false),
        ] {
            let workload = workload(&json!({
                "type": "QuotaReserved", "status": status, "reason": reason, "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }));
            assert_eq!(kept_out(&workload).is_some(), expected, "{reason}");
        }
    }
}
