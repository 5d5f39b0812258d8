//! The default `spec.suspend: true` of jobs with the queue label: the controller starts them when they are admitted.

use crate::defaulting::Defaults;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::{job_set, labels};

/// Sets `spec.suspend: true` in a new job with the queue label, also if its own value is false: a queued job waits for
/// quota. `is_suspended` is `None` without a `spec`; the API server rejects such a job.
///
/// A Job that a JobSet controls is not changed: the JobSet is queued for all of its Jobs, and they have its label if
/// their templates have it.
pub(crate) fn default_suspend(
    metadata: &ObjectMeta,
    is_suspended: Option<bool>,
    is_new: bool,
) -> Defaults {
    let mut out = Defaults::default();
    let labels = metadata.labels.as_ref();
    // An empty queue name counts: the controller selects jobs by the presence of the label.
    let is_queued = labels.is_some_and(|labels| labels.contains_key(labels::QUEUE_NAME));
    let mut owners = metadata.owner_references.iter().flatten();
    if is_new && is_queued && is_suspended == Some(false) && !owners.any(is_controlled_by_job_set) {
        out.set(FieldPath::new("spec.suspend"), true);
    }
    out
}

/// Whether a JobSet, in any API version, controls the object.
fn is_controlled_by_job_set(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.controller == Some(true) && owner.kind == job_set::KIND && group == Some(job_set::GROUP)
}
