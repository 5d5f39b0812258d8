//! The group of a pod, and its number of pods, as the pod says.

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;

/// Where the number of pods of a group is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodGroupSource {
    /// In labels and annotations of its pods.
    Metadata,
    /// In the `PodGroup` that its pods name in `spec.schedulingGroup`.
    PodGroup {
        /// The annotation with a larger number, if the pod has one.
        total: Option<i32>,
    },
}

/// The name of a group and its number of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodGroupSize {
    /// The name.
    pub name: String,
    /// Where the number is defined.
    pub source: PodGroupSource,
    /// The number of pods, if the pod has it.
    pub total: Option<i32>,
    /// The number of pods that the group needs to start; `i32::MAX` if the pod does not have it.
    pub needed: i32,
}

/// The group of a pod; `None` without one. The first source with a name decides: the project's own label, `spec.schedulingGroup`, the
/// labels of lightweight coscheduling, Koordinator's annotations, the labels of a LeaderWorkerSet. The last three count only
/// with a number of pods.
#[must_use]
pub fn pod_group_size(metadata: &ObjectMeta, spec: &PodSpec) -> Option<PodGroupSize> {
    let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
    let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let count = |text: Option<&str>| text?.parse().ok().filter(|it: &i32| *it > 0);
    let of_metadata = |name: &str, total: Option<i32>, needed: i32| PodGroupSize {
        name: name.to_owned(),
        source: PodGroupSource::Metadata,
        total,
        needed,
    };
    let annotated_total = count(annotation(labels::POD_GROUP_TOTAL_COUNT));
    if let Some(name) = label(labels::POD_GROUP_NAME) {
        let needed = annotated_total.unwrap_or(i32::MAX);
        return Some(of_metadata(name, annotated_total, needed));
    }
    let scheduling_group = spec.scheduling_group.as_ref();
    if let Some(name) = scheduling_group.and_then(|it| it.pod_group_name.as_deref()) {
        return Some(PodGroupSize {
            name: name.to_owned(),
            source: PodGroupSource::PodGroup {
                total: annotated_total,
            },
            total: None,
            needed: i32::MAX,
        });
    }
    if let Some(name) = label(labels::COSCHEDULING_NAME) {
        let least = count(label(labels::COSCHEDULING_MIN_AVAILABLE))?;
        return Some(of_metadata(name, Some(least), least));
    }
    if let Some(name) = annotation(labels::GANG_NAME) {
        let least = count(annotation(labels::GANG_MIN_AVAILABLE))?;
        let total = count(annotation(labels::GANG_TOTAL)).unwrap_or(least);
        return Some(of_metadata(name, Some(total.max(least)), least));
    }
    let set = label(labels::LEADER_WORKER_SET)?;
    let index = label(labels::LEADER_WORKER_GROUP)?;
    let size = count(annotation(labels::LEADER_WORKER_SIZE))?;
    Some(of_metadata(&format!("{set}-{index}"), Some(size), size))
}
