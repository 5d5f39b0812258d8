//! The line of a Workload, without its spec and the fields that no decision reads. It is written from the object itself: most lines of
//! a log are of this kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::{
    Admission, NominatedPlacement, ReclaimablePod, RequeueState, WorkloadStatus,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// A line that reads as a [`Record::Workload`](crate::record::Record::Workload).
#[derive(Serialize)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub(crate) enum WorkloadLine<'a> {
    Workload {
        metadata: MetadataFields<'a>,
        /// The number of a spec.
        spec: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<StatusFields<'a>>,
    },
}

impl<'a> WorkloadLine<'a> {
    pub(crate) fn new(workload: &'a Workload, spec: u32) -> Self {
        Self::Workload {
            metadata: MetadataFields::new(&workload.metadata),
            spec,
            status: workload.status.as_ref().map(StatusFields::new),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetadataFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletion_timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<String, String>>,
}

impl<'a> MetadataFields<'a> {
    fn new(metadata: &'a ObjectMeta) -> Self {
        Self {
            namespace: metadata.namespace.as_deref(),
            name: metadata.name.as_deref(),
            uid: metadata.uid.as_deref(),
            resource_version: metadata.resource_version.as_deref(),
            generation: metadata.generation,
            creation_timestamp: metadata.creation_timestamp.as_ref(),
            deletion_timestamp: metadata.deletion_timestamp.as_ref(),
            labels: metadata.labels.as_ref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preemption_priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<&'a Admission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requeue_state: Option<&'a RequeueState>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reclaimable_pods: &'a [ReclaimablePod],
    #[serde(skip_serializing_if = "Option::is_none")]
    nominated_placement: Option<&'a NominatedPlacement>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<ConditionFields<'a>>,
}

impl<'a> StatusFields<'a> {
    fn new(status: &'a WorkloadStatus) -> Self {
        // All fields: the compiler asks whether decisions read a new one.
        let WorkloadStatus {
            priority,
            preemption_priority,
            admission,
            requeue_state,
            reclaimable_pods,
            nominated_placement,
            scheduling_stats: _,
            conditions,
        } = status;
        Self {
            priority: *priority,
            preemption_priority: *preemption_priority,
            admission: admission.as_ref(),
            requeue_state: requeue_state.as_deref(),
            reclaimable_pods,
            nominated_placement: nominated_placement.as_ref(),
            conditions: conditions.iter().map(ConditionFields::new).collect(),
        }
    }
}

/// A condition with an empty message: no decision reads it, and it may be long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionFields<'a> {
    last_transition_time: &'a Time,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    reason: &'a str,
    status: &'a str,
    #[serde(rename = "type")]
    type_: &'a str,
}

impl<'a> ConditionFields<'a> {
    fn new(condition: &'a Condition) -> Self {
        Self {
            last_transition_time: &condition.last_transition_time,
            message: "",
            observed_generation: condition.observed_generation,
            reason: &condition.reason,
            status: &condition.status,
            type_: &condition.type_,
        }
    }
}
