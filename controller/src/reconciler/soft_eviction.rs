//! Soft eviction: victims are marked with a label, and another component deletes them when their work is saved.
//!
//! Source: Koordinator's proposal 20240115-support-job-level-preemption, "Adaptive Eviction Approach".

use super::model::{Model, TrackedWorkload};
use super::preemption_traits::traits;
use super::status::conditions::find;
use crate::key::ObjectKey;
use lockkeeper_api::labels::SOFT_EVICTION;
use lockkeeper_api::soft_eviction::PreemptorRef;
use lockkeeper_cluster_state::{ClusterState, PreemptionMessage};
use lockkeeper_preemption::job::VictimAction;
use serde_json::{Value, json};

/// The uid of the preemptor of a workload whose pods are marked, and not deleted; empty if it is unknown. `None` for a
/// workload that was not preempted, or whose queue has its victims deleted.
pub(super) fn soft_evicted_for<'a>(
    cluster: &ClusterState,
    workload: &'a TrackedWorkload,
) -> Option<&'a str> {
    if !workload.is_evicted() || !workload.holds_quota() {
        return None;
    }
    let status = workload.object.status.as_ref()?;
    // The reason of a later eviction, such as the stop of its queue, is another one: then the pods are deleted.
    let evicted = find(&status.conditions, "Evicted").filter(|it| it.reason == "Preempted")?;
    let action = traits(cluster, workload).victim_action;
    (action == VictimAction::SoftEvict).then(|| {
        PreemptionMessage::parse(&evicted.message)
            .uid
            .unwrap_or_default()
    })
}

/// The patch that marks a pod for its preemptor. Costs the workloads of the namespace.
pub(super) fn soft_eviction_patch(
    model: &Model,
    namespace: &str,
    pod_uid: &str,
    preemptor_uid: &str,
) -> Value {
    let preemptor = preemptor_ref(model, namespace, preemptor_uid);
    // Text as JSON: encoding it does not fail.
    let annotation = preemptor.annotation().unwrap_or_default();
    json!({"metadata": {
        "uid": pod_uid,
        "labels": {SOFT_EVICTION: preemptor.label()},
        "annotations": {SOFT_EVICTION: annotation},
    }})
}

/// The job of a preemptor. In another namespace it is known by its uid alone: its name belongs to another tenant.
fn preemptor_ref(model: &Model, namespace: &str, uid: &str) -> PreemptorRef {
    let from = ObjectKey::new(namespace, "");
    let workloads = model.workloads.range(from..);
    let mut of_namespace = workloads
        .map(|(_, it)| it)
        .take_while(|it| it.key.namespace() == namespace);
    let preemptor = of_namespace.find(|it| it.object.metadata.uid.as_deref() == Some(uid));
    match preemptor {
        Some(workload) => {
            let job = workload.job.as_ref().map(|it| &it.name);
            PreemptorRef {
                job: job.unwrap_or(&workload.key).name().to_owned(),
                namespace: Some(namespace.to_owned()),
            }
        }
        None => PreemptorRef {
            job: uid.to_owned(),
            namespace: None,
        },
    }
}
