//! A group of pods that is queued as a whole: it has one workload, and its pods start together.
//!
//! A group is no object. The reconciler builds its view from those of its pods, and writes the pods.

use super::name_digest::fnv1a;
use super::{
    JobAdapter, JobParseError, JobView, POD, POD_GROUP, PodPlacement, PodSetView, Resource,
};
use crate::key::{JobKey, ObjectKey};
use k8s_openapi::api::core::v1::{PodSpec, PodStatus, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;
use lockkeeper_cluster_state::{PodGroupSource, pod_group_size};
use serde_json::{Value, json};

/// A group has one pod set for each shape of its pods.
pub(super) struct PodGroup;

impl JobAdapter for PodGroup {
    fn resource(&self) -> Resource {
        Resource::new(
            lockkeeper_api::GROUP,
            lockkeeper_api::VERSION,
            "PodGroup",
            "podgroups",
        )
    }

    fn is_built_in(&self) -> bool {
        true
    }

    fn member_kind(&self) -> Option<usize> {
        Some(POD)
    }

    fn pod_selector(&self, _: Option<&ObjectKey>, _: &str) -> Option<String> {
        None
    }

    fn parse(&self, _object: Value) -> Result<JobView, JobParseError> {
        Err(JobParseError {
            field: "kind",
            problem: "a pod group is not an object".to_owned(),
        })
    }

    fn templates(&self, source: &str) -> Vec<Value> {
        match super::parse_source(source) {
            Value::Array(templates) => templates,
            _ => Vec::new(),
        }
    }

    fn placement_patch(
        &self,
        _job: &JobView,
        _source: Option<&str>,
        _placed: &[PodPlacement],
    ) -> Option<Value> {
        None
    }
}

/// The group that a pod belongs to, as its fields, labels and annotations say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupClaim {
    /// Namespace and name of the group.
    pub group: ObjectKey,
    /// Where the number of pods is defined.
    pub source: PodGroupSource,
    /// The number of pods of the group; `None` if the annotation is missing or invalid, or the `PodGroup` is not known.
    pub total: Option<i32>,
    /// The least pods with which the group starts: at most `total`.
    pub needed: i32,
    /// When the pod was created, in seconds since 1970.
    pub created_s: i64,
    /// The name of the pod set of its shape: `pods-` and a digest of its requests and placement.
    pub shape: String,
    /// The pod set that it was started in.
    pub started_in: Option<String>,
    /// The message of the condition [`labels::POD_GROUP_CONDITION`] if that is false.
    pub reported: Option<String>,
}

impl GroupClaim {
    /// The claim of a pod; `None` without a group.
    pub(super) fn of_pod(
        metadata: &ObjectMeta,
        spec: &PodSpec,
        status: &PodStatus,
        template: &PodTemplateSpec,
    ) -> Option<Self> {
        let size = pod_group_size(metadata, spec)?;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let created = metadata.creation_timestamp.as_ref();
        let annotations = metadata.annotations.as_ref();
        let mut conditions = status.conditions.iter().flatten();
        let reported =
            conditions.find(|it| it.type_ == labels::POD_GROUP_CONDITION && it.status == "False");
        Some(Self {
            group: ObjectKey::new(namespace, &size.name),
            source: size.source,
            total: size.total,
            needed: size.needed,
            created_s: created.map_or(0, |it| it.0.as_second()),
            shape: shape_name(template),
            started_in: annotations.and_then(|it| it.get(labels::POD_SET)).cloned(),
            reported: reported.map(|it| it.message.clone().unwrap_or_default()),
        })
    }

    /// The claim of a pod that was started in this group and has lost its labels.
    #[must_use]
    pub(crate) fn of_unlabelled_pod(group: ObjectKey) -> Self {
        Self {
            group,
            source: PodGroupSource::Metadata,
            total: None,
            needed: i32::MAX,
            created_s: 0,
            shape: String::new(),
            started_in: None,
            reported: None,
        }
    }

    /// The key of the group.
    #[must_use]
    pub fn key(&self) -> JobKey {
        JobKey {
            kind: POD_GROUP,
            name: self.group.clone(),
        }
    }
}

/// The name of the pod set of all pods with this stripped template: `pods-` and eight hexadecimal digits.
fn shape_name(template: &PodTemplateSpec) -> String {
    // A template was decoded from JSON, so encoding it does not fail.
    let text = serde_json::to_string(template).unwrap_or_default();
    let digest = fnv1a(&[&text]);
    format!("pods-{:08x}", digest >> 32)
}

/// The uid of a group in the labels of its workload: a digest of its namespace and name. A group has no object with a uid.
#[must_use]
pub fn group_uid(group: &ObjectKey) -> String {
    format!("{:016x}", fnv1a(&[group.namespace(), group.name()]))
}

/// The text of the templates of a group's pod sets. A pod template needs names of containers, and those of the pods are not
/// kept.
#[must_use]
pub fn template_text(pod_sets: &[PodSetView]) -> String {
    let templates = pod_sets.iter().map(|pod_set| {
        let mut template = json!(*pod_set.template);
        for (list, prefix) in [("containers", "container"), ("initContainers", "init")] {
            let containers = template.pointer_mut(&format!("/spec/{list}"));
            let containers = containers.and_then(Value::as_array_mut);
            for (at, container) in containers.into_iter().flatten().enumerate() {
                if let Some(fields) = container.as_object_mut() {
                    let name = format!("{prefix}-{}", at.saturating_add(1));
                    fields.insert("name".to_owned(), json!(name));
                }
            }
        }
        template
    });
    Value::Array(templates.collect()).to_string()
}

#[cfg(test)]
mod tests;
