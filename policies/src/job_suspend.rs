//! Jobs that name a queue are made suspended: the queue starts them.

use crate::defaulting::Defaults;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::{job_set, labels};

/// `spec.suspend: true` for a new job with the label of a queue, whatever it says itself: who names a
/// queue waits in it. An empty name is one too: the label is there, and by it the controller knows its jobs.
/// `is_suspended` is absent where there is no `spec`; whoever knows the kind refuses that.
///
/// A Job that a JobSet controls is left alone: the JobSet waits in the queue for all of its Jobs, which
/// have its label if their templates do.
pub(crate) fn default_suspend(
    metadata: &ObjectMeta,
    is_suspended: Option<bool>,
    is_new: bool,
) -> Defaults {
    let mut out = Defaults::default();
    let labels = metadata.labels.as_ref();
    let is_queued = labels.is_some_and(|labels| labels.contains_key(labels::QUEUE_NAME));
    let mut owners = metadata.owner_references.iter().flatten();
    if is_new && is_queued && is_suspended == Some(false) && !owners.any(is_controlled_by_job_set) {
        out.set(FieldPath::new("spec.suspend"), true);
    }
    out
}

/// Whether a JobSet, of whatever version, controls the object.
fn is_controlled_by_job_set(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.controller == Some(true) && owner.kind == job_set::KIND && group == Some(job_set::GROUP)
}
