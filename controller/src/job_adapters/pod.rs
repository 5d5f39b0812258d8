//! A pod with the queue label. It waits with a scheduling gate, and is deleted when it loses its quota.

use super::{
    GroupClaim, JobAdapter, JobParseError, JobResult, JobView, PodPlacement, PodSetView, Resource,
    StopMethod, TemplateSource, decode, job_view_from_metadata, pod_template_patch, strip_template,
};
use crate::key::ObjectKey;
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;
use lockkeeper_api::workload::POD_SET_NAME_DEFAULT;
use lockkeeper_cluster_state::PodGroupSource;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A pod has one pod set of one pod.
pub(super) struct SinglePod;

/// The fields of a pod that its workload has: what decisions read, and what identifies the containers.
const TEMPLATE_FIELDS: [&str; 12] = [
    "affinity",
    "containers",
    "hostNetwork",
    "initContainers",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "resources",
    "restartPolicy",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
];

/// The fields of a container that its workload has.
const CONTAINER_FIELDS: [&str; 5] = ["image", "name", "ports", "resources", "restartPolicy"];

impl JobAdapter for SinglePod {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Pod", "pods")
    }

    fn is_built_in(&self) -> bool {
        true
    }

    fn pod_selector(&self, _: Option<&ObjectKey>, _: &str) -> Option<String> {
        None
    }

    fn list_page_size(&self) -> u32 {
        // Pods are more, and smaller, than jobs.
        100
    }

    fn stop_method(&self) -> StopMethod {
        StopMethod::Delete
    }

    fn start_patch(&self, job: &JobView) -> Value {
        let gates = job.other_gates.iter().map(|name| json!({"name": name}));
        let gates: Vec<Value> = gates.collect();
        let gates = (!gates.is_empty()).then_some(gates);
        json!({"schedulingGates": gates})
    }

    fn parse(&self, object: Value) -> Result<JobView, JobParseError> {
        let pod: Pod = decode("pod", object)?;
        let spec = pod.spec.unwrap_or_default();
        let status = pod.status.unwrap_or_default();
        let gates = spec.scheduling_gates.as_deref().unwrap_or_default();
        let is_gated = gates.iter().any(|it| it.name == labels::ADMISSION_GATE);
        let others = gates
            .iter()
            .filter(|it| it.name != labels::ADMISSION_GATE)
            .map(|it| it.name.clone())
            .collect();
        let template = Arc::new(strip_template(PodTemplateSpec {
            metadata: Some(pod.metadata.clone()),
            spec: Some(PodSpec {
                // The API server has added the overhead of the class.
                runtime_class_name: None,
                ..spec.clone()
            }),
        }));
        let group = GroupClaim::of_pod(&pod.metadata, &spec, &status, &template);
        let ended = pod_result(&pod.metadata, &status, is_gated);
        let is_stopped = is_gated || ended.is_some();
        let termination_end = pod.metadata.deletion_timestamp.as_ref();
        let termination_end_s = termination_end.map(|it| it.0.as_second());
        // A PodGroup may say that its pods start one by one.
        let may_be_alone = group
            .as_ref()
            .is_none_or(|it| it.source != PodGroupSource::Metadata);
        let template_source = if is_gated && ended.is_none() && may_be_alone {
            TemplateSource::from_json(Some(&template_text(&pod.metadata, &spec)))
        } else {
            TemplateSource::NotKept
        };
        let of_metadata = job_view_from_metadata(&pod.metadata);
        let class = of_metadata.priority_class.clone();
        let class_of_pod = spec.priority_class_name.clone();
        Ok(JobView {
            // A claim of an owner must exempt no pod from its quota.
            parent: None,
            is_unchanged: true,
            termination_end_s: termination_end_s.filter(|_| !is_stopped),
            priority_class: class.or(class_of_pod.filter(|it| !it.is_empty())),
            is_suspended: is_stopped,
            is_quiescent: is_stopped,
            is_ready: is_true(&status, "Ready"),
            is_disrupted: is_true(&status, "DisruptionTarget"),
            is_soft_evicted: has_label(&pod.metadata, labels::SOFT_EVICTION),
            saved_placement: None,
            nominated_node: status.nominated_node_name.filter(|it| !it.is_empty()),
            other_gates: others,
            result: ended,
            pod_sets: vec![PodSetView {
                name: POD_SET_NAME_DEFAULT.to_owned(),
                count: 1,
                remaining: 1,
                job_count: 0,
                min_count: None,
                template,
            }],
            group: group.map(Box::new),
            template_source,
            ..of_metadata
        })
    }

    fn placement_patch(
        &self,
        job: &JobView,
        _source: Option<&str>,
        placed: &[PodPlacement],
    ) -> Option<Value> {
        let pod_sets = job.pod_sets.first().zip(placed.first());
        Some(pod_sets.map_or_else(|| json!({}), |(have, want)| pod_template_patch(have, want)))
    }
}

/// The result of a pod that has ended. One that is deleted while it waits never runs.
fn pod_result(metadata: &ObjectMeta, status: &PodStatus, is_gated: bool) -> Option<JobResult> {
    let message = status.message.clone();
    match status.phase.as_deref() {
        Some("Succeeded") => Some(JobResult {
            is_success: true,
            message: message.unwrap_or_else(|| "The pod has succeeded".to_owned()),
        }),
        Some("Failed") => Some(JobResult {
            is_success: false,
            message: message.unwrap_or_else(|| "The pod has failed".to_owned()),
        }),
        _ if is_gated && metadata.deletion_timestamp.is_some() => Some(JobResult {
            is_success: false,
            message: "The pod was deleted before it was admitted".to_owned(),
        }),
        _ => None,
    }
}

fn has_label(metadata: &ObjectMeta, key: &str) -> bool {
    let labels = metadata.labels.as_ref();
    labels.is_some_and(|it| it.contains_key(key))
}

fn is_true(status: &PodStatus, condition: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|it| it.type_ == condition && it.status == "True")
}

/// The pod template of the workload: the fields of [`TEMPLATE_FIELDS`], and the labels that decisions read.
fn template_text(metadata: &ObjectMeta, pod_spec: &PodSpec) -> Value {
    // The spec was decoded from JSON, so encoding it does not fail.
    let mut spec = serde_json::to_value(pod_spec).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        retain(fields, &TEMPLATE_FIELDS);
        for list in ["containers", "initContainers"] {
            let containers = fields.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                if let Some(fields) = container.as_object_mut() {
                    retain(fields, &CONTAINER_FIELDS);
                }
            }
        }
    }
    let mut template = json!({"spec": spec});
    let read = super::pod_template::decision_labels(pod_spec);
    let labels = metadata.labels.iter().flatten();
    let labels: Map<String, Value> = labels
        .filter(|(key, _)| read.contains(key.as_str()))
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    if !labels.is_empty()
        && let Some(template) = template.as_object_mut()
    {
        template.insert("metadata".to_owned(), json!({"labels": labels}));
    }
    template
}

fn retain(fields: &mut Map<String, Value>, kept: &[&str]) {
    fields.retain(|key, value| {
        let is_empty = value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        kept.contains(&key.as_str()) && !is_empty
    });
}

#[cfg(test)]
mod tests;
