//! The default `spec.suspend: true` of jobs with the queue label: the controller starts them when they are admitted.

use crate::defaulting::Defaults;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels;

/// Sets `spec.suspend: true` in a new job with the queue label, also if its own value is false: a queued job waits for
/// quota. `is_suspended` is `None` without a `spec`; the API server rejects such a job.
///
/// The owner of a Job is not considered: any user may write an owner reference. JobSet's controller resumes the Jobs of a
/// JobSet that is not suspended.
pub(crate) fn default_suspend(
    metadata: &ObjectMeta,
    is_suspended: Option<bool>,
    is_new: bool,
) -> Defaults {
    let mut out = Defaults::default();
    let labels = metadata.labels.as_ref();
    // An empty queue name counts: the controller selects jobs by the presence of the label.
    let is_queued = labels.is_some_and(|labels| labels.contains_key(labels::QUEUE_NAME));
    if is_new && is_queued && is_suspended == Some(false) {
        out.set(FieldPath::new("spec.suspend"), true);
    }
    out
}
