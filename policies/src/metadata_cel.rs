//! CEL about the metadata of an object, given the name of its variable.

use lockkeeper_api::labels::{ADOPTION, QUEUE_NAME};

/// The condition that an object has a label.
#[must_use]
pub fn has_label(object: &str, key: &str) -> String {
    format!("(has({object}.metadata.labels) && '{key}' in {object}.metadata.labels)")
}

/// The condition that a label is the same in two objects, or in neither.
#[must_use]
pub fn same_label(new: &str, old: &str, key: &str) -> String {
    let (has_new, has_old) = (has_label(new, key), has_label(old, key));
    format!(
        "{has_new} ? ({has_old} && {new}.metadata.labels['{key}'] == {old}.metadata.labels['{key}']) : !{has_old}"
    )
}

/// The condition that `lockkeeper adopt` adds the queue label to a running job: the annotation has the uid of the job, so that a
/// copied manifest does not count. A user who writes the annotation stops the pods of the job, because no quota is reserved for it.
#[must_use]
pub fn is_adopted(new: &str, old: &str) -> String {
    format!(
        "(!{} && has({new}.metadata.annotations) && '{ADOPTION}' in {new}.metadata.annotations && has({new}.metadata.uid) \
         && {new}.metadata.annotations['{ADOPTION}'] == {new}.metadata.uid)",
        has_label(old, QUEUE_NAME),
    )
}

/// The condition that a controller creates an object for another object of its own.
///
/// `KubeRay` copies the labels of a `RayJob` to its `RayCluster` (`constructRayClusterForRayJob`): suspended, that would never
/// start. The controller of lockkeeper suspends such a job unless a declaration names it among the children of its parent.
#[must_use]
pub fn is_created_by_a_controller(object: &str) -> String {
    format!(
        "request.userInfo.username.startsWith('system:serviceaccount:') && has({object}.metadata.ownerReferences) \
         && {object}.metadata.ownerReferences.exists(it, has(it.controller) && it.controller)"
    )
}

/// The list of the controller references of an object, by the fields that identify the owner. There is at most one.
#[must_use]
pub fn controllers(object: &str) -> String {
    format!(
        "(has({object}.metadata.ownerReferences) ? {object}.metadata.ownerReferences.filter(it, has(it.controller) \
         && it.controller).map(it, [it.apiVersion, it.kind, it.name, it.uid]) : [])"
    )
}
